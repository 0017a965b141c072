package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
)

// most is what a run of a check uses at most, with every repetition and all that watches it: several times what was
// measured of the most expensive kind (docs/costs.md).
var most = costs.Use{Writes: 80, Reads: 400, Sends: 8, Deliveries: 8}

// gigabyteSeconds are those of the functions for each of these deliveries: four seconds of 256 MB, of which they need
// a hundredth.
const gigabyteSeconds = 1

// atMost is what the check costs at most, in dollars.
func (s *smoke) atMost() float64 {
	aRun := most.Dollars(1) + most.Deliveries*gigabyteSeconds*costs.LambdaGigabyteSecond
	return float64(len(s.probes)) * aRun / 1e6
}

var actor = runlane.Actor{Type: runlane.ActorOperator, ID: "smoke"}

// target is a deployment.
type target struct {
	environment string
	table       string
	queues      map[runlane.QueueName]string
}

// smoke is one check of a deployment.
type smoke struct {
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

// open plans a check with each runs of every kind. It has no handlers: whatever is executed, the deployment executes.
func open(ctx context.Context, cfg aws.Config, to target, each int, patience time.Duration) (*smoke, error) {
	if each < 1 || each*len(kinds()) > maxRuns {
		return nil, fmt.Errorf("%d runs of each of %d kinds: a check makes 1 to %d runs", each, len(kinds()), maxRuns)
	}
	standard, fifo := chooseQueues(to.queues)
	if standard == "" {
		return nil, errors.New("the deployment has no standard queue")
	}
	s := &smoke{
		table:    to.table,
		prefix:   idPrefix + strings.ToLower(ulid.Make().String()),
		patience: patience,
		reported: &consumption{},
		db: dynamodb.NewFromConfig(awslane.Tune(cfg), func(o *dynamodb.Options) {
			o.DisableValidateResponseChecksum = o.DisableValidateResponseChecksum || o.BaseEndpoint != nil
		}),
	}
	s.probes = plan(s.prefix, each, standard, fifo)
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
	store, ok := lane.As[*dynamostore.Store](l.Storage)
	if !ok {
		return nil, errors.New("the lane has no meter")
	}
	s.store = store
	s.rt, err = core.Open(ctx, l, nil)
	return s, err
}

// chooseQueues takes the first queue of each sort. SQS demands the suffix of FIFO queues.
func chooseQueues(queues map[runlane.QueueName]string) (standard, fifo runlane.QueueName) {
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(queues))) {
		if strings.HasSuffix(queues[name], ".fifo") {
			fifo = name
		} else {
			standard = name
		}
	}
	return standard, fifo
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
	call := webhooks.Check.With(webhooks.Probe{Do: p.do})
	options := p.options
	options.Actor = actor
	p.triggered = time.Now()
	result, err := s.rt.Trigger(withCommit(ctx, &p.committed), call, &options)
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
