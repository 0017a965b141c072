package core_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// reads counts what is read of flows and of their runs.
type reads struct {
	lane.Storage

	heads, plans, runs atomic.Int64
}

func (s *reads) GetFlow(ctx context.Context, q *lane.FlowRead) (*lane.FlowRecord, error) {
	if q.WithoutPlan {
		s.heads.Add(1)
	} else {
		s.plans.Add(1)
	}
	return s.Storage.GetFlow(ctx, q)
}

func (s *reads) GetRuns(ctx context.Context, q *lane.RunsQuery) ([]*runlane.Run, error) {
	s.runs.Add(int64(len(q.IDs)))
	return s.Storage.GetRuns(ctx, q)
}

// What the end of a node reads does not grow with its flow, whatever its shape: its flow's head, one run that has not ended,
// and what it lets go on. The graph is not read again, but by ends that meet that of the flow. Ends that meet each other read
// again, and those are few: as many as are at work at once.
func TestFlow_OfAnySize_ReadsAsMuchForEachNode(t *testing.T) {
	t.Parallel()
	work := runlane.NewTask[int]("work", nil)
	shapes := map[string]func(i, n int) []int{ // what node i of n goes after
		"join":        func(i, n int) []int { return all(i == n-1, n-1) },
		"fan":         func(i, _ int) []int { return all(i > 0, 1) },
		"chain":       func(i, _ int) []int { return all(i > 0, i)[max(i-1, 0):] },
		"independent": func(int, int) []int { return nil },
		"two layers":  func(i, n int) []int { return all(i >= n-10, n-10) },
	}
	for shape, after := range shapes {
		for _, n := range []int{60, runlane.MaxFlowNodes} {
			t.Run(fmt.Sprint(shape, " of ", n), func(t *testing.T) {
				t.Parallel()
				l := memlane.New()
				s := &reads{Storage: l.Storage}
				l.Storage = s
				rt := openStranger(t, l, work.Handle(func(context.Context, *runlane.Attempt, int) error { return nil }))
				f := runlane.NewFlow("large")
				var nodes []runlane.Node
				for i := range n {
					var options runlane.NodeOptions
					for _, k := range after(i, n) {
						options.After = append(options.After, nodes[k])
					}
					nodes = append(nodes, f.Add(fmt.Sprint("node ", i), work.With(i), &options))
				}
				if _, err := rt.StartFlow(t.Context(), f, nil); err != nil {
					t.Fatal(err)
				}
				s.heads.Store(0)
				s.plans.Store(0)
				s.runs.Store(0)
				rt.drain()
				heads, plans, runs := s.heads.Load(), s.plans.Load(), s.runs.Load()
				state, err := rt.Flows().Get(t.Context(), "large")
				if err != nil || state.Status != runlane.FlowCompleted {
					t.Fatalf("%+v, %v", state, err)
				}
				if plans > 40 || float64(heads) > 1.1*float64(n)+2*runlane.DefaultConcurrency || runs > 10*int64(n) {
					t.Errorf("%d nodes read %d graphs, %d heads and %d runs, %.1f for each node",
						n, plans, heads, runs, float64(runs)/float64(n))
				}
			})
		}
	}
}

// all are the places below n, or none.
func all(are bool, n int) (places []int) {
	for i := range n {
		if are {
			places = append(places, i)
		}
	}
	return places
}

// creations counts the commands that make a run, and ends the caller's time with one of them.
type creations struct {
	lane.Storage

	made, last int
	end        context.CancelFunc
}

func (s *creations) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	if s.made++; s.made == s.last {
		s.end()
	}
	return s.Storage.AppendRunEvents(ctx, c)
}

// A start that was interrupted makes what is missing when it is repeated, and no run of before anew: a long chain would
// come no further within the same time.
func TestStartFlow_Repeated_MakesWhatIsMissing(t *testing.T) {
	t.Parallel()
	const nodes, before = 40, 25
	ctx, end := context.WithCancel(t.Context())
	defer end()
	l := memlane.New()
	s := &creations{Storage: l.Storage, last: before, end: end}
	l.Storage = s
	task := runlane.NewTask[int]("work", nil)
	rt := openStranger(t, l, task.Handle(func(context.Context, *runlane.Attempt, int) error { return nil }))
	f := runlane.NewFlow("chain")
	var after []runlane.Node
	for i := range nodes {
		after = []runlane.Node{f.Add(fmt.Sprint("node ", i), task.With(i), &runlane.NodeOptions{After: after})}
	}
	if _, err := rt.StartFlow(ctx, f, nil); err == nil {
		t.Fatal("the start was not interrupted")
	}
	s.made, s.last = 0, -1
	if _, err := rt.StartFlow(t.Context(), f, nil); err != nil || s.made > nodes-before+1 {
		t.Errorf("%d runs were made, %d were missing: %v", s.made, nodes-before, err)
	}
}
