package dynamostore

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// budgetCase measures one step of docs/internals/layout.md, Budget: what after used, by the meter, beyond before.
type budgetCase struct {
	before, after func(w *world) *world
	simple        []string // steps among them that are a simple run's, where the document says what comes on top of one
}

// TestBudget goes through docs/internals/layout.md, Budget, row by row: a case for each row, a row for each case, and the numbers are the
// document's.
func TestBudget(t *testing.T) {
	t.Parallel()
	cases, prices := budgetCases(), budget(t)
	for name := range prices {
		if _, ok := cases[name]; !ok {
			t.Errorf("no case measures %q", name)
		}
	}
	for name, c := range cases {
		want, ok := prices[name]
		if !ok || want.beyond != (c.simple != nil) {
			t.Errorf("%s does not have the case %q like this: %+v", document, name, want)
			continue
		}
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.before != nil {
				w = c.before(w)
			}
			before := w.store.Stats()
			w = c.after(w)
			stats := w.store.Stats()
			used := stats.Usage.Minus(before.Usage)
			for _, step := range c.simple {
				used = used.Minus(prices[step].Usage)
			}
			if used != want.Usage {
				t.Errorf("%s has %+v of this step. It used | %v | %v | %d | %.4f |: %v",
					document, want.Usage, used.WriteUnits, used.ReadUnits, used.Requests, dollars(used), stats.Operations)
			}
			w.checked()
		})
	}
}

const budgetLease = 5 * time.Minute

