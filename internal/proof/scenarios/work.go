package scenarios

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

func workScenarios() []scenario {
	return []scenario{
		{"a worker takes runs from trigger to success", nil, workEndToEnd, false},
		{"a worker that is stopped lets attempts finish", nil, workGrace, false},
		{"after the grace a worker releases what still executes", nil, workShutdown, false},
		{"a drain executes everything that is due and returns", nil, workDrains, false},
		{"the next run is the one that is due first, and only one is executed", nil, workNext, false},
		{"a runtime that closes stops its workers", nil, workCloses, false},
		{"waiting for a run ends with the run, or with the context", nil, workWaits, false},
		{"an idle worker that polls asks less and less", nil, workPolls, true},
		{"a worker ticks at the start and every minute", nil, workTicks, true},
		{"a handler that ignores the shutdown does not hold the worker up", nil, workUnresponsive, true},
	}
}

// ownTransport opens the scene on the lane's own transport, as programs do.
func ownTransport(t *testing.T, h Harness, handlers ...runlane.Handler) *scene {
	t.Helper()
	return ownTransportWith(t, h, core.Options{Handlers: handlers})
}

func ownTransportWith(t *testing.T, h Harness, options core.Options) *scene {
	t.Helper()
	l := h.NewLane(t)
	s := &scene{
		T:       t,
		storage: &scriptedStorage{Storage: l.Storage},
		clock:   NewClock(time.Now()),
		logs:    &logBuffer{},
		faults:  h.faults,
		known:   map[runlane.RunID]bool{},
	}
	s.clock.passed = h.passed(t)
	if h.faults != nil {
		faulty, err := lane.New(h.faults.storage(l.Storage), h.faults.transport(l.Transport), nil)
		s.must(err)
		l = faulty
	}
	s.lane = l
	s.options = options
	s.options.Environment, s.options.Logger = newEnvironment(), discard()
	s.rt = s.open(l)
	return s
}

// work starts a worker; stop ends it and returns what it returned.
func (s *scene) work(options *core.WorkOptions) (stop func() error) {
	ctx, cancel := context.WithCancel(s.Context())
	worked := make(chan error, 1)
	go func() { worked <- s.rt.Work(ctx, options) }() // ends with stop, at the latest with the scenario
	return sync.OnceValue(func() error {
		cancel()
		return <-worked
	})
}

func workEndToEnd(t *testing.T, h Harness) {
	var executed atomic.Int32
	task, handler := job("scenario.work", &runlane.TaskOptions[jobPayload]{
		Retry: runlane.Retry{MaxAttempts: 3, Backoff: runlane.Fixed(time.Millisecond), NoJitter: true},
	}, func(_ context.Context, a *runlane.Attempt) error {
		executed.Add(1)
		if a.Number == 1 && a.Run.Meta["fail"] != "" {
			return runlane.ErrTaskFailed
		}
		return a.SetOutput(a.Run.Meta["n"])
	})
	s := ownTransport(t, h, handler)
	stop := s.work(&core.WorkOptions{Concurrency: 4})
	defer func() { _ = stop() }()
	var runs []*runlane.Run
	for n := range 20 {
		meta := map[string]string{"n": string(rune('a' + n))}
		if n%5 == 0 {
			meta["fail"] = "once"
		}
		runs = append(runs, s.trigger(task.With(jobPayload{N: n}), &runlane.TriggerOptions{Meta: meta}))
	}
	_, limit := s.faults.pause()
	ctx, cancel := context.WithTimeout(s.Context(), limit)
	defer cancel()
	for n, run := range runs {
		final, err := s.rt.Wait(ctx, run.ID)
		s.must(err)
		s.wantStatus(final, runlane.StatusSucceeded)
		var output string
		if ok, err := final.DecodeOutput(&output); !ok || err != nil || output != string(rune('a'+n)) {
			t.Fatalf("output is %s", final.Output)
		}
	}
	s.must(stop())
	if got := executed.Load(); got != 24 {
		t.Fatalf("%d attempts, want 20 and 4 retries", got)
	}
}

func workGrace(t *testing.T, h Harness) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	task, handler := job("scenario.grace", nil, func(ctx context.Context, _ *runlane.Attempt) error {
		close(begun)
		<-goOn
		return ctx.Err()
	})
	s := ownTransport(t, h, handler)
	stop := s.work(nil)
	run := s.trigger(task.With(jobPayload{}), nil)
	<-begun
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	close(goOn)
	s.must(<-stopped)
	s.wantStatus(s.get(run.ID), runlane.StatusSucceeded)
}

