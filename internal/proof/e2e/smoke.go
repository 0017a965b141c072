package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/oklog/ulid/v2"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/examples/webhooks"
	"github.com/runlane/runlane-go/internal/tools/costs"
	"github.com/runlane/runlane-go/lane"
)

const (
	// maxRuns bounds what one check may make, and so what it may cost.
	maxRuns = 100
	// idPrefix begins the id of every run of every check.
	idPrefix = "smoke_"
	// maxPayload bounds what a payload adds to the cost of a run.
	maxPayload = 1024
)

// most is what a run of a check uses at most, with every repetition and all that watches it: several times what was
// measured of the most expensive kind (docs/prices.md).
var most = costs.Use{Writes: 80, Reads: 400, Sends: 8, Deliveries: 8}

// atMost is what the check costs at most, in dollars: a handler that always takes all the time it has, and a bridge of
// so many megabytes that has nothing else to do meanwhile. A run is executed at one place at a time, and not for longer
// than the check goes on.
func (s *smoke) atMost() float64 {
	deliveries := max(most.Deliveries, float64(s.task.Retry.Attempts()))
	limit := (s.patience + cleanUpTime).Seconds()
	if s.task.Timeout > 0 {
		limit = min(limit, deliveries*s.task.Timeout.Seconds())
	}
	aRun := most.Dollars(1)*deliveries/most.Deliveries + limit*float64(s.memory)/1024*costs.LambdaGigabyteSecond
	return float64(len(s.probes)) * aRun / 1e6
}

var actor = runlane.Actor{Type: runlane.ActorOperator, ID: "smoke"}

// target is a deployment.
type target struct {
	environment string
	table       string
	queues      map[runlane.QueueName]string
}

// wish is what a check is to do.
type wish struct {
	each     int // runs of each kind; 0 means three, or as many as fit
	patience time.Duration
	task     runlane.TaskID  // of the deployment's program; "" means webhooks.check
	payload  json.RawMessage // with which the task succeeds
	retried  json.RawMessage // with which it fails once, and succeeds then; nil for none
	memory   int             // megabytes of the bridges
}

// smoke is one check of a deployment.
type smoke struct {
	task     *runlane.Definition
	payloads map[string]json.RawMessage // by what the handler is asked for
	kinds    []kind
	without  []gap
	memory   int

	rt       *core.Runtime
	store    *dynamostore.Store
	db       *dynamodb.Client // for the clean-up alone: it is not part of what is measured
	table    string
	prefix   string
	probes   []*probe
	patience time.Duration

	reported     *consumption
	billed, told dynamostore.Usage // of the triggering side: as AWS reports it, as the meter computes it
	leftover     []error
	removed      int
}

// open plans a check. It has no handlers: whatever is executed, the deployment executes.
func open(ctx context.Context, cfg aws.Config, to target, w wish) (*smoke, error) {
	s := &smoke{
		table:    to.table,
		prefix:   idPrefix + strings.ToLower(ulid.Make().String()),
		patience: w.patience,
		memory:   w.memory,
		reported: &consumption{},
		task:     webhooks.Check.Definition(),
		db: dynamodb.NewFromConfig(awslane.Tune(cfg), func(o *dynamodb.Options) {
			o.DisableValidateResponseChecksum = o.DisableValidateResponseChecksum || o.BaseEndpoint != nil
		}),
	}
	if err := s.plan(to, w); err != nil {
		return nil, err
	}
	measured := cfg.Copy()
	measured.APIOptions = append(slices.Clone(cfg.APIOptions), s.reported.register)
	l, err := awslane.New(measured, awslane.Options{
		Environment: runlane.Environment(to.environment),
		Table:       to.table,
		Queues:      to.queues,
	})
	if err != nil {
		return nil, err
	}
	l.Transport = sender{l.Transport}
	store, ok := lane.As[*dynamostore.Store](l.Storage)
	if !ok {
		return nil, errors.New("the lane has no meter")
	}
	s.store = store
	if s.rt, err = core.Open(ctx, l, nil); err != nil {
		return nil, err
	}
	if err := s.find(ctx, w.task); err != nil {
		return nil, errors.Join(err, s.rt.Close(ctx))
	}
	return s, nil
}

// plan decides which runs the check makes, in every queue of the deployment.
func (s *smoke) plan(to target, w wish) error {
	if s.payloads = map[string]json.RawMessage{}; w.task == "" {
		for _, do := range []string{webhooks.CheckSucceed, webhooks.CheckRetry, webhooks.CheckRelease} {
			payload, err := json.Marshal(webhooks.Probe{Do: do})
			if err != nil {
				return err
			}
			s.payloads[do] = payload
		}
	} else {
		s.payloads[webhooks.CheckSucceed] = w.payload
		if w.retried != nil {
			s.payloads[webhooks.CheckRetry] = w.retried
		}
	}
	for _, payload := range s.payloads {
		if len(payload) > maxPayload || !json.Valid(payload) {
			return fmt.Errorf("a payload is JSON of at most %d bytes: %q", maxPayload, payload[:min(len(payload), 100)])
		}
	}
	if standard, _ := sorts(to.queues); len(standard) == 0 {
		return errors.New("the deployment has no standard queue")
	}
	s.kinds, s.without = kindsFor(to.queues, s.payloads)
	each := w.each
	if each == 0 {
		each = max(1, min(3, maxRuns/len(s.kinds)))
	}
	if each < 1 || each*len(s.kinds) > maxRuns {
		return fmt.Errorf("%d runs of each of %d kinds: a check makes 1 to %d runs", each, len(s.kinds), maxRuns)
	}
	s.probes = plan(s.prefix, each, s.kinds)
	return nil
}