func budgetCases() map[string]budgetCase {
	created := func(w *world) *world { return w.create(eager, 0, nil) }
	published := func(w *world) *world { return created(w).ack() }
	running := func(w *world) *world { return published(w).claim(budgetLease, true) }
	again := func(w *world) *world { return w.other(w.request(w.now)).ack().claim(budgetLease, true) }
	handedOver := []string{"trigger", "publish acknowledged"}
	cases := map[string]budgetCase{
		"trigger":              {nil, created, nil},
		"publish acknowledged": {created, func(w *world) *world { return w.ack() }, nil},
		"claim and start":      {published, func(w *world) *world { return w.claim(budgetLease, true) }, nil},
		"success":              {running, func(w *world) *world { return w.succeed() }, nil},
		"a simple run":         {nil, func(w *world) *world { return running(w).succeed() }, nil},
		"a run with an idempotency owner": {nil, func(w *world) *world {
			return w.create(eager, 0, keyed("a")).ack().claim(budgetLease, true).succeed()
		}, nil},
		"a run with both owners": {nil, func(w *world) *world {
			return w.create(eager, 0, owned("a", []byte(`{}`))).ack().claim(budgetLease, true).succeed()
		}, nil},
		"retry up to 15 min": {running, func(w *world) *world {
			return w.retry(time.Second).pass(time.Second).claim(budgetLease, true)
		}, nil},
		"release up to 15 min": {running, func(w *world) *world {
			return w.end(&runlane.RunReleased{Attempt: 1, ResumeAt: w.now.Add(time.Second)}).pass(time.Second).claim(budgetLease, true)
		}, nil},
		"retry after the longest failure": {running, func(w *world) *world {
			w.end(&runlane.RunRetryScheduled{Attempt: 1, Failure: longestFailure(), RetryAt: w.now.Add(time.Second)})
			return w.pass(time.Second).claim(budgetLease, true)
		}, nil},
		"longer wait with the tick's delayed wakeup": {running, func(w *world) *world { // which costs reads
			return w.retry(time.Hour).pass(time.Hour).claim(budgetLease, true)
		}, nil},
		"longer wait with a delivery request": {running, func(w *world) *world { return again(w.retry(time.Hour).pass(time.Hour).inspect()) }, nil},
		"abandoned attempt": {func(w *world) *world { return published(w).claim(time.Minute, true) }, func(w *world) *world {
			return again(w.pass(61 * time.Second).inspect())
		}, nil},
		"abandoned attempt that was inspected": {running, func(w *world) *world {
			return again(w.pass(2 * time.Minute).inspect().pass(budgetLease).inspect())
		}, nil},
		"still active at the first inspection": {nil, func(w *world) *world { return published(w).pass(2 * time.Minute).inspect() }, handedOver},
		"publish failure and its retry": {created, func(w *world) *world {
			return w.fail(time.Second).pass(time.Second).flush().ack()
		}, []string{"publish acknowledged"}},
		"deferred trigger":         {nil, func(w *world) *world { return w.create(deferred, 0, nil).flush().ack() }, handedOver},
		"cancelling a waiting run": {func(w *world) *world { return w.create(eager, time.Hour, nil) }, cancelledNow, nil},
		"scheduled run, above a simple one": {func(w *world) *world { return w.registered() }, func(w *world) *world {
			fire := w.now
			token := w.occurrence(fire)
			w = running(w).succeed()
			if err := w.completeOccurrence(fire, token, w.run.ID); err != nil {
				w.Fatal(err)
			}
			return w
		}, []string{"a simple run"}},
		"heartbeat": {running, func(w *world) *world { return w.pass(time.Second).heartbeat(budgetLease) }, nil},
		"progress note": {running, func(w *world) *world {
			p := runlane.Progress{Attempt: 1, Note: "half", At: w.now}
			if err := w.store.PutProgress(w.Context(), w.key(), w.run.Lease.Token, p); err != nil {
				w.Fatal(err)
			}
			return w
		}, nil},
		"a minute of heartbeats": {func(w *world) *world { // the last inspection moved the marker to the lease's end
			return published(w).claim(time.Minute, true).beats().pass(time.Second).inspect().pass(-time.Second)
		}, func(w *world) *world { return w.beats().pass(time.Second).inspect() }, nil},
		"duplicate trigger": {func(w *world) *world { return w.create(eager, 0, keyed("a")) }, func(w *world) *world {
			run, err := w.store.GetRunByIdempotencyKey(w.Context(), lane.OwnerKey{Environment: "test", TaskID: "bench.noop", Key: "a"})
			if err != nil || run.ID != w.run.ID {
				w.Fatal(run, err)
			}
			return w
		}, nil},
		"duplicate trigger that loses a race": {func(w *world) *world { return w.create(eager, 0, keyed("a")) }, func(w *world) *world {
			late := *w
			late.run = &runlane.Run{ID: "run_01ARZ3NDEKTSV4RRFFQ69Glate"}
			created := keyed("a")
			created.TaskID, created.Queue, created.Source = "bench.noop", "default", runlane.Source{Type: runlane.SourceTrigger}
			c := &lane.AppendCommand{Transition: late.transition(created, late.request(w.now)), Outbox: eager(w.now)}
			if _, err := w.store.AppendRunEvents(w.step(), c); !errors.Is(err, runlane.ConflictIdempotencyKey) {
				w.Fatal(err)
			}
			return w
		}, nil},
		"later trigger of a debounced run": {func(w *world) *world {
			return w.create(eager, time.Minute, &runlane.RunCreated{
				Payload: []byte(`{}`), IdempotencyKey: "a", Retention: runlane.KeyRetention{UntilDue: true},
				Debounced: &runlane.Debounced{Triggers: 1},
			}).pass(time.Second)
		}, func(w *world) *world {
			key := lane.OwnerKey{Environment: "test", TaskID: "bench.noop", Key: "a"}
			if run, err := w.store.GetRunByIdempotencyKey(w.Context(), key); err != nil || run.ID != w.run.ID {
				w.Fatal(run, err)
			}
			return w.other(&runlane.RunDebounced{RunAt: w.now.Add(time.Minute), Payload: []byte(`{"n":2}`)})
		}, nil},
		"tick with nothing to do": laterTick(),
		"tick with nothing to do in a bounded queue": laterTick(runlane.NewTask("bench.bounded", &runlane.TaskOptions[int]{
			Queue: runlane.Queue{Name: "bounded", Concurrency: 1},
		}).Handle(func(context.Context, *runlane.Attempt, int) error { return nil })),
		"first tick of a program with one task": {nil, idleTick(runlane.NewTask[int]("bench.noop", nil).Handle(
			func(context.Context, *runlane.Attempt, int) error { return nil },
		)), nil},
	}
	addBoundedCases(cases)
	addPruningCases(cases)
	addCallCases(cases)
	addFlowCases(cases)
	addSignalCases(cases)
	addStepCases(cases)
	return cases
}

func keyed(key string) *runlane.RunCreated {
	return &runlane.RunCreated{Payload: []byte(`{}`), IdempotencyKey: key, Retention: runlane.KeyRetention{TTL: runlane.DefaultIdempotencyTTL}}
}

func cancelledNow(w *world) *world { return w.other(&runlane.RunCancelled{}) }

// retry is a failed attempt whose next one begins after d.
func (w *world) retry(d time.Duration) *world {
	w.Helper()
	return w.end(&runlane.RunRetryScheduled{
		Attempt: w.run.Counters.Attempts, Failure: runlane.Failure{Code: runlane.ErrTaskFailed, Message: "no"}, RetryAt: w.now.Add(d),
	})
}

// beats are the heartbeats of a minute.
func (w *world) beats() *world {
	w.Helper()
	for range 3 {
		w.pass(20 * time.Second).heartbeat(time.Minute)
	}
	return w
}

// longestFailure is as long as failures get, of text that hardly compresses: a message of 1 KiB, and 4 KiB of details.
func longestFailure() runlane.Failure {
	const stack = "stack"
	text := string(bulky(6))
	details := map[string]string{stack: text[:runlane.MaxFailureMetaBytes-len(stack)]}
	return runlane.NewFailure(runlane.ErrTaskPanicked, text[runlane.MaxFailureMetaBytes:][:runlane.MaxFailureMessageBytes], details)
}

