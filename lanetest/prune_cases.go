package lanetest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

func needsPruning(c lane.StorageCapabilities) bool { return c.PrunesRuns && c.LeasesRuns }

// docs/internals/contract.md, Pruning.
func pruneCases() []storageCase {
	return []storageCase{
		{"RemovesRunsWholly", needsPruning, pruneWhole},
		{"RemovesFinishedRunsOnly", needsPruning, pruneFinished},
		{"TheCutoffIsExclusiveAtTheMillisecond", needsPruning, pruneCutoff},
		{"RemovesGivenStatusesOnly", needsPruning, pruneStatuses},
		{"RemovesRunsOfTheTasksSinceATimeAsADryRunCounts", needsPruning, pruneTasks},
		{"WhereTicksAreWithItIsKept", needsPruning, keepRoundTrip},
		{"KeepsARepetitionAsLongAsItsOrigin", needsPruning, pruneRepetition},
		{"KeepsAFailedRunAsLongAsItsRetriesMayNeedIt", needsPruning, pruneRetried},
		{"TakesTheOldestFirstOverAllStatuses", needsPruning, pruneOldest},
		{"RefusesActiveStatusesAMissingCutoffAndLimitsOutOfRange", needsPruning, pruneInput},
		{"CursorsBelongToOneRequest", needsPruning, pruneCursors},
		{"Hazard17_RetainedOwnersAreSkippedAndStarveNobody", needsBoth(needsPruning, needsIdempotency), pruneRetained},
		{"OwnersThatAreOverGoWithTheirRuns", needsBoth(needsPruning, needsIdempotency), pruneDeadOwners},
		{"OwnersAreReleasedOnRequest", needsBoth(needsPruning, needsIdempotency), pruneRelease},
		{"KeysOfOtherRunsAreTheirs", needsBoth(needsPruning, needsBoth(needsIdempotency, needsSingleton)), pruneOthers},
		{"ConcurrentCallsRemoveEverythingOnce", needsPruning, pruneTogether},
		{"KeepsToOneEnvironment", needsPruning, pruneElsewhere},
		{"AnEndedContextRemovesNothing", needsPruning, pruneEnded},
		{"IsResumedByWhoeverComesNext", needsBoth(needsPruning, needsIdempotency), pruneResumed},
		{
			"IsResumedAfterACrashAnywhere",
			needsBoth(needsPruning, needsBoth(needsIdempotency, needsHistory)),
			pruneCrashed,
		},
	}
}

func (b *bundle) pruning(olderThan time.Time) *lane.PruneCommand {
	return &lane.PruneCommand{PageQuery: lane.PageQuery{Environment: b.env}, OlderThan: olderThan}
}

// forget leaves a run out of the checks after the case: it was pruned.
func (b *bundle) forget(ids ...runlane.RunID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made = slices.DeleteFunc(b.made, func(key lane.RunKey) bool {
		return key.Environment == b.env && slices.Contains(ids, key.RunID)
	})
}

// pruneOnce is one call, held to its limit.
func (b *bundle) pruneOnce(c *lane.PruneCommand) *lane.PruneProgress {
	b.t.Helper()
	progress := must(b.storage.PruneRuns(b.ctx(), c))(b.t)
	limit := c.Limit
	if limit == 0 {
		limit = runlane.DefaultPruneLimit
	}
	if progress == nil || progress.Pruned < 0 || progress.Pruned > limit {
		b.t.Fatalf("one call with limit %d did %+v", limit, progress)
	}
	b.removed = append(b.removed, progress.Removed...)
	if len(progress.Removed) != progress.Pruned && !b.h.LosesAnswers {
		b.t.Fatalf("one call pruned %d runs and names %+v", progress.Pruned, progress.Removed)
	}
	return progress
}

// none reports whether a call neither pruned nor skipped anything, and was the last.
func none(p *lane.PruneProgress) bool {
	return p.Pruned == 0 && p.Skipped == 0 && p.Next == "" && len(p.Removed) == 0
}

// pruneThrough follows the cursors to the end.
func (b *bundle) pruneThrough(c *lane.PruneCommand) (pruned, skipped int) {
	b.t.Helper()
	command := *c
	seen := map[runlane.Cursor]bool{}
	for {
		progress := b.pruneOnce(&command)
		pruned, skipped = pruned+progress.Pruned, skipped+progress.Skipped
		if command.After = progress.Next; command.After == "" {
			return pruned, skipped
		}
		if seen[command.After] {
			b.t.Fatal("pruning returned the same cursor twice")
		}
		seen[command.After] = true
	}
}

