package scenarios

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Flows.
func flowScenarios() []scenario {
	return []scenario{
		{"a node begins when those that it goes after have succeeded", needsMail, flowOrder, false},
		{"a node reads the result of the one before it", needsMail, flowRef, false},
		{"a flow started again is the same flow", needsMail, flowAgain, false},
		{"the rest of a flow whose start was interrupted is made by the next start", needsMail, flowInterrupted, false},
		{"a node whose condition is not met is cancelled", needsMail, flowUnmet, false},
		{"undoing is for what had begun", needsMail, flowUndo, false},
		{
			"a node of a bounded queue gets a slot when its time has come", needsBoth(needsMail, needsSlots),
			flowBounded, false,
		},
		{"a tick tells the end of a node that a process died with", needsMail, flowTicked, false},
		{"a flow that is cancelled undoes what had begun", needsMail, flowCancelled, false},
		{"a cancellation of everything ends every node", needsMail, flowCancelledTwice, false},
		{"a tick cancels what the canceller died with", needsMail, flowSwept, false},
		{"a tick closes a flow that was not made in an hour", needsMail, flowIncomplete, false},
		{"a tick leaves a flow alone whose start ends meanwhile", needsMail, flowLate, false},
		{"a retry makes new runs for what did not succeed and what goes after it", needsMail, flowRetried, false},
		{"a flow has the status of the table", needsMail, flowStatuses, false},
		{"a node that waits for others is not resumed by hand", needsMail, flowResumed, false},
		{"flows are listed, those that have not finished first", needsMail, flowListed, false},
		{"bad flows are refused before anything is written", needsMail, flowInvalid, false},
		{"nodes are pruned when their flow has finished", needsBoth(needsMail, needsPruning), flowPruned, false},
		{
			"a retry is refused where the run of a node that stays is pruned", needsBoth(needsMail, needsPruning),
			flowRetryPruned, false,
		},
		{"a signal to a node, and its token, reach its latest run", needsMail, signalNode, false},
	}
}

// graph is a flow under construction: "b a" is node b after node a, "c? b" if it failed, "d! b" in any case.
func graph(id runlane.FlowID, nodes ...string) *runlane.Flow {
	f := runlane.NewFlow(id)
	for i, line := range nodes {
		words := strings.Fields(line)
		options := &runlane.NodeOptions{}
		name := strings.TrimRight(words[0], "?!")
		switch {
		case strings.HasSuffix(words[0], "?"):
			options.If = runlane.IfFailed
		case strings.HasSuffix(words[0], "!"):
			options.If = runlane.Always
		}
		for _, after := range words[1:] {
			options.After = append(options.After, runlane.Node{Name: after})
		}
		f.Add(name, double.With(i+1), options)
	}
	return f
}

// failingDouble fails for the given numbers, once each.
func failingDouble(once ...int) runlane.Handler {
	return double.Handle(func(_ context.Context, _ *runlane.Attempt, n int) (int, error) {
		if i := slices.Index(once, n); i >= 0 {
			once = slices.Delete(once, i, i+1)
			return 0, runlane.Permanent(&runlane.Error{Code: "negative", Message: "it is", Cause: errOdd})
		}
		return 2 * n, nil
	})
}

func (s *scene) startFlow(f *runlane.Flow) *runlane.FlowState {
	s.Helper()
	state, err := s.rt.StartFlow(s.Context(), f, nil)
	s.must(err)
	return state
}

func (s *scene) flow(id runlane.FlowID) *runlane.FlowState {
	s.Helper()
	state, err := s.rt.Flows().Get(s.Context(), id)
	s.must(err)
	return state
}

// node is the latest run of a node.
func (s *scene) node(id runlane.FlowID, name string) *runlane.Run {
	s.Helper()
	n, ok := s.flow(id).Node(name)
	if !ok || n.Status == "" {
		s.Fatalf("flow %s has no run of node %q", id, name)
	}
	return s.get(n.RunID)
}

// wantFlow compares the statuses of a flow's nodes, in their order.
func (s *scene) wantFlow(id runlane.FlowID, status runlane.FlowStatus, want string) {
	s.Helper()
	state := s.flow(id)
	var got []string
	for _, n := range state.Nodes {
		text := string(n.Status)
		if n.Waiting.Has(runlane.WaitingEnds) {
			text = "waits"
		}
		got = append(got, text)
	}
	if strings.Join(got, " ") != want || state.Status != status {
		s.Errorf("the flow is %s: %s, want %s: %s", state.Status, strings.Join(got, " "), status, want)
	}
	if ended := state.Status.Ended(); ended == state.FinishedAt.IsZero() {
		s.Errorf("the flow is %s and finished at %v", state.Status, state.FinishedAt)
	}
}

