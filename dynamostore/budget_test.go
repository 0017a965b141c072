package dynamostore

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// TestBudget goes through docs/layout.md, Budget: the write units of each step, as the meter computes them from what is sent.
func TestBudget(t *testing.T) {
	t.Parallel()
	const lease = time.Minute
	running := func(w *world) *world { return w.create(eager, 0, nil).ack().claim(lease, true) }
	retry := func(w *world, d time.Duration) *world {
		return w.end(&runlane.RunRetryScheduled{Attempt: 1, Failure: runlane.Failure{Code: runlane.ErrTaskFailed, Message: "no"}, RetryAt: w.now.Add(d)})
	}
	idempotent := func() *runlane.RunCreated {
		return &runlane.RunCreated{Payload: []byte(`{}`), IdempotencyKey: "a", Retention: runlane.KeyRetention{TTL: runlane.DefaultIdempotencyTTL}}
	}
	owned := func() *runlane.RunCreated {
		c := idempotent()
		c.SingletonKey = "b"
		return c
	}
	simple := func(w *world) *world { return running(w).succeed() }
	for name, row := range map[string]struct {
		before, after func(w *world) // the step's price is what after used beyond before
		units         float64
	}{
		"trigger":                {nil, func(w *world) { w.create(eager, 0, nil) }, 5},
		"publish acknowledged":   {func(w *world) { w.create(eager, 0, nil) }, func(w *world) { w.ack() }, 1},
		"claim and start":        {func(w *world) { w.create(eager, 0, nil).ack() }, func(w *world) { w.claim(lease, true) }, 4},
		"succeed":                {func(w *world) { running(w) }, func(w *world) { w.succeed() }, 6},
		"simple run":             {nil, func(w *world) { simple(w) }, 16},
		"with idempotency owner": {nil, func(w *world) { w.create(eager, 0, idempotent()).ack().claim(lease, true).succeed() }, 18},
		"with both owners":       {nil, func(w *world) { w.create(eager, 0, owned()).ack().claim(lease, true).succeed() }, 20},
		"retry up to 15 minutes": {func(w *world) { running(w) }, func(w *world) { retry(w, time.Second).pass(time.Second).claim(lease, true) }, 10},
		"release up to 15 minutes": {func(w *world) { running(w) }, func(w *world) {
			w.end(&runlane.RunReleased{Attempt: 1, ResumeAt: w.now.Add(time.Second)}).pass(time.Second).claim(lease, true)
		}, 10},
		"wait through a delivery request": {func(w *world) { running(w) }, func(w *world) {
			retry(w, time.Hour).pass(time.Hour).look().other(w.request(w.now)).ack().claim(lease, true)
		}, 17},
		"abandoned attempt": {func(w *world) { running(w) }, func(w *world) {
			w.pass(59*time.Second).pass(2*time.Second).look().other(w.request(w.now)).ack().claim(lease, true)
		}, 11},
		"still active at the first look": {func(w *world) { w.create(eager, 0, nil).ack().pass(2 * time.Minute) }, func(w *world) { w.look() }, 3},
		"publish failure and its retry": {func(w *world) { w.create(eager, 0, nil) }, func(w *world) {
			w.fail(time.Second).pass(time.Second).flush().ack()
		}, 9}, // the acknowledgement is one of the simple run's units
		"deferred trigger, beyond a simple one": {func(w *world) { w.create(deferred, 0, nil) }, func(w *world) { w.flush().ack() }, 5}, // likewise
		"cancel a waiting run":                  {func(w *world) { w.create(eager, time.Hour, nil) }, func(w *world) { w.other(&runlane.RunCancelled{}) }, 6},
		"heartbeat":                             {func(w *world) { running(w) }, func(w *world) { w.pass(time.Second).heartbeat(lease) }, 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if row.before != nil {
				row.before(w)
			}
			before := w.store.Stats()
			row.after(w)
			used := w.store.Stats()
			if got := used.WriteUnits - before.WriteUnits; got != row.units {
				t.Errorf("%v write units, want %v: %v", got, row.units, used.Operations)
			}
		})
	}
}

