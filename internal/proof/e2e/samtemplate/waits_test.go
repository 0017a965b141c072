package samtemplate

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// startWaits makes runs that wait: one for a signal and for what it calls, and those of a flow.
func (s *stack) startWaits(ctx context.Context, t *testing.T, rt *core.Runtime) (ids []runlane.RunID) {
	t.Helper()
	waits, err := rt.Trigger(ctx, act.With(order{Do: "wait"}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := rt.Signal(ctx, waits.Run.ID, nod.With("yes"), nil); err != nil {
		t.Fatal(err)
	}
	f := runlane.NewFlow("flow")
	first := f.Add("first", act.With(order{Do: "permanent"}), nil)
	f.Add("never", act.With(order{}), &runlane.NodeOptions{After: []runlane.Node{first}})
	f.Add("second", one.With(order{}), &runlane.NodeOptions{After: []runlane.Node{first}, If: runlane.IfFailed})
	state, err := rt.StartFlow(ctx, f, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.waits = waits.Run.ID
	ids = append(ids, s.waits)
	for i := range state.Nodes {
		ids = append(ids, state.Nodes[i].RunID)
	}
	return ids
}

// mute is a storage whose process ends before it tells an end.
type mute struct{ lane.Storage }

func (m mute) Unwrap() lane.Storage { return m.Storage }

func (m mute) NotifyEnd(context.Context, *lane.NotifyCommand) (*lane.Commit, error) {
	return nil, errors.New("it ended before")
}

// leaveUntold leaves runs behind that have ended, and whose ends no process has told: those that a run has called which
// still executes. Telling the last of them changes nothing of that run, and wants that it has begun no wait.
func (s *stack) leaveUntold(ctx context.Context, t *testing.T, rt *core.Runtime) {
	t.Helper()
	caller := s.abandon(ctx, t, rt, act.With(order{Do: "call and hang"}))
	silent := s.openOn(t, 20*time.Minute, nil, func(l *lane.Lane) { l.Storage = mute{l.Storage} })
	for told := 0; told < 2; {
		tree, err := rt.Runs().Tree(ctx, caller, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(tree.Calls) == 0 || len(tree.Calls[0].Runs) < 2 {
			continue
		}
		for _, child := range tree.Calls[0].Runs {
			key := lane.RunKey{Environment: rt.Environment(), RunID: child.Run.ID}
			if _, err := silent.ExecuteDelivery(ctx, lane.Wakeup{RunKey: key, Queue: child.Run.Queue}, nil); err != nil {
				t.Fatal(err)
			}
			told++
		}
	}
}

// operateWaits calls what operators change of flows and of runs that wait.
func (s *stack) operateWaits(t *testing.T, rt *core.Runtime, look func(what string, err error)) {
	t.Helper()
	ctx := t.Context()
	_, err := rt.Flows().Retry(ctx, "flow", &core.RetryFlowOptions{NothingUndone: true})
	look("retry flow", err)
	_, err = rt.Flows().Cancel(ctx, "flow", nil)
	look("cancel flow", err)
	delayed, err := rt.Trigger(ctx, act.With(order{}), &runlane.TriggerOptions{Delay: time.Hour})
	look("trigger", err)
	look("signal", rt.Signal(ctx, delayed.Run.ID, nod.With("yes"), nil))
	_, err = rt.Runs().Resume(ctx, delayed.Run.ID, nil)
	look("resume", err)
}