// does executes nodes, one after the other.
func (s *scene) does(id runlane.FlowID, names ...string) {
	s.Helper()
	for _, name := range names {
		s.execute(s.node(id, name))
	}
}

func flowOrder(t *testing.T, h Harness) {
	s := newScene(t, h, doubling())
	s.startFlow(graph("order", "a", "b a", "c a", "d b c"))
	s.wantFlow("order", runlane.FlowActive, "queued waits waits waits")
	d := s.node("order", "d")
	if d.Waiting.Need != 2 || d.Source.Type != runlane.SourceFlow || d.Source.FlowID != "order" ||
		d.Source.Node != "d" {
		t.Errorf("it waits for %+v, its source is %+v", d.Waiting, d.Source)
	}
	s.ignored(d, core.IgnoredNotDue)
	s.does("order", "a")
	s.wantFlow("order", runlane.FlowActive, "succeeded queued queued waits")
	s.does("order", "b")
	s.wantFlow("order", runlane.FlowActive, "succeeded succeeded queued waits")
	s.does("order", "c", "d")
	s.wantFlow("order", runlane.FlowCompleted, "succeeded succeeded succeeded succeeded")
	state, err := s.rt.Flows().Wait(s.Context(), "order")
	s.must(err)
	if state.Status != runlane.FlowCompleted {
		t.Errorf("waited for %s", state.Status)
	}
	s.wantHistory(d.ID, "created delivery_requested resumed delivery_requested lease_claimed started succeeded")
	body := s.history(d.ID)[2].Body.(*runlane.RunResumed)
	if body.By != runlane.WaitingEnds || body.Name != "order" {
		t.Errorf("resumed by %+v", body)
	}
	if told := s.tick().Told; told.Done != 0 || told.Failed != 0 {
		t.Errorf("something was left to the tick: %+v", told)
	}
}

type refPayload struct {
	From runlane.Ref[int] `json:"from"`
}

func flowRef(t *testing.T, h Harness) {
	got := &heardOf{}
	reading := runlane.NewTask[refPayload]("scenario.reading", nil)
	s := newScene(t, h, doubling(), reading.Handle(func(ctx context.Context, a *runlane.Attempt, p refPayload) error {
		n, err := p.From.Wait(ctx, a)
		got.add("%d %s", n, runlane.CodeOf(err))
		return err
	}))
	f := runlane.NewFlow("ref")
	good, bad := f.Add("good", double.With(21), nil), f.Add("bad", double.With(-1), nil)
	later := runlane.Node{Flow: "ref", Name: "later"}
	f.Add("reads", reading.With(refPayload{double.Ref(good)}), &runlane.NodeOptions{After: []runlane.Node{good}})
	f.Add("reads bad", reading.With(refPayload{double.Ref(bad)}),
		&runlane.NodeOptions{After: []runlane.Node{bad}, If: runlane.IfFailed})
	f.Add("reads later", reading.With(refPayload{double.Ref(later)}), nil)
	f.Add("later", double.With(1), &runlane.NodeOptions{After: []runlane.Node{good}})
	s.startFlow(f)
	s.does("ref", "good", "bad", "reads", "reads bad", "reads later")
	s.wantTold(got, "42 ", "0 run_failed", "0 validation_failed")
	n, err := double.Ref(good).Wait(s.Context(), s.rt.Runtime)
	if n != 42 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	_, err = double.Ref(runlane.Node{Flow: "ref", Name: "none"}).Wait(s.Context(), s.rt.Runtime)
	s.wantCode(err, runlane.ErrValidationFailed)
	_, err = double.Ref(runlane.Node{Flow: "none", Name: "good"}).Wait(s.Context(), s.rt.Runtime)
	s.wantCode(err, runlane.ErrFlowNotFound)
}

func flowAgain(t *testing.T, h Harness) {
	s := newScene(t, h, doubling())
	first := s.startFlow(graph("again", "a", "b a"))
	s.does("again", "a")
	second := s.startFlow(graph("again", "a", "b a"))
	for i, n := range second.Nodes {
		if n.RunID != first.Nodes[i].RunID {
			t.Errorf("node %s is another run", n.Name)
		}
	}
	for what, f := range map[string]*runlane.Flow{
		"another node":       graph("again", "a", "b a", "c"),
		"another edge":       graph("again", "a", "b"),
		"another condition":  graph("again", "a", "b! a"),
		"another payload":    graph("again", "b", "a b"),
		"another name":       graph("again", "x", "b x"),
		"one node too few":   graph("again", "a"),
		"a condition beside": graph("again", "a!", "b a"),
	} {
		if _, err := s.rt.StartFlow(s.Context(), f, nil); runlane.CodeOf(err) != runlane.ErrValidationFailed {
			t.Errorf("%s: %v", what, err)
		}
	}
	s.wantFlow("again", runlane.FlowActive, "succeeded queued")
}

