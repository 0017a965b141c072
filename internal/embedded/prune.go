package embedded

import (
	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// PruneRequest is the checked form of a PruneCommand.
type PruneRequest struct {
	Statuses []runlane.Status
	Scope    Scope
	Limit    int
	After    *Position // nil for the oldest
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
	r.Scope = NewScope("PruneRuns", c.Environment, c.Scope())
	r.Limit, r.After, err = OpenPage(&page, r.Scope)
	if r.After == nil && !c.Since.IsZero() {
		r.After = &Position{At: At(c.Since)} // before every ID
	}
	return r, err
}

// Pruning decides which finished runs one call of PruneRuns removes.
type Pruning struct {
	ReleaseOwners bool // also remove runs that still retain their idempotency key
	Environment   runlane.Environment
	Cutoff        Millis // what finished before it may go
	Skipped       int    // runs kept because of their idempotency key

	examined int
	removed  map[runlane.RunID]bool
}

// Pass passes over a run that the command is not about.
func (p *Pruning) Pass() Verdict {
	p.examined++
	return Skip
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

// Remembered reports whether a failed run must stay, since a run that goes on from it may need what it remembers: one in
// its line of retries is active, or has not finished before the cutoff. find returns the state of a run, nil if absent.
func (p *Pruning) Remembered(
	id runlane.RunID, run *State, find func(runlane.RunID) (*State, error),
) (bool, error) {
	for run != nil && run.Status == runlane.StatusFailed {
		id = lane.RetryID(p.Environment, id, run.CreatedAt.Time())
		next, err := find(id)
		if err != nil || next == nil {
			return false, err
		}
		if next.Status.Active() || next.FinishedAt >= p.Cutoff {
			return true, nil
		}
		run = next
	}
	return false, nil
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
