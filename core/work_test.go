package core_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// openQuiet opens a runtime without a log, unless the options have one. It closes at the end of the test.
func openQuiet(t *testing.T, l *lane.Lane, o core.Options, handlers ...runlane.Handler) *core.Runtime {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Handlers = append(o.Handlers, handlers...)
	rt, err := core.Open(t.Context(), l, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return rt
}

func newLane(t testing.TB, storage lane.Storage, transport lane.Transport) *lane.Lane {
	t.Helper()
	l, err := lane.New(storage, transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func openOn(t *testing.T, storage lane.Storage, transport lane.Transport, handlers ...runlane.Handler) *core.Runtime {
	t.Helper()
	return openQuiet(t, newLane(t, storage, transport), core.Options{}, handlers...)
}

// open opens a runtime on a fresh embedded lane whose storage change may wrap.
func open(t *testing.T, change func(lane.Storage) lane.Storage, handlers ...runlane.Handler) *core.Runtime {
	t.Helper()
	storage := lane.Storage(memlane.NewStorage(nil))
	if change != nil {
		storage = change(storage)
	}
	return openOn(t, storage, memlane.NewTransport(nil), handlers...)
}

// anyRuntime is a *core.Runtime, or what embeds one.
type anyRuntime interface {
	Trigger(ctx context.Context, call runlane.Call, options *runlane.TriggerOptions) (*runlane.TriggerResult, error)
	Tick(ctx context.Context, options *core.TickOptions) (*core.TickResult, error)
	Work(ctx context.Context, options *core.WorkOptions) error
	Runs() *core.Runs
}

func trigger(t *testing.T, rt anyRuntime, call runlane.Call) *runlane.Run {
	t.Helper()
	return triggerWith(t, rt, call, nil)
}

func triggerWith(t *testing.T, rt anyRuntime, call runlane.Call, options *runlane.TriggerOptions) *runlane.Run {
	t.Helper()
	result, err := rt.Trigger(t.Context(), call, options)
	if err != nil {
		t.Fatal(err)
	}
	return result.Run
}

func tick(t *testing.T, rt anyRuntime) {
	t.Helper()
	if _, err := rt.Tick(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
}

// startWork starts a worker and returns what stops it.
func startWork(t *testing.T, rt anyRuntime, options *core.WorkOptions) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- rt.Work(ctx, options) }() // ends with stop
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func runOf(t *testing.T, rt anyRuntime, id runlane.RunID) *runlane.Run {
	t.Helper()
	run, err := rt.Runs().Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func status(t *testing.T, rt anyRuntime, id runlane.RunID) runlane.Status {
	t.Helper()
	return runOf(t, rt, id).Status
}

// rest is a handler's work.
func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A retry that is near is not left behind; one beyond the bound is, and the drain says so.
func TestWork_Drain_WaitsForWhatIsNearAndReportsTheRest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		backoff, wait time.Duration
		status        runlane.Status
		left          int
	}{
		{10 * time.Millisecond, 0, runlane.StatusSucceeded, 0},
		{time.Minute, 2 * time.Minute, runlane.StatusSucceeded, 0},
		{10 * time.Millisecond, -1, runlane.StatusRetrying, 1},
		{time.Minute, 0, runlane.StatusRetrying, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			task := runlane.NewTask("near", &runlane.TaskOptions[payload]{
				Retry: runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(c.backoff), NoJitter: true},
			})
			rt := open(t, nil, task.Handle(func(_ context.Context, a *runlane.Attempt, _ payload) error {
				if a.Number == 1 {
					return errors.New("not yet")
				}
				return nil
			}))
			id := trigger(t, rt, task.With(payload{}))
			report := core.DrainReport{Left: -1}
			began := time.Now()
			if err := rt.Work(t.Context(), &core.WorkOptions{Drain: true, NoTick: true, DrainWait: c.wait, DrainReport: &report}); err != nil {
				t.Fatal(err)
			}
			if got := status(t, rt, id.ID); got != c.status || report.Left != c.left || (c.left > 0) != report.NextDue.After(began) {
				t.Errorf("backoff %s, bound %s: the run is %s, the report %+v", c.backoff, c.wait, got, report)
			}
		})
	}
}