// wantPruned demands that pruning removes the runs that were pruned and skips so many, and nothing else.
func (b *bundle) wantPruned(c *lane.PruneCommand, skipped int, gone ...runlane.RunID) {
	b.t.Helper()
	b.forget(gone...)
	var removed []lane.RunInstance
	runs := must(b.storage.GetRuns(b.ctx(), &lane.RunsQuery{Environment: b.env, IDs: gone, WithoutPayload: true}))(b.t)
	for _, run := range runs {
		removed = append(removed, lane.RunInstance{RunID: run.ID, CreatedAt: run.CreatedAt})
	}
	total := 0
	b.removed = nil
	b.eventually(func() string { // an index may show a finished run late
		n, passed := b.pruneThrough(c)
		total += n
		return difference([2]int{len(gone), skipped}, [2]int{total, passed})
	})
	b.wantGone(gone...)
	for _, list := range [][]lane.RunInstance{removed, b.removed} {
		slices.SortFunc(list, func(a, b lane.RunInstance) int { return cmp.Compare(a.RunID, b.RunID) })
	}
	if !b.h.LosesAnswers {
		equal(b.t, "removed", removed, b.removed)
	}
}

func (b *bundle) wantGone(ids ...runlane.RunID) {
	b.t.Helper()
	for _, id := range ids {
		_, err := b.storage.GetRun(b.ctx(), b.key(id))
		wantError(b.t, err, runlane.ErrRunNotFound)
	}
}

func (b *bundle) wantThere(ids ...runlane.RunID) {
	b.t.Helper()
	for _, id := range ids {
		b.get(id)
	}
}

// finished is a run that was made and ended at the instant.
func (b *bundle) finished(at time.Time, status runlane.Status, o RunOptions) runlane.RunID {
	b.t.Helper()
	return b.end(b.create(at, o), at, status).ID
}

func pruneWhole(t *testing.T, b *bundle) {
	run := b.running(noon, noon.Add(time.Minute), RunOptions{ID: "run_again", Payload: filler(20_000)})
	run = b.push(run, noon, Retried(run, noon.Add(time.Second)))
	run = b.claim(run, noon.Add(time.Second), noon.Add(time.Minute))
	b.push(run, noon.Add(2*time.Second), Succeeded(run, filler(10_000)))
	b.wantPruned(b.pruning(noon.Add(time.Hour)), 0, run.ID)

	if got := must(b.storage.GetRuns(b.ctx(), &lane.RunsQuery{
		Environment: b.env,
		IDs:         []runlane.RunID{run.ID},
	}))(t); len(got) != 0 {
		t.Fatalf("GetRuns found %v", got)
	}
	_, err := b.storage.InspectRun(b.ctx(), &lane.InspectQuery{RunKey: b.key(run.ID)})
	wantError(t, err, runlane.ErrRunNotFound)
	if b.h.Capabilities.ReadsRunHistory {
		q := &lane.RunQuery{PageQuery: lane.PageQuery{Environment: b.env}}
		b.eventually(func() string { return difference(nil, b.listRuns(q)) })
		b.wantNoHistory(b.key(run.ID))
	}
	// The id can be used again, and the new run has nothing of the old one: the check after the case proves that its
	// history folds to it.
	again := b.create(noon.Add(2*time.Hour), RunOptions{ID: run.ID, Payload: []byte(`"again"`)})
	equal(t, "run of the same id", again, b.get(run.ID))
}

// wantNoHistory: a run that is gone has no events, or is not found.
func (b *bundle) wantNoHistory(key lane.RunKey) {
	b.t.Helper()
	page, err := b.storage.ListRunEvents(b.ctx(), &lane.EventQuery{
		PageQuery: lane.PageQuery{Environment: key.Environment},
		RunID:     key.RunID,
	})
	if err != nil {
		wantError(b.t, err, runlane.ErrRunNotFound)
		return
	}
	if len(page.Items) != 0 {
		b.t.Fatalf("a pruned run has %d events", len(page.Items))
	}
}

