package core

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

const (
	// DefaultTreeEach is the default of TreeOptions.Each.
	DefaultTreeEach = 20
	// MaxTreeShown limits the runs shown in a tree.
	MaxTreeShown = 1000
	// MaxTreeRead is the default and maximum of TreeOptions.Read.
	MaxTreeRead = 20_000
)

// TreeOptions of [Runs.Tree]. nil means none.
type TreeOptions struct {
	// Each is how many runs of each call are shown; the others are counted. 0 means DefaultTreeEach. If a call has
	// more, failed runs come first, then active ones, then cancelled ones.
	Each int
	// Read is how many runs are read in total to count them by status. A call beyond it reads only the runs that are
	// shown. 0 means MaxTreeRead, which is also the maximum.
	Read int
}

// RunTree is a run with its calls.
type RunTree struct {
	// Run is the run, without payload and output.
	Run *runlane.Run
	// Calls are the run's calls, by name. They are not read for runs that are not shown.
	Calls []CallTree
}

// CallTree is a call of a run, with its children.
type CallTree struct {
	// Name is unique among the calls of the run.
	Name string
	// TaskID is the task of all children.
	TaskID runlane.TaskID
	// CalledAt is when an attempt first made the call.
	CalledAt time.Time
	// Count is the number of children.
	Count int
	// Ended counts the ended children that the caller has been notified of. A child that has just ended may be missing.
	Ended int
	// Statuses counts the children by status, except the ones not created yet. nil for a call beyond TreeOptions.Read.
	Statuses map[runlane.Status]int
	// Runs are the shown children, in the order of the payloads. If not all are shown, the order is that of
	// TreeOptions.Each. A call beyond TreeOptions.Read shows the first ones.
	Runs []RunTree
	// More counts the children that exist but are not in Runs, by status. nil if Statuses is.
	More map[runlane.Status]int
}

// Tree returns a run with its calls, their children, and so on. It is no snapshot: the runs are read one after the
// other. Runs near the root are shown first, at most MaxTreeShown; runs beyond a limit are counted. On DynamoDB it
// costs a read for each run of a call, shown or counted.
//
// A missing run is runlane.ErrRunNotFound; a child pruned meanwhile is omitted. runlane.ErrValidationFailed: Each is
// negative, or Read is negative or above MaxTreeRead. runlane.ErrCapabilityUnsupported: the storage keeps no calls.
func (r *Runs) Tree(ctx context.Context, id runlane.RunID, options *TreeOptions) (*RunTree, error) {
	if err := r.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer r.rt.gate.leave()
	if err := r.rt.suspends(); err != nil {
		return nil, err
	}
	if options == nil {
		options = &TreeOptions{}
	}
	switch {
	case options.Each < 0:
		return nil, invalidInput("leave it out, or ask for some", "a tree shows %d runs of each call", options.Each)
	case options.Read < 0 || options.Read > MaxTreeRead:
		return nil, invalidInput(fmt.Sprintf("leave it out, or ask for 1 to %d", MaxTreeRead),
			"a tree reads %d runs", options.Read)
	}
	t := tree{
		rt:    r.rt,
		each:  cmp.Or(options.Each, DefaultTreeEach),
		most:  cmp.Or(options.Read, MaxTreeRead),
		read:  1,
		shown: 1,
	}
	run, err := r.rt.bare(ctx, id)
	if err != nil {
		return nil, err
	}
	root := &RunTree{Run: run}
	for level := []*RunTree{root}; len(level) > 0; { // level by level: a deep branch leaves room for its neighbors
		var below []*RunTree
		for _, node := range level {
			nodes, err := t.grow(ctx, node)
			if err != nil {
				return nil, err
			}
			below = append(below, nodes...)
		}
		level = below
	}
	return root, nil
}

type tree struct {
	rt          *Runtime
	each, most  int
	read, shown int
}

// grow reads the calls of a run, and returns the added nodes.
func (t *tree) grow(ctx context.Context, node *RunTree) (added []*RunTree, err error) {
	read, err := t.rt.storage().ReadCalls(ctx, &lane.CallQuery{
		RunKey: lane.RunKey{Environment: t.rt.environment, RunID: node.Run.ID},
	})
	switch {
	case runlane.CodeOf(err) == runlane.ErrRunNotFound && t.shown > 1:
		return nil, nil // pruned since it was read
	case err != nil:
		return nil, err
	}
	node.Calls = make([]CallTree, len(read.Calls))
	for i := range read.Calls {
		known, call := &read.Calls[i], &node.Calls[i]
		*call = CallTree{
			Name:     known.Name,
			TaskID:   known.TaskID,
			CalledAt: known.At,
			Count:    known.Count,
			Ended:    known.Ended,
		}
		if err := t.fill(ctx, node.Run, known, call); err != nil {
			return nil, err
		}
		for n := range call.Runs {
			added = append(added, &call.Runs[n])
		}
	}
	return added, nil
}

func (t *tree) fill(ctx context.Context, parent *runlane.Run, known *lane.RunCall, call *CallTree) error {
	c := calling{rt: t.rt, parent: parent, call: *known}
	if t.read+known.Count > t.most {
		c.call.Count = min(known.Count, t.each, MaxTreeShown-t.shown)
	} else {
		t.read += known.Count
		call.Statuses, call.More = map[runlane.Status]int{}, map[runlane.Status]int{}
	}
	runs, err := c.read(ctx, true)
	if err != nil {
		return err
	}
	runs = slices.DeleteFunc(runs, func(run *runlane.Run) bool { return run == nil })
	if len(runs) > min(t.each, MaxTreeShown-t.shown) {
		slices.SortStableFunc(runs, func(a, b *runlane.Run) int { return cmp.Compare(treeRank(a), treeRank(b)) })
	}
	for _, run := range runs {
		switch {
		case len(call.Runs) < t.each && t.shown < MaxTreeShown:
			call.Runs = append(call.Runs, RunTree{Run: run})
			t.shown++
		default:
			call.More[run.Status]++
		}
		if call.Statuses != nil {
			call.Statuses[run.Status]++
		}
	}
	return nil
}

// treeRank sorts the runs of a call if not all are shown: the ones that an operator looks for come first.
func treeRank(run *runlane.Run) int {
	switch end := run.Status.End(); {
	case end == runlane.StatusFailed:
		return 0
	case !run.Status.Terminal():
		return 1
	case end == runlane.StatusCancelled:
		return 2
	default:
		return 3
	}
}