// A drain whose context ends reports that, and what it leaves: the run that was put back, those it never reached and those not due.
func TestWork_InterruptedDrain_ReportsWhatIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		task := runlane.NewTask[payload]("slow", nil)
		rt := open(t, nil, task.Handle(func(ctx context.Context, _ *runlane.Attempt, _ payload) error { return rest(ctx, time.Hour) }))
		for range 5 {
			trigger(t, rt, task.With(payload{}))
		}
		later := triggerWith(t, rt, task.With(payload{}), &runlane.TriggerOptions{Delay: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		report := core.DrainReport{}
		if err := rt.Work(ctx, &core.WorkOptions{Drain: true, NoTick: true, Concurrency: 2, Grace: time.Second, DrainReport: &report}); err != nil {
			t.Fatal(err)
		}
		if !report.Interrupted || report.Left != 6 || report.More || report.NextDue.IsZero() || report.NextDue.After(later.RunAt) {
			t.Errorf("the report is %+v", report)
		}
	})
}

// A drain that its runtime's Close ends is interrupted, too.
func TestWork_DrainEndedByClose_ReportsWhatIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		task := runlane.NewTask[payload]("slow", nil)
		rt := open(t, nil, task.Handle(func(ctx context.Context, _ *runlane.Attempt, _ payload) error { return rest(ctx, time.Hour) }))
		trigger(t, rt, task.With(payload{}))
		report, worked := core.DrainReport{}, make(chan error)
		go func() { // ends with the runtime
			worked <- rt.Work(t.Context(), &core.WorkOptions{Drain: true, NoTick: true, Grace: time.Second, DrainReport: &report})
		}()
		synctest.Wait()
		if err := rt.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-worked; err != nil || !report.Interrupted || report.Left != 1 {
			t.Errorf("%v, the report is %+v", err, report)
		}
	})
}

// A report never says that nothing is left when that could not be read, and its reading is bounded.
func TestWork_Drain_WhatCannotBeReadIsReportedAsMore(t *testing.T) {
	t.Parallel()
	for name, interrupted := range map[string]bool{"finished": false, "interrupted": true} {
		synctest.Test(t, func(t *testing.T) {
			task := runlane.NewTask[payload]("slow", nil)
			rt := open(t, func(s lane.Storage) lane.Storage { return unanswered{s} },
				task.Handle(func(ctx context.Context, _ *runlane.Attempt, _ payload) error { return rest(ctx, time.Second) }))
			trigger(t, rt, task.With(payload{}))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if interrupted {
				cancel()
			}
			began, report := time.Now(), core.DrainReport{}
			if err := rt.Work(ctx, &core.WorkOptions{Drain: true, NoTick: true, DrainReport: &report}); err != nil {
				t.Fatal(err)
			}
			if want := (core.DrainReport{Interrupted: interrupted, More: true}); report != want || time.Since(began) > time.Minute {
				t.Errorf("%s: the report after %s is %+v", name, time.Since(began), report)
			}
		})
	}
}

// unanswered is a storage whose list of runs never answers.
type unanswered struct{ lane.Storage }

func (u unanswered) Unwrap() lane.Storage { return u.Storage }

func (unanswered) ListRuns(ctx context.Context, _ *lane.RunQuery) (*runlane.Page[runlane.RunSummary], error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestWork_Drain_PassesRunsItCannotExecute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		known, stranger := runlane.NewTask[payload]("known", nil), runlane.NewTask[payload]("stranger", nil)
		rt := open(t, nil, known.Handle(func(context.Context, *runlane.Attempt, payload) error { return nil }))
		var strangers, runs []*runlane.Run
		for range 60 { // more than one page of them lies before the one that can be executed
			strangers = append(strangers, trigger(t, rt, stranger.With(payload{})))
		}
		runs = append(runs, trigger(t, rt, known.With(payload{})))
		if err := rt.Work(t.Context(), &core.WorkOptions{Drain: true, NoTick: true}); err != nil {
			t.Fatal(err)
		}
		if got := status(t, rt, runs[0].ID); got != runlane.StatusSucceeded {
			t.Errorf("the known task's run is %s", got)
		}
		if got := status(t, rt, strangers[0].ID); got != runlane.StatusQueued {
			t.Errorf("the unknown task's run is %s", got)
		}
	})
}

