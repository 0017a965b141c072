package core

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Storages order times from the epoch to the last one with 13 digits of milliseconds.
var (
	earliestTime = time.UnixMilli(0)
	latestTime   = time.UnixMilli(9_999_999_999_999)
)

// plan is a validated trigger.
type plan struct {
	caller

	options *runlane.TriggerOptions
	node    *lane.FlowCheck  // the required state of the flow if the run is a node; nil for none
	wait    *runlane.Waiting // delays the start of the run; nil for nothing

	task           *runlane.Definition
	queue          runlane.Queue
	id             runlane.RunID
	actor          runlane.Actor
	source         runlane.Source
	at             time.Time // now
	runAt          time.Time // zero: at once
	availableAt    time.Time
	payload        []byte
	payloadHash    string // only with an idempotency key
	concurrencyKey string
	idempotencyKey string
	retention      runlane.KeyRetention
	singletonKey   string
	priority       int
	debounced      *runlane.Debounced // nil: it is not
	traceCarrier   map[string]string
	ticket         time.Time         // when the run may start by its queue's rate; zero: no ticket
	traceLink      map[string]string // of the run that a rerun repeats

	creation creation
}

// caller is the attempt that triggers; zero for applications.
type caller struct {
	parent     *runlane.Run  // the attempt's run
	parentCall string        // its call that counts the run's end; "" for none
	origin     runlane.RunID // the run that the call made first, see runlane.Source.OriginID
}

// plans are reused: storages keep no part of a command.
var plans = sync.Pool{New: func() any { return new(plan) }}

func (p *plan) done() {
	*p = plan{}
	plans.Put(p)
}

// prepare validates the whole call before any write. Occurrences of schedules and reruns fill their plans themselves.
func (rt *Runtime) prepare(p *plan, call runlane.Call) error {
	prepared, err := call.Prepare()
	if err != nil {
		return safeError(err)
	}
	if err := rt.checkPayload(call.Task.ID, prepared.Payload); err != nil {
		return err
	}
	o := p.options
	p.task, p.payload = call.Task, prepared.Payload
	p.concurrencyKey = override(o.ConcurrencyKey, prepared.ConcurrencyKey)
	p.idempotencyKey = override(o.IdempotencyKey, prepared.IdempotencyKey)
	p.singletonKey = override(o.SingletonKey, prepared.SingletonKey)
	p.priority = o.Priority
	p.source = runlane.Source{Type: runlane.SourceTrigger}
	p.traceCarrier = o.TraceCarrier
	rt.warnOfEmptyKeys(p)
	if p.node != nil {
		p.idempotencyKey = "" // the derived run id already makes this idempotent
	}
	if p.parent != nil {
		p.source.RunID = p.parent.ID
		if p.parentCall != "" {
			p.source = callSource(p.parent, p.parentCall)
			p.source.OriginID = p.origin
			p.priority = p.parent.Priority // the caller waits for it
			p.idempotencyKey = ""          // the derived run id already makes this idempotent
		}
		if p.traceCarrier == nil {
			p.traceCarrier = p.parent.TraceCarrier
		}
	}
	if err := firstError(
		rt.prepareQueue(p), prepareKeys(p), checkPriority(o.Priority), rt.checkOwners(p), prepareActor(p), checkMeta(p),
		rt.prepareTime(p),
		rt.prepareWindow(p),
	); err != nil {
		return err
	}
	if p.concurrencyKey != "" {
		rt.warnOfIdleKey(context.Background(), p.task.ID, p.queue)
	}
	p.settleRetention(prepared.IdempotencyTTL)
	if p.id = o.RunID; p.id == "" {
		p.id = runlane.RunID(rt.world.NewID("run_"))
		return nil
	}
	return p.id.Validate()
}

func (rt *Runtime) prepareQueue(p *plan) error {
	if p.queue = p.options.Queue; p.queue == (runlane.Queue{}) {
		p.queue = p.task.Queue
	}
	return rt.checkQueue(p.queue)
}

func prepareKeys(p *plan) error {
	o := p.options
	for _, key := range [...]struct{ what, value string }{
		{"concurrency key", o.ConcurrencyKey}, {"idempotency key", o.IdempotencyKey}, {"singleton key", o.SingletonKey},
	} {
		if key.value == "" {
			continue
		}
		if err := runlane.ValidateKey(key.what, key.value); err != nil {
			return err
		}
	}
	return nil
}

func checkPriority(priority int) error {
	if priority < -runlane.MaxPriority || priority > runlane.MaxPriority {
		return invalidInput(fmt.Sprintf("use %d to %d; the highest goes first", -runlane.MaxPriority, runlane.MaxPriority),
			"Priority is %d", priority)
	}
	return nil
}