func pruneFinished(_ *testing.T, b *bundle) {
	var gone, stay []runlane.RunID
	for status, run := range b.everyStatus() {
		if status.Terminal() {
			gone = append(gone, run.ID)
		} else {
			stay = append(stay, run.ID)
		}
	}
	b.wantPruned(b.pruning(noon.Add(365*24*time.Hour)), 0, gone...)
	b.wantThere(stay...)
	b.wantPruned(b.pruning(noon.Add(365*24*time.Hour)), 0)
}

func pruneCutoff(_ *testing.T, b *bundle) {
	before := b.finished(noon.Add(-time.Millisecond), runlane.StatusSucceeded, RunOptions{})
	exactly := b.finished(noon, runlane.StatusFailed, RunOptions{})
	after := b.finished(noon.Add(time.Millisecond), runlane.StatusCancelled, RunOptions{})
	b.wantPruned(b.pruning(noon), 0, before)
	b.wantThere(exactly, after)
	b.wantPruned(b.pruning(noon.Add(time.Millisecond)), 0, exactly)
	b.wantThere(after)
}

func pruneStatuses(_ *testing.T, b *bundle) {
	runs := b.everyStatus()
	ids := func(statuses ...runlane.Status) []runlane.RunID {
		var ids []runlane.RunID
		for _, status := range statuses {
			ids = append(ids, runs[status].ID)
		}
		return ids
	}
	c := b.pruning(noon.Add(time.Hour))
	c.Statuses = []runlane.Status{runlane.StatusFailed}
	b.wantPruned(c, 0, ids(c.Statuses...)...)
	b.wantThere(ids(runlane.StatusSucceeded, runlane.StatusCancelled)...)
	c.Statuses = []runlane.Status{runlane.StatusSucceeded, runlane.StatusCancelled, runlane.StatusSucceeded}
	b.wantPruned(c, 0, ids(runlane.StatusSucceeded, runlane.StatusCancelled)...)
}

func pruneTasks(t *testing.T, b *bundle) {
	finished := func(task runlane.TaskID, at time.Duration) runlane.RunID {
		return b.finished(noon.Add(at), runlane.StatusSucceeded, RunOptions{TaskID: task})
	}
	early, a := finished("task.a", 0), finished("task.a", time.Minute)
	other, c := finished("task.b", 2*time.Minute), finished("task.c", 3*time.Minute)
	command := b.pruning(noon.Add(time.Hour))
	command.Since, command.Tasks = noon.Add(time.Minute), []runlane.TaskID{"task.a", "task.c"}
	dry := *command
	dry.DryRun = true
	b.eventually(func() string { // an index may show a finished run late
		progress := must(b.storage.PruneRuns(b.ctx(), &dry))(t)
		if progress.Pruned != 2 || len(progress.Removed) != 0 || len(progress.Counts) != 2 ||
			progress.Counts[0] != (lane.PruneCount{TaskID: "task.a", Status: runlane.StatusSucceeded, Runs: 1}) {
			return fmt.Sprintf("a dry run finds %+v", progress)
		}
		return ""
	})
	b.wantThere(early, a, other, c)
	b.wantPruned(command, 0, a, c)
	command.Tasks, command.Except = nil, []runlane.TaskID{"task.b"}
	b.wantPruned(command, 0)
	command.Since = time.Time{}
	b.wantPruned(command, 0, early)
	b.wantThere(other)
}

// Without its repetition, which is the only trace of it, a run could be repeated again.
func pruneRepetition(_ *testing.T, b *bundle) {
	origin := b.get(b.finished(noon, runlane.StatusFailed, RunOptions{}))
	repeats := func(s runlane.Source) runlane.RunID {
		return b.finished(noon.Add(time.Second), runlane.StatusSucceeded, RunOptions{Source: s})
	}
	var again []runlane.RunID
	for _, kind := range []runlane.SourceType{runlane.SourceManualRetry, runlane.SourceRerun} {
		again = append(again, repeats(runlane.Source{Type: kind, RunID: origin.ID, CreatedAt: origin.CreatedAt}))
	}
	other := repeats(runlane.Source{
		Type: runlane.SourceRerun, RunID: origin.ID, CreatedAt: origin.CreatedAt.Add(-time.Second),
	})
	c := b.pruning(noon.Add(time.Hour))
	c.Statuses = []runlane.Status{runlane.StatusSucceeded}
	b.wantPruned(c, 0, other) // its origin is gone: the id was used again
	b.wantThere(append(again, origin.ID)...)
	c.Statuses = nil
	b.wantPruned(c, 0, append(again, origin.ID)...)
}