// A worker owns its runs for the lease that it was given, and renews that while it executes them.
func TestWork_Lease_IsHowLongARunStaysWithAWorkerThatSaysNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ given, want time.Duration }{
		"none":         {0, runlane.DefaultLease},
		"the shortest": {core.MinLease, core.MinLease},
		"a long one":   {time.Hour, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				task := runlane.NewTask[payload]("long", nil)
				rt := open(t, nil, task.Handle(func(ctx context.Context, _ *runlane.Attempt, _ payload) error {
					return rest(ctx, 3*c.want)
				}))
				run := trigger(t, rt, task.With(payload{}))
				if err := rt.Work(t.Context(), &core.WorkOptions{Drain: true, NoTick: true, Lease: c.given}); err != nil {
					t.Fatal(err)
				}
				renewed := 0
				for event, err := range rt.Runs().Events(t.Context(), run.ID, nil) {
					if err != nil {
						t.Fatal(err)
					}
					var lease runlane.Lease
					switch body := event.Event.Body.(type) {
					case *runlane.RunLeaseClaimed:
						lease = body.Lease
					case *runlane.RunLeaseHeartbeat:
						lease = body.Lease
						renewed++
					default:
						continue
					}
					if got := lease.ExpiresAt.Sub(event.Event.OccurredAt); got != c.want {
						t.Errorf("event %d: the lease is %s, want %s", event.Sequence, got, c.want)
					}
				}
				if got := status(t, rt, run.ID); got != runlane.StatusSucceeded || renewed < 5 || renewed > 12 {
					t.Errorf("the run is %s, its lease was renewed %d times in three leases", got, renewed)
				}
			})
		})
	}
}

// The end of Close's context cuts the grace of workers short, and releases what is executed, by a worker or for a delivery.
func TestClose_WhenItsContextEnds_ReleasesAttempts(t *testing.T) {
	t.Parallel()
	for name, execute := range map[string]func(rt *core.Runtime, id runlane.RunID) error{
		"of a delivery": func(rt *core.Runtime, id runlane.RunID) error {
			return errOf(rt.ExecuteDelivery(context.Background(), lane.Wakeup{RunKey: lane.RunKey{RunID: id}}, nil))
		},
		"of a worker": func(rt *core.Runtime, _ runlane.RunID) error {
			return rt.Work(context.Background(), &core.WorkOptions{Grace: time.Hour})
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			task := runlane.NewTask[payload]("long", nil)
			storage, cause := memlane.NewStorage(nil), error(nil)
			rt := open(t, func(lane.Storage) lane.Storage { return storage }, task.Handle(func(ctx context.Context, _ *runlane.Attempt, _ payload) error {
				<-ctx.Done()
				cause = context.Cause(ctx)
				return ctx.Err()
			}))
			id := trigger(t, rt, task.With(payload{})).ID
			ended := make(chan error, 1)
			go func() { ended <- execute(rt, id) }() // ends with the runtime
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			began := time.Now()
			if err := errors.Join(rt.Close(ctx), <-ended); err != nil {
				t.Fatal(name, err)
			}
			run, took := stored(t, storage, id), time.Since(began)
			if run.Status != runlane.StatusReleased || run.Counters.Failures != 0 || !errors.Is(cause, runlane.ErrShutdown) || took < time.Minute || took > 65*time.Second {
				t.Errorf("%s: after %s, by %v: %+v", name, took, cause, run)
			}
		})
	}
}

// hangingStorage answers the scan for cancellations only when its caller has given up.
type hangingStorage struct{ lane.Storage }

func (s hangingStorage) Unwrap() lane.Storage { return s.Storage }

func (s hangingStorage) ListRunsNeedingCancellationFinalization(
	ctx context.Context, _ *lane.DueQuery,
) (*runlane.Page[lane.RunRef], error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestHazard24_AStageThatHangs_UsesUpItsOwnShareOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		task := runlane.NewTask[payload]("any", nil)
		rt := open(t, func(s lane.Storage) lane.Storage { return hangingStorage{s} })
		triggerWith(t, rt, task.With(payload{}), &runlane.TriggerOptions{Deferred: true})
		began := time.Now()
		result, err := rt.Tick(t.Context(), &core.TickOptions{Deadline: began.Add(60 * time.Second)})
		if err != nil || !result.Cancelled.More || !result.More || result.Flushed.Done != 1 {
			t.Fatalf("result is %+v, %v", result, err)
		}
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("the tick took %s", took)
		}
	})
}
