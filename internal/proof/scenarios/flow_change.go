package scenarios

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

func (s *scene) cancelFlow(id runlane.FlowID) *runlane.FlowState {
	s.Helper()
	state, err := s.rt.Flows().Cancel(s.Context(), id, &core.CancelFlowOptions{
		ChangeOptions: core.ChangeOptions{Reason: "Ctrl-C"},
	})
	s.must(err)
	return state
}

func flowCancelled(t *testing.T, h Harness) {
	s := newScene(t, h, doubling())
	s.startFlow(graph("cancelled", "a", "b a", "c? a", "d! b", "e? b", "f"))
	s.die(s.node("cancelled", "a").ID)
	s.cancelFlow("cancelled")
	s.wantFlow("cancelled", runlane.FlowActive, "cancellation_requested cancelled waits queued cancelled cancelled")
	s.clock.Advance(2 * time.Minute)
	s.until("the owner is gone", func() bool {
		s.tick()
		return s.node("cancelled", "c").Status == runlane.StatusQueued
	})
	s.does("cancelled", "c", "d")
	s.wantFlow("cancelled", runlane.FlowCancelled, "cancelled cancelled succeeded succeeded cancelled cancelled")
	_, err := s.rt.Flows().Cancel(s.Context(), "cancelled", nil)
	s.wantCode(err, runlane.ErrValidationFailed)
}

func flowCancelledTwice(t *testing.T, h Harness) {
	s := newScene(t, h, doubling())
	s.startFlow(graph("twice", "a", "b! a", "c! b"))
	s.cancelFlow("twice")
	s.wantFlow("twice", runlane.FlowActive, "cancelled queued waits")
	s.cancelFlow("twice") // whose answer was lost
	s.wantFlow("twice", runlane.FlowActive, "cancelled queued waits")
	_, err := s.rt.Flows().Cancel(s.Context(), "twice", &core.CancelFlowOptions{Everything: true})
	s.must(err)
	s.wantFlow("twice", runlane.FlowCancelled, "cancelled cancelled cancelled")
}

func flowSwept(t *testing.T, h Harness) {
	s := newScene(t, h, doubling())
	s.startFlow(graph("swept", "a", "b a", "c! a"))
	key := lane.FlowKey{Environment: s.rt.Environment(), FlowID: "swept"}
	record, err := s.storage.Storage.GetFlow(s.Context(), &lane.FlowRead{FlowKey: key})
	s.must(err)
	record.Closed, record.TendAt = 1, runlane.UTCMillis(s.clock.Now())
	_, err = s.storage.Storage.PutFlow(s.Context(), &lane.FlowCommand{Environment: s.rt.Environment(), Flow: *record})
	s.must(err) // and its process died
	s.clock.Advance(11 * time.Minute)
	s.until("its nodes are asked", func() bool {
		s.tick()
		return s.node("swept", "c").Status == runlane.StatusQueued
	})
	s.does("swept", "c")
	s.wantFlow("swept", runlane.FlowCancelled, "cancelled cancelled succeeded")
}

// The maker is an hour late, and done between the tick's look and its write: its call has succeeded.
func flowLate(t *testing.T, h Harness) {
	s := newScene(t, h, doubling())
	f := graph("late", "a", "b a", "c? b")
	s.unmade(f, "a")
	s.clock.Advance(61 * time.Minute)
	done := false
	s.storage.script(func() {
		s.storage.onFlow = func() {
			s.storage.script(func() { s.storage.onFlow = nil })
			s.startFlow(f)
			done = true
		}
	})
	s.until("the tick comes to it", func() bool {
		s.tick()
		return done
	})
	s.does("late", "a", "b")
	s.wantFlow("late", runlane.FlowCompleted, "succeeded succeeded cancelled")
}

func flowIncomplete(t *testing.T, h Harness) {
	s := newScene(t, h, doubling())
	s.unmade(graph("incomplete", "a", "b a", "c? a b", "d! b", "e"), "b")
	s.clock.Advance(30 * time.Minute)
	s.tick()
	if s.flow("incomplete").Cancelled {
		t.Error("it was closed before its hour")
	}
	s.clock.Advance(31 * time.Minute)
	s.until("it is closed", func() bool {
		s.tick()
		return s.flow("incomplete").Cancelled
	})
	s.until("d goes on", func() bool {
		s.tick()
		return s.node("incomplete", "d").Status == runlane.StatusQueued
	})
	s.does("incomplete", "d")
	s.wantFlow("incomplete", runlane.FlowCancelled, "  cancelled succeeded cancelled")
	s.startFlow(graph("incomplete", "a", "b a", "c? a b", "d! b", "e")) // changes nothing
	s.wantFlow("incomplete", runlane.FlowCancelled, "  cancelled succeeded cancelled")
	_, err := s.rt.Flows().Retry(s.Context(), "incomplete", nil)
	s.wantCode(err, runlane.ErrValidationFailed)
}