// A retry goes on from what the failed run remembers, and so does the retry of a retry.
func pruneRetried(_ *testing.T, b *bundle) {
	retry := func(of *runlane.Run) RunOptions {
		return RunOptions{
			ID:     lane.RetryID(of.Environment, of.ID, of.CreatedAt),
			Source: runlane.Source{Type: runlane.SourceManualRetry, RunID: of.ID, CreatedAt: of.CreatedAt},
		}
	}
	first := b.get(b.finished(noon, runlane.StatusFailed, RunOptions{}))
	second := b.get(b.finished(noon.Add(time.Second), runlane.StatusFailed, retry(first)))
	third := b.create(noon.Add(2*time.Second), retry(second))
	b.wantPruned(b.pruning(noon.Add(time.Hour)), 0)
	b.end(third, noon.Add(2*time.Hour), runlane.StatusSucceeded)
	b.wantPruned(b.pruning(noon.Add(time.Hour)), 0)
	b.wantThere(first.ID, second.ID, third.ID)
	b.wantPruned(b.pruning(noon.Add(3*time.Hour)), 0, first.ID, second.ID, third.ID)
}

// After each call, what is left is the newer part of what there was, whatever the limit.
func pruneOldest(t *testing.T, b *bundle) {
	statuses := []runlane.Status{runlane.StatusSucceeded, runlane.StatusFailed, runlane.StatusCancelled}
	ids := make([]runlane.RunID, 14)
	for _, i := range []int{6, 2, 9, 13, 0, 4, 11, 1, 7, 12, 3, 10, 5, 8} { // made in no order
		ids[i] = b.finished(noon.Add(time.Duration(i)*time.Second), statuses[i%3], RunOptions{})
	}
	b.untilShown(len(ids))
	left := 0
	for limit := 1; left < len(ids); limit++ {
		c := b.pruning(noon.Add(time.Hour))
		c.Limit = limit
		for calls := 0; calls < 3 && left < len(ids); calls++ {
			progress := b.pruneOnce(c)
			b.forget(ids[left : left+progress.Pruned]...)
			b.wantGone(ids[left : left+progress.Pruned]...)
			left += progress.Pruned
			b.wantThere(ids[left:]...)
			if c.After = progress.Next; c.After == "" && left < len(ids) {
				t.Fatalf("limit %d: no cursor, and %d runs are left", limit, len(ids)-left)
			}
		}
	}
	if progress := b.pruneOnce(b.pruning(noon.Add(time.Hour))); !none(progress) {
		t.Fatalf("nothing is left, and pruning did %+v", progress)
	}
}

func pruneInput(t *testing.T, b *bundle) {
	stay := b.finished(noon, runlane.StatusSucceeded, RunOptions{})
	for what, change := range map[string]func(c *lane.PruneCommand){
		"an active status": func(c *lane.PruneCommand) {
			c.Statuses = []runlane.Status{runlane.StatusSucceeded, runlane.StatusRunning}
		},
		"an unknown status":  func(c *lane.PruneCommand) { c.Statuses = []runlane.Status{"done"} },
		"no cutoff":          func(c *lane.PruneCommand) { c.OlderThan = time.Time{} },
		"a negative limit":   func(c *lane.PruneCommand) { c.Limit = -1 },
		"too large a limit":  func(c *lane.PruneCommand) { c.Limit = runlane.MaxPageLimit + 1 },
		"a made up position": func(c *lane.PruneCommand) { c.After = "not a cursor" },
	} {
		c := b.pruning(noon.Add(time.Hour))
		change(c)
		_, err := b.storage.PruneRuns(b.ctx(), c)
		if runlane.CodeOf(err) != runlane.ErrValidationFailed {
			t.Errorf("%s: error is %v, want %q", what, err, runlane.ErrValidationFailed)
		}
	}
	b.wantThere(stay)
}

