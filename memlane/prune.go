package memlane

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// PruneRuns implements [lane.Storage]. One call reads at most [embedded.MostExamined] rows.
func (s *Storage) PruneRuns(ctx context.Context, c *lane.PruneCommand) (*lane.PruneProgress, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	request, err := embedded.OpenPrune(c)
	if err != nil {
		return nil, err
	}
	cutoff, now := embedded.At(c.OlderThan), embedded.At(s.now())
	s.mu.Lock()
	defer s.mu.Unlock()
	env, progress := s.find(c.Environment), &lane.PruneProgress{}
	if env == nil {
		return progress, nil
	}
	p := embedded.Pruning{Environment: c.Environment, ReleaseOwners: c.ReleaseOwners, Cutoff: cutoff}
	finished := env.lists(&choice{of: ofStatus(request.Statuses...)})
	old, err := embedded.FillPage(
		ascend(finished, placeOf(request.After)).pop, request.Scope, request.Limit, 0,
		func(i item) (*entry, embedded.Verdict, error) {
			if i.at >= cutoff {
				return nil, embedded.Stop, nil
			}
			if !c.Takes(i.entry.view().created.TaskID) {
				return nil, p.Pass(), nil
			}
			return i.entry, p.Judge(i.entry.id, env.needed(i.entry, &p), env.keepsKey(i.entry, now)), nil
		},
	)
	if err != nil {
		return nil, err
	}
	for _, e := range old.Items { // not during the walk: its sets must not change
		known := e.view()
		progress.Count(known.created.TaskID, known.state.Status)
		if c.DryRun {
			continue
		}
		progress.Removed = append(progress.Removed, lane.RunInstance{
			RunID: e.id, CreatedAt: known.state.CreatedAt.Time(),
		})
		env.remove(e)
	}
	progress.Skipped, progress.Next = p.Skipped, old.Next
	return progress, nil
}

// ownsKey reports whether the run still owns its idempotency key. It may have been reset or replaced.
func (env *environment) ownsKey(created *runlane.RunCreated, e *entry) bool {
	return env.idempotency[scopedKey{created.TaskID, created.IdempotencyKey}] == e
}

// keepsKey reports whether pruning the run would free its key too early.
func (env *environment) keepsKey(e *entry, now embedded.Millis) bool {
	if len(env.idempotency) == 0 {
		return false
	}
	known := e.view()
	return env.ownsKey(known.created, e) && known.retains(now)
}

// remove removes a finished run, and its key unless another run owns it.
func (env *environment) remove(e *entry) {
	if known := e.view(); env.ownsKey(known.created, e) {
		delete(env.idempotency, scopedKey{known.created.TaskID, known.created.IdempotencyKey})
	}
	e.moveDue(place{})
	delete(e.shard.runs, e.id)
	delete(e.shard.records, e.id)
	delete(e.shard.mail, e.id)
	delete(e.shard.calls, e.id)
	delete(env.progress, e.id)
}