func flowRetried(t *testing.T, h Harness) {
	s := newScene(t, h, failingDouble(2))
	s.startFlow(graph("retried", "a", "b a", "c b", "d? b", "e! b", "f a", "g? f"))
	_, err := s.rt.Flows().Retry(s.Context(), "retried", nil)
	s.wantCode(err, runlane.ErrValidationFailed)
	s.does("retried", "a", "b", "d", "e", "f")
	s.wantFlow("retried", runlane.FlowFailed, "succeeded failed cancelled succeeded succeeded succeeded cancelled")
	before := s.flow("retried")
	for _, err := range []error{
		errorOf(s.rt.Flows().PlanRetry(s.Context(), "retried", nil)),
		errorOf(s.rt.Flows().Retry(s.Context(), "retried", nil)),
	} {
		if e := s.wantCode(err, runlane.ErrValidationFailed); !strings.Contains(e.Message, `undone by "d",`) || e.Hint == "" {
			t.Errorf("d has undone b, and the error is %v", e)
		}
	}
	options := &core.RetryFlowOptions{Number: 1, NothingUndone: true}
	options.Reason = "the printer has paper"
	planned, err := s.rt.Flows().PlanRetry(s.Context(), "retried", options)
	s.must(err)
	want := []string{"b", "c", "d", "e"}
	if !slices.Equal(planned, want) || !reflect.DeepEqual(s.flow("retried"), before) {
		t.Errorf("a retry would renew %v, want %v", planned, want)
	}
	state, err := s.rt.Flows().Retry(s.Context(), "retried", options)
	s.must(err)
	for i, n := range state.Nodes {
		again := slices.Contains([]string{"b", "c", "d", "e"}, n.Name)
		if (n.RunID != before.Nodes[i].RunID) != again || (n.Retries == 1) != again {
			t.Errorf("node %s: %+v", n.Name, n)
		}
		if effect := s.get(n.RunID).EffectID(); effect != string(before.Nodes[i].RunID) {
			t.Errorf("node %s has the effects of %s", n.Name, effect)
		}
	}
	s.wantFlow("retried", runlane.FlowActive, "succeeded queued waits waits waits succeeded cancelled")
	s.does("retried", "b", "c", "e")
	s.wantFlow("retried", runlane.FlowCompleted,
		"succeeded succeeded succeeded cancelled succeeded succeeded cancelled")
	sized := s.flow("retried")
	s.must(s.rt.Flows().ReadSizes(s.Context(), sized))
	var sizes []int
	for i := range sized.Nodes {
		sizes = append(sizes, sized.Nodes[i].OutputBytes)
	}
	if want := []int{1, 1, 1, 0, 2, 2, 0}; !slices.Equal(sizes, want) { // 2, 4, 6, none, 10, 12, none
		t.Errorf("outputs have %v bytes, want %v", sizes, want)
	}
	state, err = s.rt.Flows().Retry(s.Context(), "retried", options) // whose answer was lost
	s.must(err)
	planned, err = s.rt.Flows().PlanRetry(s.Context(), "retried", options)
	s.must(err)
	if state.Retries != 1 || !state.Status.Ended() || !slices.Equal(planned, want) {
		t.Errorf("the same retry once more is %+v of %v", state, planned)
	}
	options.Number = 3
	_, err = s.rt.Flows().Retry(s.Context(), "retried", options)
	s.wantCode(err, runlane.ErrValidationFailed)
	_, err = s.rt.Flows().Retry(s.Context(), "retried", nil)
	s.wantCode(err, runlane.ErrValidationFailed) // d is cancelled because nothing failed
}