// find takes the task from the catalog, into which the deployed tick writes what its program has.
func (s *smoke) find(ctx context.Context, task runlane.TaskID) error {
	all, err := s.rt.Tasks().List(ctx)
	if err != nil {
		return err
	}
	want := cmp.Or(task, s.task.ID)
	var names []string
	for i := range all {
		if all[i].ID == want {
			s.task = all[i].Definition()
			return nil
		}
		names = append(names, string(all[i].ID))
	}
	switch {
	case len(names) > 0:
		return fmt.Errorf("the deployment has no task %s: name one that it has with TASK= and PAYLOAD=, of %s",
			want, strings.Join(names, ", "))
	case task != "":
		return fmt.Errorf("the deployment's tick has not written down its tasks yet, %s among them", want)
	}
	return nil
}

// check triggers all runs, watches them end, judges, and cleans up, in any case. It reports whether everything was as
// it should be.
func (s *smoke) check(ctx context.Context) bool {
	s.trigger(ctx)
	s.watch(ctx)
	for _, p := range s.probes {
		p.judge()
	}
	judgeOrder(s.probes)
	judgeRelay(s.probes)
	s.cleanUp(context.WithoutCancel(ctx))
	return len(s.leftover) == 0 && !slices.ContainsFunc(s.probes, func(p *probe) bool { return p.fault != nil })
}

// trigger makes the runs one after the other, so that none waits for another, and cancels those that are to be.
func (s *smoke) trigger(ctx context.Context) {
	meter, reported := s.store.Stats().Usage, s.reported.total()
	for _, p := range s.probes {
		if err := context.Cause(ctx); err != nil {
			p.fail(fmt.Errorf("not triggered: %w", err))
			continue
		}
		p.fail(s.triggerOne(ctx, p))
	}
	s.told, s.billed = s.store.Stats().Minus(meter), s.reported.total().Minus(reported)
}

func (s *smoke) triggerOne(ctx context.Context, p *probe) error {
	call := runlane.NewRawCall(s.task, s.payloads[p.do])
	options := p.options
	options.Actor = actor
	p.triggered = time.Now()
	committing := withCommit(ctx, &p.committed)
	if p.unsent {
		committing = context.WithValue(committing, unsentKey{}, true)
	}
	result, err := s.rt.Trigger(committing, call, &options)
	if err != nil {
		return err
	}
	if result.Outcome != runlane.TriggerCreated || result.Run.ID != p.id {
		return fmt.Errorf("the trigger %s %s", result.Outcome, result.Run.ID)
	}
	if p.twice {
		options.RunID = p.second
		again, err := s.rt.Trigger(ctx, call, &options)
		if err != nil {
			return err
		}
		if again.Outcome != runlane.TriggerReturnedExisting || again.Run.ID != p.id {
			return fmt.Errorf("the second trigger %s %s", again.Outcome, again.Run.ID)
		}
	}
	if p.cancel {
		_, err := s.rt.Runs().Cancel(ctx, p.id, &core.ChangeOptions{Actor: actor, Reason: "checks a deployment"})
		return err
	}
	return nil
}

// unsentKey is in the context of what is not to reach SQS.
type unsentKey struct{}

// sender is the deployment's transport, which takes no wakeup under a context with unsentKey.
type sender struct{ lane.Transport }

// Unwrap lets a runtime find what the transport can do besides.
func (s sender) Unwrap() lane.Transport { return s.Transport }

// PublishWakeups implements [lane.Transport].
func (s sender) PublishWakeups(ctx context.Context, c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	if ctx.Value(unsentKey{}) != nil {
		return nil, &runlane.Error{Code: runlane.ErrTransportUnavailable, Message: "kept from SQS", Retryable: true}
	}
	return s.Transport.PublishWakeups(ctx, c)
}

// watch waits until every run has ended, or patience or the context has.
func (s *smoke) watch(ctx context.Context) {
	waiting, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	for _, p := range s.probes {
		if p.fault != nil {
			continue
		}
		run, err := s.rt.Wait(waiting, p.id)
		if err != nil && ctx.Err() == nil { // patience is over, which is not yet to say that this one has not ended
			run, err = s.rt.Runs().Get(ctx, p.id)
		}
		if err != nil {
			p.fail(err)
			continue
		}
		if !run.Status.Terminal() {
			p.fail(fmt.Errorf("not ended after %s: %s", s.patience, s.explain(ctx, p.id)))
			continue
		}
		p.run = run
		for event, err := range s.rt.Runs().Events(ctx, p.id, nil) {
			if err != nil {
				p.fail(err)
				break
			}
			p.events = append(p.events, event)
		}
	}
}

// explain says why a run has not ended, as far as that can be found out.
func (s *smoke) explain(ctx context.Context, id runlane.RunID) string {
	x, err := s.rt.Runs().Explain(ctx, id)
	if err != nil {
		return "no explanation: " + err.Error()
	}
	return fmt.Sprintf("%s, waits for %s: %s", x.Status, x.Wait, x.Next)
}
