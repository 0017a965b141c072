package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/apart"
	"github.com/runlane/runlane-go/internal/shown"
	"github.com/runlane/runlane-go/lane"
)

// Invariants returns the checks that read runs: a sample, or with all every run, which may take hours. It calls progress
// now and then with the number of pages.
func Invariants(sample int, all bool, progress func(pages int)) []Check {
	return []Check{
		{Name: "invariants of the storage", Run: func(ctx context.Context, rt *core.Runtime) (string, error) {
			return checkInvariants(ctx, rt, all, progress)
		}},
		{Name: "histories", Run: func(ctx context.Context, rt *core.Runtime) (string, error) {
			return checkHistories(ctx, rt, sample, all)
		}},
	}
}

// checkInvariants runs the storage's checker. A changing run may cause a false alarm, so it checks a failing page
// twice.
func checkInvariants(ctx context.Context, rt *core.Runtime, all bool, progress func(pages int)) (string, error) {
	storage := rt.Lane().Storage
	q := lane.PageQuery{Environment: rt.Environment(), Limit: runlane.MaxPageLimit}
	for pages := 1; ; pages++ {
		page, err := storage.Check(ctx, &q)
		if err == nil && len(page.Items) > 0 {
			page, err = storage.Check(ctx, &q)
		}
		if errors.Is(err, runlane.ErrCapabilityUnsupported) {
			return "this storage has no checker", nil
		}
		if err != nil {
			return "", err
		}
		if len(page.Items) > 0 {
			first := page.Items[0]
			return "", &runlane.Error{
				Code:  runlane.ErrInvariantViolation,
				RunID: first.RunID,
				Message: fmt.Sprintf(
					"%d broken, the first of run %q: %s: %s",
					len(page.Items),
					first.RunID,
					first.Rule,
					first.Detail,
				),
				Hint: "keep the storage as it is and report this: it is a fault of the storage, or another program " +
					"wrote to it",
			}
		}
		if q.After = page.Next; q.After == "" {
			return "all hold", nil
		}
		if !all {
			return "all hold in a sample; --all checks everything", nil
		}
		if pages%100 == 0 {
			progress(pages)
		}
	}
}

// checkHistories projects the events of runs again and compares the result with the runs.
func checkHistories(ctx context.Context, rt *core.Runtime, sample int, all bool) (string, error) {
	checked := 0
	options := &core.ListOptions{Limit: max(1, min(sample, runlane.MaxPageLimit))}
	if all {
		options.Limit = runlane.MaxPageLimit
	}
	for run, err := range rt.Runs().All(ctx, options) {
		if err != nil {
			return "", err
		}
		if !all && checked >= sample {
			break
		}
		if err := checkHistory(ctx, rt, run.ID); err != nil {
			return "", err
		}
		checked++
	}
	return count(checked, "history adds", "histories add") + " up", nil
}

func checkHistory(ctx context.Context, rt *core.Runtime, id runlane.RunID) error {
	const tries = 3 // a run may change between the two reads
	ctx = apart.Leave(ctx)
	for range tries {
		run, err := rt.Runs().Get(ctx, id)
		if errors.Is(err, runlane.ErrRunNotFound) {
			return nil // pruned meanwhile
		}
		if err != nil {
			return err
		}
		var folded *runlane.Run
		for record, err := range rt.Runs().Events(ctx, id, nil) {
			if err != nil {
				return err
			}
			if folded, err = core.ProjectRunEvents(folded, record.Sequence-1, record.Event); err != nil {
				return err
			}
		}
		if folded != nil && folded.EventSequence != run.EventSequence {
			continue
		}
		if folded == nil || !sameRun(folded, run) {
			return &runlane.Error{
				Code:    runlane.ErrInvariantViolation,
				RunID:   id,
				Message: fmt.Sprintf("the history of run %q does not add up to the run", id),
				Hint:    "keep the run as it is and report this, with \"runlane runs events\" and \"runlane runs get\"",
			}
		}
		return nil
	}
	return nil // it keeps changing, so it is in use
}

// sameRun compares runs as JSON, and bodies byte by byte. It ignores Sealed, which is not part of the history.
func sameRun(a, b *runlane.Run) bool {
	bare := *b
	bare.Sealed = a.Sealed
	b = &bare
	if !bytes.Equal(a.Payload, b.Payload) || !bytes.Equal(a.Output, b.Output) {
		return false
	}
	textA, errA := shown.Object("run", lane.RunAtRest(a))
	textB, errB := shown.Object("run", lane.RunAtRest(b))
	return errA == nil && errB == nil && bytes.Equal(textA, textB)
}