func pruneCursors(t *testing.T, b *bundle) {
	for i := range 4 {
		b.finished(noon.Add(time.Duration(i)*time.Second), runlane.StatusSucceeded, RunOptions{})
	}
	b.untilShown(4) // a run that shows alone is pruned alone, and then there is no second page
	c := b.pruning(noon.Add(time.Hour))
	c.Limit = 1
	c.After = b.firstCursor(func() (runlane.Cursor, error) {
		before := b.existing()
		progress, err := b.storage.PruneRuns(b.ctx(), c)
		if err != nil {
			return "", err
		}
		b.forget(vanished(before, b.existing())...)
		return progress.Next, nil
	})
	left := b.existing()
	for what, change := range map[string]func(c *lane.PruneCommand){
		"other statuses":      func(c *lane.PruneCommand) { c.Statuses = []runlane.Status{runlane.StatusSucceeded} },
		"another cutoff":      func(c *lane.PruneCommand) { c.OlderThan = c.OlderThan.Add(time.Millisecond) },
		"another environment": func(c *lane.PruneCommand) { c.Environment += "-x" },
		"released owners":     func(c *lane.PruneCommand) { c.ReleaseOwners = true },
	} {
		other := *c
		change(&other)
		_, err := b.storage.PruneRuns(b.ctx(), &other)
		if runlane.CodeOf(err) != runlane.ErrValidationFailed {
			t.Errorf("%s: error is %v, want %q", what, err, runlane.ErrValidationFailed)
		}
	}
	if b.h.Capabilities.ReadsRunHistory {
		_, err := b.storage.ListRuns(b.ctx(), &lane.RunQuery{
			PageQuery: lane.PageQuery{Environment: b.env, After: c.After},
		})
		wantError(t, err, runlane.ErrValidationFailed)
	}
	b.wantThere(left...)
	c.Limit = 3 // the size of a page is not part of what it is a page of
	b.pruneThrough(c)
	b.forget(left...)
}

// untilShown waits until the case's runs, so many, are in the list, and so in what pruning looks at.
func (b *bundle) untilShown(runs int) {
	b.t.Helper()
	if !b.h.Capabilities.ReadsRunHistory {
		return
	}
	b.eventually(func() string {
		return difference(runs, len(b.listRuns(&lane.RunQuery{PageQuery: lane.PageQuery{Environment: b.env}})))
	})
}

// existing are the runs of the case that are there.
func (b *bundle) existing() []runlane.RunID {
	b.t.Helper()
	b.mu.Lock()
	q := &lane.RunsQuery{Environment: b.env, WithoutPayload: true}
	for _, key := range b.made {
		q.IDs = append(q.IDs, key.RunID)
	}
	b.mu.Unlock()
	var ids []runlane.RunID
	for _, run := range must(b.storage.GetRuns(b.ctx(), q))(b.t) {
		ids = append(ids, run.ID)
	}
	return ids
}

func vanished(before, after []runlane.RunID) []runlane.RunID {
	return slices.DeleteFunc(slices.Clone(before), func(id runlane.RunID) bool { return slices.Contains(after, id) })
}

func pruneTogether(t *testing.T, b *bundle) {
	var ids []runlane.RunID
	for i := range 6 {
		ids = append(ids, b.finished(noon.Add(time.Duration(i)*time.Second), runlane.StatusCancelled, RunOptions{}))
	}
	b.forget(ids...)
	total := 0
	b.eventually(func() string {
		won, lost := race(4, func(int) (*lane.PruneProgress, error) {
			return b.storage.PruneRuns(b.ctx(), b.pruning(noon.Add(time.Hour)))
		})
		if len(lost) != 0 {
			t.Fatalf("pruning together failed: %v", lost)
		}
		for _, progress := range won {
			total += progress.Pruned
		}
		if b.h.LosesAnswers && total > len(ids) {
			return ""
		}
		return difference(len(ids), total)
	})
	b.wantGone(ids...)
}

func pruneElsewhere(t *testing.T, b *bundle) {
	here := b.finished(noon, runlane.StatusSucceeded, RunOptions{ID: "run_shared"})
	elsewhere := b.env + "-elsewhere"
	there := b.create(noon, RunOptions{ID: "run_shared", Environment: elsewhere})
	there = b.push(there, noon, &runlane.RunCancelled{})
	b.wantPruned(b.pruning(noon.Add(time.Hour)), 0, here)
	equal(
		t,
		"run there",
		there,
		must(b.storage.GetRun(b.ctx(), lane.RunKey{Environment: elsewhere, RunID: there.ID}))(t),
	)
}

func pruneEnded(t *testing.T, b *bundle) {
	run := b.finished(noon, runlane.StatusSucceeded, RunOptions{})
	ctx, cancel := context.WithCancel(b.ctx())
	cancel()
	_, err := b.storage.PruneRuns(ctx, b.pruning(noon.Add(time.Hour)))
	wantError(t, err, runlane.ErrOperationCancelled)
	b.wantThere(run)
}