func TestBudget_ReadsAndRoundTripsOfASimpleRun(t *testing.T) {
	w := newWorld(t)
	before := w.store.Stats()
	w.create(eager, 0, nil).ack()
	if got := w.store.Stats().Requests - before.Requests; got != 2 {
		t.Errorf("trigger and acknowledgement took %d requests, want 2", got)
	}
	before = w.store.Stats()
	run, err := w.store.GetRun(t.Context(), w.key())
	if err != nil {
		t.Fatal(err)
	}
	w.run = run
	w.claim(time.Minute, true).succeed()
	used := w.store.Stats().Usage.Minus(before.Usage)
	if used.Requests != 3 || used.ReadUnits > 2 {
		t.Errorf("a delivery took %d requests and %v read units, want read, commit, commit and at most 2", used.Requests, used.ReadUnits)
	}
}

func TestBudget_DuplicateTrigger_WritesNothing(t *testing.T) {
	w := newWorld(t)
	created := &runlane.RunCreated{Payload: []byte(`{}`), IdempotencyKey: "a", Retention: runlane.KeyRetention{TTL: time.Hour}}
	w.create(eager, 0, created)
	before := w.store.Stats()
	run, err := w.store.GetRunByIdempotencyKey(t.Context(), lane.OwnerKey{Environment: "test", TaskID: "bench.noop", Key: "a"})
	if err != nil || run.ID != w.run.ID {
		t.Fatal(run, err)
	}
	if used := w.store.Stats().Usage.Minus(before.Usage); used.WriteUnits != 0 || used.Requests != 2 || used.ReadUnits != 2 {
		t.Errorf("%+v, want two reads", used)
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

// A panic's stack stays in its log item: the retry after it costs what any retry costs, but for that item.
func TestBudget_LongFailure_DoesNotFattenTheRun(t *testing.T) {
	w := newWorld(t)
	w.create(eager, 0, nil).ack().claim(time.Minute, true)
	long := make([]byte, 4000)
	for i := range long {
		long[i] = byte('a' + i%7)
	}
	failure := runlane.NewFailure(runlane.ErrTaskPanicked, "panic: "+string(long[:500]), map[string]string{"stack": string(long)})
	w.end(&runlane.RunRetryScheduled{Attempt: 1, Failure: failure, RetryAt: w.now.Add(time.Second)})
	if size := itemSize(w.item().raw); size > 1024 {
		t.Errorf("the run item has %d bytes", size)
	}
	run, err := w.store.GetRun(t.Context(), w.key())
	if err != nil || run.Failure.Message != failure.Message || run.Failure.Meta["stack"] != failure.Meta["stack"] {
		t.Errorf("%+v %v", run.Failure, err)
	}
	if w.pass(time.Second).claim(time.Minute, true); w.meter.Stats().WriteUnits != 4 {
		t.Errorf("claim took %v units, want 4", w.meter.Stats().WriteUnits)
	}
}

// The meter's arithmetic is checked where DynamoDB Local is right: plain writes and their index changes.
func TestMeter_AgreesWithTheEmulatorOnPlainWrites(t *testing.T) {
	w := newWorld(t)
	w.create(eager, 0, nil).ack().pass(2 * time.Minute)
	counting := &countingClient{API: w.store.client}
	w.store.client = counting
	if w.look(); counting.units != w.meter.Stats().WriteUnits || counting.units != 3 {
		t.Errorf("the emulator says %v, the meter %v, want 3", counting.units, w.meter.Stats().WriteUnits)
	}
}

func TestMissingTable_IsConfigurationInvalid(t *testing.T) {
	w := newWorld(t)
	missing := New(w.store.client, "t-missing", nil)
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
