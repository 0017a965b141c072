package embedded

import (
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// PruneRequest is the checked form of a PruneCommand.
type PruneRequest struct {
	Statuses []runlane.Status
	Scope    Scope
	Limit    int
	After    *Position // nil for the first page
}

// OpenPrune checks a PruneCommand and reads its cursor.
func OpenPrune(c *lane.PruneCommand) (r PruneRequest, err error) {
	if r.Statuses, err = c.Terminal(); err != nil {
		return r, err
	}
	page := c.PageQuery
	if page.Limit, err = c.PruneLimit(); err != nil {
		return r, err
	}
	r.Scope = NewScope("PruneRuns", c.Environment, fmt.Sprint(r.Statuses), fmt.Sprint(At(c.OlderThan)),
		fmt.Sprint(c.ReleaseOwners))
	r.Limit, r.After, err = OpenPage(&page, r.Scope)
	return r, err
}

// Pruning decides which finished runs one call of PruneRuns removes.
type Pruning struct {
	ReleaseOwners bool // also remove runs that still retain their idempotency key
	Skipped       int  // runs kept because of their idempotency key

	examined int
	removed  map[runlane.RunID]bool
}

// Judge decides about the next run of the list. keepsKey reports that it retains its idempotency key.
func (p *Pruning) Judge(id runlane.RunID, needed, keepsKey bool) Verdict {
	p.examined++
	switch {
	case needed:
		return Skip
	case keepsKey && !p.ReleaseOwners:
		if p.examined <= MostExamined { // the next call counts the row after these
			p.Skipped++
		}
		return Skip
	default:
		if p.removed == nil {
			p.removed = map[runlane.RunID]bool{}
		}
		p.removed[id] = true
		return Take
	}
}

// Needed reports whether a run with that source must stay:
//
//   - a node of a flow, until the flow has finished;
//   - a called run, while its caller is active and may still read its result;
//   - a repetition, while the original stays: otherwise the next repetition, which has the same ID, would execute again.
//
// flow is the source's flow and from the run that the source names, nil if absent.
func (p *Pruning) Needed(source *runlane.Source, flow *lane.FlowRecord, from *State) bool {
	switch created := At(source.CreatedAt); {
	case source.Type == runlane.SourceFlow:
		return flow != nil && !flow.Finished() && At(flow.CreatedAt) == created
	case source.Type == runlane.SourceCall:
		return from.Is(created) && from.Status.Active()
	default:
		return lane.Repeats(source) && from.Is(created) && !p.removed[source.RunID]
	}
}