func (rt *Runtime) checkOwners(p *plan) error {
	if p.singletonKey != "" && !rt.storage().Capabilities().EnforcesSingleton {
		return unsupported("the storage does not enforce singleton keys")
	}
	ttl := p.options.IdempotencyTTL
	if ttl < 0 && ttl != runlane.WhileActive {
		return invalidInput("use runlane.WhileActive, 0 for the task's, or a duration", "IdempotencyTTL is %s", ttl)
	}
	if p.options.Writes != nil && !rt.storage().Capabilities().CommitsWrites {
		return unsupported("the storage does not commit writes of the application (TriggerOptions.Writes)")
	}
	if p.idempotencyKey == "" {
		return nil
	}
	if !rt.storage().Capabilities().EnforcesIdempotency {
		return unsupported("the storage does not enforce idempotency keys")
	}
	return nil
}

// settleRetention takes the task's TTL from the prepared call, which has its default.
func (p *plan) settleRetention(taskTTL time.Duration) {
	if p.idempotencyKey == "" || p.retention != (runlane.KeyRetention{}) {
		return
	}
	ttl := p.options.IdempotencyTTL
	if ttl == 0 {
		ttl = taskTTL
	}
	if ttl == runlane.WhileActive {
		p.retention = runlane.KeyRetention{WhileActive: true}
	} else {
		p.retention = runlane.KeyRetention{TTL: ttl}
	}
	p.payloadHash = payloadHash(p.payload)
}

func payloadHash(payload []byte) string {
	sum := sha256.Sum256(payload)
	return hex.EncodeToString(sum[:16])
}

func prepareActor(p *plan) error {
	p.actor = p.options.Actor
	if p.actor == (runlane.Actor{}) {
		p.actor = runlane.SystemActor
	}
	return checkActor(p.actor)
}

func checkActor(actor runlane.Actor) error {
	switch actor.Type {
	case runlane.ActorSystem, runlane.ActorOperator, runlane.ActorSchedule, runlane.ActorWorker:
		return runlane.ValidateKey("actor id", actor.ID)
	default:
		return invalidInput("use one of the runlane.Actor… types", "actor has the unknown type %q", actor.Type)
	}
}

func checkMeta(p *plan) error {
	if len(p.options.Meta) == 0 && len(p.traceCarrier) == 0 {
		return nil
	}
	size := 0
	for _, option := range [...]struct {
		name   string
		values map[string]string
	}{{"Meta", p.options.Meta}, {"TraceCarrier", p.traceCarrier}} {
		for k, v := range option.values {
			size += len(k) + len(v)
			if !utf8.ValidString(k) || !utf8.ValidString(v) { // storages keep text, and would change it
				return invalidInput("use text, or encode the bytes", "%s is not valid UTF-8", option.name)
			}
		}
	}
	if size > runlane.MaxMetaBytes {
		return invalidInput(
			"keep bulk in the payload",
			"Meta and TraceCarrier have %d bytes together, more than %d",
			size,
			runlane.MaxMetaBytes,
		)
	}
	return nil
}

// prepareTime rounds up to whole milliseconds, so the run never starts early.
func (rt *Runtime) prepareTime(p *plan) error {
	o, now := p.options, rt.world.Now()
	p.at = runlane.UTCMillis(now)
	p.availableAt = p.at
	switch {
	case o.Delay < 0:
		return invalidInput("use 0 or more", "Delay is %s", o.Delay)
	case o.Delay > 0 && !o.RunAt.IsZero():
		return invalidInput("give one of them", "both Delay and RunAt are set")
	case o.Delay == 0 && o.RunAt.IsZero():
		return nil
	}
	runAt := o.RunAt
	if o.Delay > 0 {
		runAt = now.Add(o.Delay)
	}
	// Compare as times: the milliseconds of a very distant one overflow 64 bits.
	if runAt.Before(earliestTime) || runAt.After(latestTime) {
		return invalidInput("use an instant from 1970 to 2286; were nanoseconds or milliseconds taken for seconds?",
			"by Delay or RunAt the run would be due in the year %d", runAt.Year())
	}
	runAt = ceilMillis(runAt)
	if runAt.After(p.at) {
		p.runAt, p.availableAt = runAt, runAt
	}
	return nil
}

func override(given, computed string) string {
	if given != "" {
		return given
	}
	return computed
}

// creation holds all parts of one creating commit, in one allocation.
type creation struct {
	command   lane.AppendCommand
	events    [2]runlane.Event
	created   runlane.RunCreated
	requested runlane.RunDeliveryRequested
}

func callSource(parent *runlane.Run, call string) runlane.Source {
	source := runlane.Source{Type: runlane.SourceCall, RunID: parent.ID, Call: call, CreatedAt: parent.CreatedAt}
	if parent.Source.Type == runlane.SourceCall {
		source.Depth = parent.Source.Depth + 1
	}
	return source
}