func workShutdown(t *testing.T, h Harness) {
	begun := make(chan struct{}, 1)
	task, handler := job("scenario.stop", nil, func(ctx context.Context, _ *runlane.Attempt) error {
		begun <- struct{}{}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	s := ownTransport(t, h, handler)
	stop := s.work(&core.WorkOptions{Grace: time.Millisecond})
	run := s.trigger(task.With(jobPayload{}), nil)
	<-begun
	s.must(stop())
	after := s.get(run.ID)
	s.wantStatus(after, runlane.StatusReleased)
	if after.Counters != (runlane.Counters{Attempts: 1, Releases: 1}) {
		t.Fatalf("counters are %+v, want no failure", after.Counters)
	}
}

func workDrains(t *testing.T, h Harness) {
	var executed atomic.Int32
	var task *runlane.Task[jobPayload]
	task, handler := job("scenario.drain", nil, func(ctx context.Context, a *runlane.Attempt) error {
		if executed.Add(1) == 1 {
			_, err := a.Trigger(ctx, task.With(jobPayload{}), nil) // more work while it drains
			return err
		}
		return nil
	})
	s := newScene(t, h, handler)
	for range 7 {
		s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Deferred: true})
	}
	s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Delay: time.Hour})
	s.until("all due runs are drained", func() bool { // an index may be late
		s.must(s.rt.Work(s.Context(), &core.WorkOptions{Drain: true, NoTick: true, Concurrency: 3}))
		return executed.Load() >= 8
	})
	if got := executed.Load(); got != 8 {
		t.Fatalf("%d runs executed", got)
	}
	for _, claim := range s.storage.claimed() {
		if claim.ByWakeup {
			t.Fatal("a claim of a poll worker says that a wakeup led to it")
		}
	}
}

func workNext(t *testing.T, h Harness) {
	task, handler := job("scenario.next", nil, succeed)
	foreign, _ := job("scenario.next.elsewhere", nil, succeed)
	s := newScene(t, h, handler)
	next := func() *core.DeliveryResult {
		t.Helper()
		result, err := s.rt.ExecuteNext(s.Context(), nil)
		s.must(err)
		return result
	}
	if result := next(); result.Run != nil {
		t.Fatalf("nothing is due, and %s was executed", result.Run.ID)
	}
	deferred := func(task *runlane.Task[jobPayload], delay time.Duration) *runlane.Run {
		return s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Deferred: true, Delay: delay})
	}
	deferred(foreign, time.Second) // due first, and no handler here
	second, first := deferred(task, time.Minute), deferred(task, 2*time.Second)
	deferred(task, time.Hour)
	s.clock.Advance(2 * time.Minute)
	for _, want := range []*runlane.Run{first, second} {
		var result *core.DeliveryResult
		s.until("the next run is found", func() bool { // an index may be late
			result = next()
			return result.Run != nil
		})
		if result.Run.ID != want.ID || result.Run.Status != runlane.StatusSucceeded {
			t.Fatalf("%s was executed and is %s, want %s", result.Run.ID, result.Run.Status, want.ID)
		}
	}
	if result := next(); result.Run != nil || result.Ignored != "" {
		t.Fatalf("nothing else is due, and the result is %+v", result)
	}
}

func workCloses(t *testing.T, h Harness) {
	_, handler := job("scenario.close", nil, succeed)
	s := ownTransport(t, h, handler)
	worked := make(chan error, 1)
	go func() { worked <- s.rt.Work(context.WithoutCancel(s.Context()), nil) }() // ends with the runtime
	s.until("the worker works", func() bool {
		_, err := s.rt.Runs().Get(s.Context(), "run_absent")
		return runlane.CodeOf(err) == runlane.ErrRunNotFound
	})
	s.must(s.rt.Close(s.Context()))
	if err := <-worked; err != nil && runlane.CodeOf(err) != runlane.ErrConfigurationInvalid { // closed before it began
		t.Fatalf("work returned %v", err)
	}
	_, err := s.rt.Trigger(s.Context(), runlane.Call{}, nil)
	s.wantCode(err, runlane.ErrConfigurationInvalid)
}

