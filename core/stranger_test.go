package core_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// computed is the id that the runtime computes for a child, a node or a repetition.
func computed(format string, args ...any) runlane.RunID {
	sum := sha256.Sum256(fmt.Appendf(nil, format, args...))
	return runlane.RunID("run_" + hex.EncodeToString(sum[:16]))
}

func openStranger(t *testing.T, l *lane.Lane, handlers ...runlane.Handler) *mover {
	t.Helper()
	return &mover{Runtime: openQuiet(t, l, core.Options{}, handlers...), t: t}
}

// childless loses each child that is to be made.
type childless struct {
	lane.Storage

	on bool
}

func (s *childless) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	made, ok := c.Transition.Events[0].Body.(*runlane.RunCreated)
	if ok && s.on && made.Source.Type == runlane.SourceCall {
		return nil, &runlane.Error{Code: runlane.ErrStorageUnavailable, Message: "died"}
	}
	return s.Storage.AppendRunEvents(ctx, c)
}

// A run that someone triggered under the id of a child tells its end to no one: the call says so, for good, and neither waits nor
// takes its output. A cancellation of the caller leaves it alone.
func TestStranger_UnderTheIDOfAChild_FailsTheCall(t *testing.T) {
	t.Parallel()
	for _, ended := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := memlane.New()
			storage := &childless{Storage: l.Storage, on: true}
			l.Storage = storage
			child := runlane.NewFunc[int, int]("child", nil)
			parent := runlane.NewTask("parent", &runlane.TaskOptions[int]{Retry: runlane.Retry{MaxAttempts: 5}})
			rt := openStranger(t, l,
				child.Handle(func(context.Context, *runlane.Attempt, int) (int, error) { return 1, nil }),
				parent.Handle(func(ctx context.Context, a *runlane.Attempt, _ int) error {
					got, err := child.Call(ctx, a, 7, nil)
					if err == nil {
						t.Errorf("the output of another run is taken: %d", got)
					}
					return err
				}))
			id := rt.trigger(parent.With(1), &runlane.TriggerOptions{RunID: "run_p"})
			rt.drain()
			storage.on = false
			run := runOf(t, rt, id)
			options := &runlane.TriggerOptions{RunID: computed("run_p:%d:child:0", run.CreatedAt.UnixMilli())}
			if !ended {
				options.Delay = 24 * time.Hour
			}
			stranger := rt.trigger(child.With(7), options)
			for range 10 {
				rt.drain()
				time.Sleep(time.Minute)
			}
			before := run.Counters.Failures
			run = runOf(t, rt, id)
			if run.Status != runlane.StatusFailed || run.Failure.Code != runlane.ErrValidationFailed ||
				run.Counters.Failures != before+1 {
				t.Errorf("stranger ended: %t: the caller is %s after %d failures, %d before: %+v", ended, run.Status,
					run.Counters.Failures, before, run.Failure)
			}
			tree, err := rt.Runs().Tree(t.Context(), id, nil)
			if err != nil || len(tree.Calls) != 1 || len(tree.Calls[0].Runs) != 0 {
				t.Errorf("the tree has %+v, %v", tree, err)
			}
			if got, err := rt.Runs().Get(t.Context(), stranger); err != nil || got.Status == runlane.StatusCancelled {
				t.Errorf("the other run is %s, %v", got.Status, err)
			}
		})
	}
}