// idleTick is a runtime's first round of maintenance when nothing is waiting: its reads are paid, and the definitions it stores.
func idleTick(handlers ...runlane.Handler) func(*world) *world {
	return func(w *world) *world {
		w.Helper()
		l, err := lane.New(w.store, memlane.NewTransport(nil), &lane.Options{Environment: "test"})
		if err != nil {
			w.Fatal(err)
		}
		rt, err := core.Open(w.Context(), l, &core.Options{Logger: slog.New(slog.DiscardHandler), Handlers: handlers})
		if err != nil {
			w.Fatal(err)
		}
		defer func() { _ = rt.Close(w.Context()) }()
		if result, err := rt.Tick(w.Context(), nil); err != nil || result.More {
			w.Fatal(result, err)
		}
		return w
	}
}

// A payload is billed once and never again: later commits touch the run item alone.
func TestBudget_LargePayload_IsPaidOnce(t *testing.T) {
	w := newWorld(t)
	random := rand.New(rand.NewPCG(1, 2))
	payload := make([]byte, 2048)
	for i := range payload {
		payload[i] = byte(random.UintN(256))
	}
	w.create(eager, 0, &runlane.RunCreated{Payload: fmt.Appendf(nil, "%q", hex.EncodeToString(payload))})
	if got := w.meter.Stats().WriteUnits; got != 5+2*3 { // 4 KB of hex digits compress to a little over 2 KB
		t.Errorf("creation took %v units, want 11", got)
	}
	w.ack().claim(time.Minute, true)
	if got := w.meter.Stats().WriteUnits; got != 4 {
		t.Errorf("claim took %v units, want 4", got)
	}
	if w.succeed(); w.meter.Stats().WriteUnits != 6 {
		t.Errorf("outcome took %v units, want 6", w.meter.Stats().WriteUnits)
	}
}

// A reference to a body in the store of bodies costs no unit more than a small body, however large the body is.
func TestBudget_BodiesApart_CostASimpleRun(t *testing.T) {
	w := newWorld(t)
	reference := lane.NewReference(w.now, make([]byte, 100<<20)).Stored()
	before := w.store.Stats()
	w.create(eager, 0, &runlane.RunCreated{Payload: reference}).ack().claim(budgetLease, true)
	w.end(&runlane.RunSucceeded{Attempt: 1, Output: reference})
	if used, want := w.store.Stats().Usage.Minus(before.Usage), budget(t)["a simple run"].Usage; used != want {
		t.Errorf("used %+v, a simple run %+v", used, want)
	}
}

func TestMissingTable_IsConfigurationInvalid(t *testing.T) {
	w := newWorld(t)
	missing := New(w.store.db.Client, "t-missing", nil)
	for name, err := range map[string]error{
		"start": missing.Start(t.Context()),
		"read":  func() error { _, err := missing.GetRun(t.Context(), lane.RunKey{RunID: "run_1"}); return err }(),
		"write": func() error { _, err := missing.AppendRunEvents(t.Context(), creation(t, "run_1")); return err }(),
	} {
		e, ok := errors.AsType[*runlane.Error](err)
		if !ok || e.Code != runlane.ErrConfigurationInvalid || e.Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What the storage cannot hold is refused before anything is written, and what it can hold comes back whole.
func TestOversizePayload_IsRefusedAndWritesNothing(t *testing.T) {
	w := newWorld(t)
	random := rand.New(rand.NewPCG(5, 6))
	payload := make([]byte, 360<<10)
	for i := range payload {
		payload[i] = byte(random.UintN(256))
	}
	body := fmt.Appendf(nil, "%q", hex.EncodeToString(payload)) // 720 KB, a little over 360 KB compressed
	c := creation(t, "run_large")
	c.Events[0].Body = &runlane.RunCreated{TaskID: "a.task", Queue: "default", Payload: body, Source: runlane.Source{Type: runlane.SourceTrigger}}
	c.Projected.Payload = body
	before := w.store.Stats()
	_, err := w.store.AppendRunEvents(t.Context(), c)
	e, ok := errors.AsType[*runlane.Error](err)
	if !ok || e.Code != runlane.ErrValidationFailed || e.Hint == "" || e.RunID != "run_large" {
		t.Fatalf("%v", err)
	}
	if used := w.store.Stats().Usage.Minus(before.Usage); used.WriteUnits != 0 {
		t.Errorf("%+v", used)
	}
	if _, err := w.store.GetRun(t.Context(), c.Key()); !errors.Is(err, runlane.ErrRunNotFound) {
		t.Errorf("the run is there: %v", err)
	}
}