func workWaits(t *testing.T, h Harness) {
	task, handler := job("scenario.wait", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	ctx, cancel := context.WithCancel(s.Context())
	s.storage.script(func() { s.storage.onRead = cancel }) // it waits, or is about to
	_, err := s.rt.Wait(ctx, run.ID)
	s.wantCode(err, runlane.ErrOperationCancelled)
	_, err = s.rt.Wait(s.Context(), "run_absent")
	s.wantCode(err, runlane.ErrRunNotFound)
	s.execute(run)
	final, err := s.rt.Wait(s.Context(), run.ID)
	s.must(err)
	s.wantStatus(final, runlane.StatusSucceeded)
}

// countedScans counts what a polling worker asks.
type countedScans struct {
	lane.Storage
	scans, ticks atomic.Int32
}

func (c *countedScans) Unwrap() lane.Storage { return c.Storage }

func (c *countedScans) ListRunnableRuns(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	c.scans.Add(1)
	return c.Storage.ListRunnableRuns(ctx, q)
}

func (c *countedScans) ListRunsNeedingDelivery(
	ctx context.Context, q *lane.DueQuery,
) (*runlane.Page[lane.RunRef], error) {
	c.ticks.Add(1)
	return c.Storage.ListRunsNeedingDelivery(ctx, q)
}

func workPolls(t *testing.T, h Harness) {
	task, handler := job("scenario.poll", nil, succeed)
	var counted *countedScans
	s := openScene(t, h, core.Options{Handlers: []runlane.Handler{handler}, World: &core.World{}}, func(s *scene) {
		counted = &countedScans{Storage: s.storage.Storage}
		s.storage.Storage = counted
	})
	stop := s.work(&core.WorkOptions{NoTick: true})
	s.must(wait(s.Context(), 10*time.Minute))
	// 1 + 2 + 4 + … + 32 s, then one a minute.
	if n := counted.scans.Load(); n < 12 || n > 20 {
		t.Errorf("%d polls in ten idle minutes", n)
	}
	run := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Deferred: true})
	s.must(wait(s.Context(), 2*time.Minute))
	s.wantStatus(s.get(run.ID), runlane.StatusSucceeded)
	s.must(stop())
}

func workTicks(t *testing.T, h Harness) {
	_, handler := job("scenario.ticks", nil, succeed)
	var counted *countedScans
	s := openScene(t, h, core.Options{Handlers: []runlane.Handler{handler}, World: &core.World{}}, func(s *scene) {
		s.transport.SetMaxDelay(0)
		counted = &countedScans{Storage: s.storage.Storage}
		s.storage.Storage = counted
	})
	stop := s.work(nil)
	s.must(wait(s.Context(), 10*time.Minute))
	every := int32(1)
	if near, ok := lane.As[interface{ TickEvery() time.Duration }](s.lane.Storage); ok {
		every = int32(time.Minute / near.TickEvery())
	}
	// Two scans a tick: due runs, and waits to send ahead.
	if n := counted.ticks.Load(); n < 2*9*every || n > 2*14*every {
		t.Errorf("%d scans in ten minutes", n)
	}
	s.must(stop())
}

func workUnresponsive(t *testing.T, h Harness) {
	begun, stubborn := make(chan struct{}), make(chan struct{})
	task, handler := job("scenario.deaf", nil, func(_ context.Context, a *runlane.Attempt) error {
		if a.Number > 1 {
			return nil
		}
		close(begun)
		<-stubborn
		return nil
	})
	s := newVirtualScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Deferred: true})
	stop := s.work(&core.WorkOptions{NoTick: true, Grace: 10 * time.Second})
	<-begun
	began := time.Now()
	s.must(stop())
	if took := time.Since(began); took < 10*time.Second || took > 30*time.Second {
		t.Fatalf("the worker stopped after %s", took)
	}
	after := s.get(run.ID)
	s.wantStatus(after, runlane.StatusReleased)
	if left := after.RunAt.Sub(s.now()); left <= 0 || left > runlane.DefaultLease {
		t.Errorf("resumes in %s, and its handler may work until the lease would have ended", left)
	}
	close(stubborn)
	s.must(wait(s.Context(), runlane.DefaultLease))
	s.wantStatus(s.execute(after), runlane.StatusSucceeded) // on the wakeup of its release
}