// The rows of the table of docs/internals/contract.md, Flows.
func flowStatuses(t *testing.T, h Harness) {
	got := &heardOf{}
	task, handler := asking("scenario.flow-asks", got, nil)
	s := newScene(t, h, handler, failingDouble(3))
	for row, want := range []runlane.FlowStatus{
		runlane.FlowPending, runlane.FlowActive, runlane.FlowWaiting, runlane.FlowActive, runlane.FlowCompleted,
		runlane.FlowFailed, runlane.FlowCancelled, runlane.FlowCancelled,
	} {
		id := runlane.FlowID(fmt.Sprint("row ", row))
		f := runlane.NewFlow(id)
		asks := f.Add("asks", task.With(jobPayload{}), nil)
		number := 2
		if want == runlane.FlowFailed {
			number = 3
		}
		f.Add("beside", double.With(number), nil)
		f.Add("after", double.With(1), &runlane.NodeOptions{After: []runlane.Node{asks}})
		switch row {
		case 0: // no run yet
			s.unmade(f, "asks", "beside", "after")
		case 1: // one is queued
			s.startFlow(f)
		case 2, 3: // one waits for a person, and one for it; then that one is answered
			s.startFlow(f)
			s.does(id, "beside", "asks")
			if row == 3 {
				s.signal(s.node(id, "asks").ID, approved.With(decision{By: "ada"}), nil)
			}
		case 4, 5: // succeeded or cancelled; one failed
			s.startFlow(f)
			s.does(id, "beside")
			_, err := s.rt.Runs().Cancel(s.Context(), s.node(id, "asks").ID, nil)
			s.must(err)
		case 6: // all are cancelled
			s.startFlow(f)
			for _, name := range []string{"asks", "beside"} {
				_, err := s.rt.Runs().Cancel(s.Context(), s.node(id, name).ID, nil)
				s.must(err)
			}
		case 7: // the flow was cancelled, although one has succeeded
			s.startFlow(f)
			s.does(id, "beside")
			s.cancelFlow(id)
		}
		if got := s.flow(id).Status; got != want {
			t.Errorf("row %d: %s, want %s", row, got, want)
		}
	}
}

func flowResumed(t *testing.T, h Harness) {
	s := newScene(t, h, doubling())
	s.startFlow(graph("resumed", "a", "b a"))
	_, err := s.rt.Runs().Resume(s.Context(), s.node("resumed", "b").ID, nil)
	s.wantCode(err, runlane.ErrValidationFailed)
}

func flowListed(t *testing.T, h Harness) {
	s := newScene(t, h, doubling())
	s.startFlow(graph("listed b", "a"))
	s.startFlow(graph("listed a", "a"))
	s.startFlow(graph("listed c", "a"))
	s.does("listed b", "a")
	for statuses, want := range map[string]string{
		"":                         "listed a listed c listed b",
		string(runlane.FlowActive): "listed a listed c",
		string(runlane.FlowFailed): "",
	} {
		o := &core.FlowListOptions{Limit: 1}
		if statuses != "" {
			o.Statuses = []runlane.FlowStatus{runlane.FlowStatus(statuses)}
		}
		s.until("the list is "+want, func() bool {
			var ids []string
			for state, err := range s.rt.Flows().All(s.Context(), o) {
				s.must(err)
				ids = append(ids, string(state.ID))
			}
			return strings.Join(ids, " ") == want
		})
	}
	_, err := s.rt.Flows().List(s.Context(), &core.FlowListOptions{Statuses: []runlane.FlowStatus{"odd"}})
	s.wantCode(err, runlane.ErrValidationFailed)
	_, err = s.rt.Flows().List(s.Context(), &core.FlowListOptions{After: "odd"})
	s.wantCode(err, runlane.ErrValidationFailed)
	_, err = s.rt.Flows().Get(s.Context(), "none")
	s.wantCode(err, runlane.ErrFlowNotFound)
}