// A run under the id of a node is not the node: the retry that meets it says so, the flow ends by a cancellation, and the next
// retry makes runs under other ids.
func TestStranger_UnderTheIDOfANode_IsNoNode(t *testing.T) {
	t.Parallel()
	task := runlane.NewTask[int]("task", nil)
	fails := true
	rt := openStranger(t, memlane.New(), task.Handle(func(context.Context, *runlane.Attempt, int) error {
		if fails {
			return runlane.Permanent(errors.New("no"))
		}
		return nil
	}))
	f := runlane.NewFlow("f")
	a := f.Add("a", task.With(1), nil)
	f.Add("b", task.With(2), &runlane.NodeOptions{After: []runlane.Node{a}})
	state, err := rt.StartFlow(t.Context(), f, nil)
	if err != nil {
		t.Fatal(err)
	}
	rt.drain()
	fails = false
	id := computed("flow:f:%d:1:a", state.CreatedAt.UnixMilli())
	rt.trigger(task.With(1), &runlane.TriggerOptions{RunID: id})
	_, err = rt.Flows().Retry(t.Context(), "f", nil)
	if runlane.CodeOf(err) != runlane.ErrValidationFailed {
		t.Fatalf("the retry: %v", err)
	}
	if _, err := rt.WaitNode(t.Context(), a); runlane.CodeOf(err) != runlane.ErrValidationFailed {
		t.Errorf("a wait for the node: %v", err)
	}
	rt.drain()
	if state, err = rt.Flows().Cancel(t.Context(), "f", nil); err != nil || state.Status != runlane.FlowCancelled {
		t.Fatalf("cancelled: %v, %v", state, err)
	}
	if _, err := rt.Flows().Retry(t.Context(), "f", nil); err != nil {
		t.Fatal(err)
	}
	rt.drain()
	if state, err = rt.Flows().Get(t.Context(), "f"); err != nil || state.Status != runlane.FlowCompleted {
		t.Errorf("in the end: %v, %v", state, err)
	}
}

// A run under the id of a repetition is none.
func TestStranger_UnderTheIDOfARerun_IsRefused(t *testing.T) {
	t.Parallel()
	task := runlane.NewTask[int]("task", nil)
	rt := openStranger(t, memlane.New(), task.Handle(func(context.Context, *runlane.Attempt, int) error { return nil }))
	id := rt.trigger(task.With(1), nil)
	rt.drain()
	run := runOf(t, rt, id)
	rt.trigger(task.With(1), &runlane.TriggerOptions{
		RunID: computed("default\x00rerun\x00%s\x00%d", id, run.CreatedAt.UnixMilli()),
	})
	if again, err := rt.Runs().Rerun(t.Context(), id, nil); runlane.CodeOf(err) != runlane.ErrValidationFailed {
		t.Errorf("%v, %v", again, err)
	}
}

// A run that someone triggered under the id of an occurrence is none of the schedule's: the occurrence is skipped, with the reason, and
// the schedule goes on. The other run is left alone.
func TestStranger_UnderTheIDOfAnOccurrence_SkipsItAlone(t *testing.T) {
	t.Parallel()
	for _, policy := range []runlane.Overlap{
		runlane.OverlapAllow, runlane.OverlapForbid, runlane.OverlapReplace, runlane.OverlapQueueLatest,
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			w := newTwoTickers(t, time.Minute, policy)
			other := runlane.NewTask[payload]("other", nil)
			id := computed("default\x00schedule\x00s\x00%d", w.now.Add(2*time.Minute).UnixMilli())
			triggerWith(t, w.runtimes[0], other.With(payload{}), &runlane.TriggerOptions{RunID: id})
			made := []runlane.RunID{}
			for range 4 {
				w.now = w.now.Add(time.Minute)
				w.tick(0)
				for o, err := range w.runtimes[0].Schedules().Occurrences(t.Context(), "s", false) {
					if taken := o.FireTime.Minute() == 2; err != nil || taken != (o.Skipped == runlane.SkippedIDTaken) {
						t.Fatalf("an occurrence: %+v, %v", o, err)
					}
					if o.RunID == "" || o.FireTime.Before(w.now) {
						continue
					}
					if made = append(made, o.RunID); policy == runlane.OverlapForbid || policy == runlane.OverlapQueueLatest {
						if _, err := w.runtimes[0].Runs().Cancel(t.Context(), o.RunID, nil); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			if len(made) != 3 {
				t.Errorf("the schedule made %v", made)
			}
			if run, err := w.runtimes[0].Runs().Get(t.Context(), id); err != nil || run.Status != runlane.StatusQueued {
				t.Errorf("the other run: %+v, %v", run, err)
			}
		})
	}
}