// unmade puts the record of a flow of which some nodes were made, as a process that died while it started the flow.
func (s *scene) unmade(f *runlane.Flow, without ...string) {
	s.Helper()
	died := errors.New("died")
	s.storage.script(func() {
		s.storage.onAppend = func(c *lane.AppendCommand, next func() (*lane.Commit, error)) (*lane.Commit, error) {
			if c.Flow != nil && slices.Contains(without, c.Projected.Source.Node) {
				return nil, died
			}
			return next()
		}
	})
	defer s.storage.script(func() { s.storage.onAppend = nil })
	if _, err := s.rt.Runtime.StartFlow(s.Context(), f, nil); !errors.Is(err, died) {
		s.Fatalf("it did not die: %v", err)
	}
}

func flowInterrupted(t *testing.T, h Harness) {
	s := newScene(t, h, doubling())
	f := graph("interrupted", "a", "b a", "c b")
	s.unmade(f, "b")
	s.wantFlow("interrupted", runlane.FlowActive, "  waits")
	s.startFlow(f)
	s.does("interrupted", "a", "b", "c")
	s.wantFlow("interrupted", runlane.FlowCompleted, "succeeded succeeded succeeded")
}

func flowUnmet(t *testing.T, h Harness) {
	s := newScene(t, h, failingDouble(1))
	s.startFlow(graph("unmet", "a", "b a", "c b", "d? a", "e! c", "f? b", "g"))
	s.does("unmet", "a")
	s.wantFlow("unmet", runlane.FlowActive, "failed cancelled cancelled queued queued cancelled queued")
	s.does("unmet", "d", "e", "g")
	s.wantFlow("unmet", runlane.FlowFailed, "failed cancelled cancelled succeeded succeeded cancelled succeeded")
}

func flowUndo(t *testing.T, h Harness) {
	s := newScene(t, h, failingDouble(1))
	s.startFlow(graph("undo", "a", "b", "c? a b"))
	_, err := s.rt.Runs().Cancel(s.Context(), s.node("undo", "b").ID, nil)
	s.must(err)
	s.wantFlow("undo", runlane.FlowActive, "queued cancelled waits")
	s.does("undo", "a", "c")
	s.wantFlow("undo", runlane.FlowFailed, "failed cancelled succeeded")
	s.startFlow(graph("never begun", "a", "b? a"))
	_, err = s.rt.Runs().Cancel(s.Context(), s.node("never begun", "a").ID, nil)
	s.must(err)
	s.wantFlow("never begun", runlane.FlowCancelled, "cancelled cancelled")
}

func flowBounded(t *testing.T, h Harness) {
	slot := runlane.NewFunc[int, int]("scenario.slotted", &runlane.TaskOptions[int]{
		Queue: runlane.Queue{Name: "scenario-flows", Concurrency: 1},
	})
	s := newScene(t, h, slot.Handle(func(_ context.Context, _ *runlane.Attempt, n int) (int, error) { return n, nil }))
	f := runlane.NewFlow("bounded")
	a := f.Add("a", slot.With(1), nil)
	f.Add("b", slot.With(2), &runlane.NodeOptions{After: []runlane.Node{a}})
	s.startFlow(f)
	s.wantFlow("bounded", runlane.FlowActive, "queued waits")
	s.tick()
	s.does("bounded", "a")
	s.until("it has a slot", func() bool {
		if s.node("bounded", "b").Status == runlane.StatusQueued {
			return true
		}
		s.tick()
		return false
	})
	s.does("bounded", "b")
	s.wantFlow("bounded", runlane.FlowCompleted, "succeeded succeeded")
}

func flowTicked(t *testing.T, h Harness) {
	s := newScene(t, h, doubling())
	s.startFlow(graph("ticked", "a", "b! a"))
	s.change(s.node("ticked", "a").ID, &runlane.RunCancelled{}) // and its process died
	s.wantFlow("ticked", runlane.FlowActive, "cancelled waits")
	s.clock.Advance(2 * time.Minute)
	s.until("the end is told", func() bool {
		s.tick()
		return s.node("ticked", "b").Status == runlane.StatusQueued
	})
	s.change(s.node("ticked", "b").ID, &runlane.RunCancelled{})
	s.clock.Advance(2 * time.Minute)
	s.until("the flow has finished", func() bool {
		s.tick()
		return s.flow("ticked").Status == runlane.FlowCancelled
	})
	s.wantFlow("ticked", runlane.FlowCancelled, "cancelled cancelled")
}