func flowInvalid(t *testing.T, h Harness) {
	single := runlane.NewTask("scenario.single", &runlane.TaskOptions[int]{
		SingletonKey: func(int) string { return "one" },
	})
	s := newScene(t, h, doubling())
	many := make([]string, runlane.MaxFlowNodes+1)
	for i := range many {
		many[i] = fmt.Sprint("n", i)
	}
	alone := runlane.NewFlow("bad")
	alone.Add("a", single.With(1), nil)
	odd := runlane.NewFlow("bad")
	odd.Add("a", double.With(1), &runlane.NodeOptions{If: "odd"})
	foreign := runlane.NewFlow("bad")
	foreign.Add("a", double.With(1), nil)
	foreign.Add("b", double.With(1), &runlane.NodeOptions{After: []runlane.Node{{Flow: "other", Name: "a"}}})
	unencoded := runlane.NewFlow("bad")
	unencoded.Add("a", runlane.NewTask[func()]("scenario.function", nil).With(func() {}), nil)
	undo := graph("bad", "a")
	undo.Add("b", double.With(1), &runlane.NodeOptions{If: runlane.IfFailed})
	empty := runlane.NewFlow("bad")
	empty.Add("a", runlane.Call{}, nil)
	for what, f := range map[string]*runlane.Flow{
		"nil":                        nil,
		"no nodes":                   graph("bad"),
		"too many nodes":             graph("bad", many...),
		"a bad id":                   graph("bad:id", "a"),
		"no id":                      graph("", "a"),
		"a bad name":                 graph("bad", "a:b"),
		"a long name":                graph("bad", strings.Repeat("a", 65)),
		"two of a name":              graph("bad", "a", "a"),
		"a cycle":                    graph("bad", "a b", "b a"),
		"a cycle beside a root":      graph("bad", "r", "a b", "b a r"),
		"itself":                     graph("bad", "a a"),
		"an unknown node":            graph("bad", "a b"),
		"a node of another flow":     foreign,
		"a singleton key":            alone,
		"an unknown condition":       odd,
		"a payload without encoding": unencoded,
		"an undo of nothing":         undo, // it would run at once
		"an empty call":              empty,
	} {
		if _, err := s.rt.StartFlow(s.Context(), f, nil); runlane.CodeOf(err) != runlane.ErrValidationFailed {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := s.rt.Flows().Get(s.Context(), "bad")
	s.wantCode(err, runlane.ErrFlowNotFound)
}

func flowPruned(t *testing.T, h Harness) {
	s := newScene(t, h, doubling())
	s.startFlow(graph("pruned", "a", "b a"))
	a := s.node("pruned", "a")
	s.does("pruned", "a")
	s.clock.Advance(48 * time.Hour)
	s.settle()
	prune := func() {
		_, err := s.rt.Runs().Prune(s.Context(), &core.PruneOptions{OlderThan: time.Hour, ReleaseOwners: true})
		s.must(err)
	}
	prune()
	s.get(a.ID)
	s.does("pruned", "b")
	s.clock.Advance(48 * time.Hour)
	s.until("flow and runs are gone", func() bool {
		prune()
		_, gone := s.rt.Flows().Get(s.Context(), "pruned")
		_, err := s.rt.Runs().Get(s.Context(), a.ID)
		return runlane.CodeOf(gone) == runlane.ErrFlowNotFound && runlane.CodeOf(err) == runlane.ErrRunNotFound
	})
	s.startFlow(graph("pruned", "a", "b a")) // the id is free
	s.wantFlow("pruned", runlane.FlowActive, "queued waits")
}

// A retry has left the run of a as it is, and knows how it has ended.
func flowRetryPruned(t *testing.T, h Harness) {
	s := newScene(t, h, failingDouble(2, 2))
	s.startFlow(graph("again", "a", "b a"))
	a := s.node("again", "a")
	s.does("again", "a", "b")
	s.clock.Advance(48 * time.Hour)
	_, err := s.rt.Flows().Retry(s.Context(), "again", nil)
	s.must(err)
	s.does("again", "b")
	s.settle()
	s.until("the run of a is gone", func() bool {
		_, err := s.rt.Runs().Prune(s.Context(), &core.PruneOptions{OlderThan: 24 * time.Hour, ReleaseOwners: true})
		s.must(err)
		_, err = s.rt.Runs().Get(s.Context(), a.ID)
		return runlane.CodeOf(err) == runlane.ErrRunNotFound
	})
	for _, err := range []error{
		errorOf(s.rt.Flows().PlanRetry(s.Context(), "again", nil)),
		errorOf(s.rt.Flows().Retry(s.Context(), "again", nil)),
	} {
		if e := s.wantCode(err, runlane.ErrValidationFailed); !strings.Contains(e.Message, `the node "a"`) || e.Hint == "" {
			t.Errorf("what b reads is gone, and the error is %v", e)
		}
	}
	s.wantFlow("again", runlane.FlowFailed, "succeeded failed")
}
