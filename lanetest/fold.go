package lanetest

import (
	"context"
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// RuleFold names what [CheckFold] finds.
const RuleFold = "a run is the fold of its history, whose events are numbered from one"

// CheckFold is the half of the invariants that is the same for every storage: it compares a run with its history,
// folded by core.ProjectRunEvents. The suite does that with every run of a case, and also runs the storage's
// Check. A history with an event of a type that this version does not know cannot be folded: only its sequence
// numbers are checked. The error is that of a read.
func CheckFold(ctx context.Context, s lane.Storage, key lane.RunKey) ([]lane.Violation, error) {
	run, err := s.GetRun(ctx, key)
	if err != nil {
		return nil, err
	}
	broken := func(format string, args ...any) []lane.Violation {
		return []lane.Violation{{RunKey: key, Rule: RuleFold, Detail: fmt.Sprintf(format, args...)}}
	}
	q := &lane.EventQuery{
		PageQuery: lane.PageQuery{Environment: key.Environment, Limit: runlane.MaxPageLimit},
		RunID:     key.RunID,
	}
	var events []runlane.Event
	unknown := false
	for {
		page, err := s.ListRunEvents(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Items {
			events = append(events, r.Event)
			if r.Sequence != int64(len(events)) || r.ID == "" {
				return broken("event %d has sequence %d and id %q", len(events), r.Sequence, r.ID), nil
			}
			_, odd := r.Body.(*runlane.UnknownEvent)
			unknown = unknown || odd
		}
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	if int64(len(events)) != run.EventSequence {
		return broken("it has %d events and sequence %d", len(events), run.EventSequence), nil
	}
	if unknown {
		return nil, nil
	}
	folded, err := core.ProjectRunEvents(nil, 0, events...)
	if err != nil {
		return broken("its history does not fold: %v", err), nil
	}
	if d := difference(folded, run); d != "" {
		return broken("(-fold +run):\n%s", d), nil
	}
	return nil, nil
}
