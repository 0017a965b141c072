package core_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

// executeOnce executes one run in the bubble of the test and returns it.
func executeOnce(
	t *testing.T, l *lane.Lane, f func(context.Context, *runlane.Attempt) error,
) (*core.Runtime, *runlane.Run) {
	t.Helper()
	task := runlane.NewTask[struct{}]("steps", nil)
	rt := openQuiet(t, l, core.Options{
		Handlers: []runlane.Handler{task.Handle(func(ctx context.Context, a *runlane.Attempt, _ struct{}) error {
			return f(ctx, a)
		})},
	})
	result, err := rt.RunNow(t.Context(), task.With(struct{}{}), nil)
	if err != nil {
		t.Fatal(err)
	}
	return rt, result.Run
}

// A pause of a second is slept by the attempt; a longer one ends it.
func TestSleep_ShortOnesAreSleptByTheAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var short, long time.Duration
		_, run := executeOnce(t, memlane.New(), func(ctx context.Context, a *runlane.Attempt) error {
			began := time.Now()
			if err := a.Sleep(ctx, "short", time.Second); err != nil {
				return err
			}
			short, began = time.Since(began), time.Now()
			err := a.Sleep(ctx, "long", time.Second+time.Millisecond)
			long = time.Since(began)
			return err
		})
		if run.Status != runlane.StatusReleased || short < time.Second-time.Millisecond || long != 0 {
			t.Errorf("%s, slept %s and %s", run.Status, short, long)
		}
	})
}

// A checkpoint is written at once, then once a second, and when the attempt ends.
func TestCheckpoint_IsWrittenOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := memlane.New()
		counted := &keepCounter{Storage: l.Storage}
		l.Storage = counted
		rt, run := executeOnce(t, l, func(ctx context.Context, a *runlane.Attempt) error {
			for n := range 2500 {
				if err := a.Checkpoint(ctx, "rows", n); err != nil {
					return err
				}
				time.Sleep(time.Millisecond)
			}
			return nil
		})
		records, err := rt.Runs().Steps(t.Context(), run.ID)
		if err != nil || len(records) != 1 || string(records[0].Result) != "2499" {
			t.Errorf("%+v, %v", records, err)
		}
		if counted.n != 4 {
			t.Errorf("%d writes in 2.5 seconds", counted.n)
		}
	})
}

type keepCounter struct {
	lane.Storage

	n int
}

func (k *keepCounter) Unwrap() lane.Storage { return k.Storage }

func (k *keepCounter) KeepRecord(ctx context.Context, c *lane.KeepCommand) (*lane.StepRecord, error) {
	k.n++
	return k.Storage.KeepRecord(ctx, c)
}

// What has been done outlives an outage of the storage: the record is tried again.
func TestStep_OutageWhileRecording_IsOutlived(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := memlane.New()
		plan := lanetest.NewFaultPlan(t, 0,
			lanetest.FaultRule{Method: "KeepRecord", Kind: lanetest.FaultBefore, Rate: 1, Times: 2},
			lanetest.FaultRule{Method: "KeepRecord", Kind: lanetest.FaultAfter, Rate: 1, Times: 1})
		l.Storage = lanetest.FaultyStorage(l.Storage, plan)
		calls := 0
		_, run := executeOnce(t, l, func(ctx context.Context, a *runlane.Attempt) error {
			return a.Do(ctx, "charge", func(context.Context) error { calls++; return nil })
		})
		if run.Status != runlane.StatusSucceeded || calls != 1 {
			t.Errorf("%s after %d calls: %+v", run.Status, calls, run.Failure)
		}
	})
}

// A lane without the ability refuses steps before anything is executed.
func TestStep_LaneThatKeepsNoRecords_Refuses(t *testing.T) {
	t.Parallel()
	l := memlane.New()
	limited := limitedStorage{Storage: l.Storage, capabilities: l.Storage.Capabilities()}
	limited.capabilities.SuspendsRuns = false
	l.Storage = limited
	executed := false
	_, run := executeOnce(t, l, func(ctx context.Context, a *runlane.Attempt) error {
		return a.Do(ctx, "charge", func(context.Context) error { executed = true; return nil })
	})
	if run.Failure.Code != runlane.ErrCapabilityUnsupported || executed {
		t.Errorf("%+v, executed: %t", run.Failure, executed)
	}
}

// All results of a run together are bounded, since each attempt reads all of them.
func TestStep_ResultsOfARunAreBounded(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", runlane.MaxPayloadBytes-2)
	_, run := executeOnce(t, memlane.New(), func(ctx context.Context, a *runlane.Attempt) error {
		for n := range runlane.MaxStepsBytes/runlane.MaxPayloadBytes + 1 {
			_, err := runlane.Step(ctx, a, strings.Repeat("n", n+1), func(context.Context) (string, error) { return large, nil })
			if err != nil {
				return runlane.Permanent(err)
			}
		}
		return nil
	})
	if run.Failure.Code != runlane.ErrValidationFailed || !strings.Contains(run.Failure.Message, "67108864") {
		t.Errorf("%s: %+v", run.Status, run.Failure)
	}
}
