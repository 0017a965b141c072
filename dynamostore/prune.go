package dynamostore

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

type pruning struct {
	*lane.PruneCommand
	limit    int
	progress lane.PruneProgress
}

// PruneRuns implements lane.Storage. It finds old runs by the index done and reads each strongly. It removes a run item
// last, so that the next call finds an interrupted one.
func (s *Store) PruneRuns(ctx context.Context, c *lane.PruneCommand) (*lane.PruneProgress, error) {
	statuses, err := c.Terminal()
	if err != nil {
		return nil, err
	}
	p := &pruning{PruneCommand: c}
	if p.limit, err = c.PruneLimit(); err != nil {
		return nil, err
	}
	cutoff := rows.ToMillis(c.OlderThan)
	scope := c.Scope()
	var after ddb.Position // the last row that was pruned or skipped
	if err := rows.OpenCursor(c.After, scope, &after); err != nil {
		return nil, err
	}
	shards, err := s.shardCounts(ctx, c.Environment)
	if err != nil {
		return nil, err
	}
	// Keys at the cutoff continue after the colon.
	old := doneSpan(c.Environment, statuses, shards, fmt.Sprintf("%013d:", cutoff))
	if !c.Since.IsZero() {
		for i := range old.Partitions {
			old.Partitions[i].From = fmt.Sprintf("%013d", rows.ToMillis(c.Since))
		}
	}
	_, stopped, more, err := s.db.Walk(
		ctx,
		"prune",
		old,
		after,
		ddb.ChunkOf(p.limit),
		maxListRows,
		func(rows []ddb.Row) (int, bool, error) {
			taken, err := s.pruneRows(ctx, p, rows)
			return taken, p.progress.Pruned >= p.limit || taken < len(rows), err
		},
	)
	if more && err == nil {
		p.progress.Next = rows.SealCursor(scope, stopped)
	}
	return &p.progress, err
}

// pruneRows prunes rows in order up to the call's limit, and returns how many it pruned or skipped.
func (s *Store) pruneRows(ctx context.Context, p *pruning, entries []ddb.Row) (taken int, err error) {
	ids := make([]runlane.RunID, len(entries)) // "" of other tasks
	var wanted []runlane.RunID
	for i, row := range entries {
		if p.Takes(rows.TaskOf(row.Item)) {
			key, _ := rows.ParseRunPK(row.PK)
			ids[i] = key.RunID
			wanted = append(wanted, key.RunID)
		}
	}
	if len(wanted) == 0 {
		return len(entries), nil
	}
	runs, err := s.readRuns(ctx, p.Environment, wanted)
	if err != nil {
		return 0, err
	}
	owners, err := s.ownersHeld(ctx, runs)
	if err != nil {
		return 0, err
	}
	from, err := s.sourcesOf(ctx, p.Environment, runs)
	if err != nil {
		return 0, err
	}
	flows, err := s.flowsOf(ctx, p.Environment, runs)
	if err != nil {
		return 0, err
	}
	remembered, err := s.remembered(ctx, p.PruneCommand, runs)
	if err != nil {
		return 0, err
	}
	var chosen []*rows.Run
	goes := map[runlane.RunID]bool{}
	for ; taken < len(entries) && p.progress.Pruned+len(chosen) < p.limit; taken++ {
		r := runs[ids[taken]]
		switch {
		case r == nil || r.DoneA != entries[taken].Sort: // already pruned, or the ID is used again: the index is late
		case r.NotificationPending() || r.Needed(from, goes) || r.InFlow(flows) || remembered[ids[taken]]:
		case !p.ReleaseOwners &&
			slices.ContainsFunc(owners[ids[taken]], func(o rows.Owner) bool { return o.Holds(r, s.now()) }):
			p.progress.Skipped++
		default:
			chosen = append(chosen, r)
			goes[ids[taken]] = true
		}
	}
	removed := make([]bool, len(chosen))
	if p.DryRun {
		for _, r := range chosen {
			p.progress.Count(runlane.TaskID(r.Task), r.State())
		}
		return taken, nil
	}
	err = ddb.InParallel(ctx, chosen, func(ctx context.Context, i int, r *rows.Run) (err error) {
		removed[i], err = s.pruneRun(ctx, r, owners[r.Key().RunID])
		return err
	})
	for i, r := range chosen {
		if removed[i] {
			p.progress.Count(runlane.TaskID(r.Task), r.State())
			p.progress.Removed = append(p.progress.Removed, lane.RunInstance{
				RunID: r.Key().RunID, CreatedAt: r.CreatedAt.Time(),
			})
		}
	}
	return taken, err
}

func origins[ID comparable](runs map[runlane.RunID]*rows.Run, of func(*rows.Run) (ID, bool)) []ID {
	var ids []ID
	for _, r := range runs {
		if id, is := of(r); is && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (s *Store) sourcesOf(
	ctx context.Context, environment runlane.Environment, runs map[runlane.RunID]*rows.Run,
) (map[runlane.RunID]*rows.Run, error) {
	ids := origins(runs, (*rows.Run).From)
	if len(ids) == 0 {
		return nil, nil
	}
	return s.readRuns(ctx, environment, ids)
}

// remembered returns the failed runs that must stay, since a run that goes on from one may need what it remembers: one in
// its line of retries is active, or has not finished before the cutoff.
func (s *Store) remembered(
	ctx context.Context, c *lane.PruneCommand, runs map[runlane.RunID]*rows.Run,
) (map[runlane.RunID]bool, error) {
	cutoff, stay := rows.ToMillis(c.OlderThan), map[runlane.RunID]bool{}
	latest := maps.Clone(runs) // by first run: the last one known of its line
	for {
		first := map[runlane.RunID]runlane.RunID{} // by ID of a retry
		for id, r := range latest {
			if r.State() == runlane.StatusFailed {
				first[lane.RetryID(c.Environment, r.Key().RunID, r.CreatedAt.Time())] = id
			}
		}
		if len(first) == 0 {
			return stay, nil
		}
		retries, err := s.readRuns(ctx, c.Environment, slices.Collect(maps.Keys(first)))
		if err != nil {
			return nil, err
		}
		clear(latest)
		for id, r := range retries {
			if r.State().Active() || r.FinishedAt >= cutoff {
				stay[first[id]] = true
			} else {
				latest[first[id]] = r
			}
		}
	}
}

// ownersHeld reads which keys the runs still own: a key may have been reset or taken by another run.
func (s *Store) ownersHeld(
	ctx context.Context, runs map[runlane.RunID]*rows.Run,
) (map[runlane.RunID][]rows.Owner, error) {
	var keys []item.Item
	for _, r := range runs {
		for _, owner := range rows.OwnersOf(r.Projection(), "") {
			keys = append(keys, item.Key(owner.PK, owner.SK))
		}
	}
	held := map[runlane.RunID][]rows.Owner{}
	err := s.db.BatchGet(ctx, "read owners", keys, func(it item.Item) error {
		var owner rows.Owner
		if err := rows.Unmarshal(it, &owner); err != nil {
			return err
		}
		held[owner.Run] = append(held[owner.Run], owner)
		return nil
	})
	return held, err
}

// pruneRun removes a run's owners, payload and output, its log from the newest back, records, and the run item last. It
// may be repeated; gone is true for the caller that removed the run item.
//
// Another caller may finish first, and the ID may be used again. So everything is read before the last check that the
// run is unchanged, and removed only as it was read.
func (s *Store) pruneRun(ctx context.Context, r *rows.Run, owners []rows.Owner) (gone bool, err error) {
	parts, err := s.partsOf(ctx, r)
	if err != nil || parts == nil {
		return false, err
	}
	for _, owner := range owners {
		raw, err := rows.Marshal(owner)
		if err != nil {
			return false, err
		}
		if _, err := s.db.Delete(ctx, "prune", raw, owner.Unchanged()); err != nil {
			return false, err
		}
	}
	if detach := r.Detach(); detach != nil {
		if _, ok, err := s.db.Update(ctx, "prune", detach); err != nil || !ok {
			return false, err
		}
	}
	run, rest := parts[len(parts)-1], parts[:len(parts)-1]
	for _, part := range slices.Backward(rest) { // 'payload' > 'output' > 'note' > 'log:…' > 'kept:…'
		if result, err := s.db.Delete(ctx, "prune", part, rows.AsRead(part)); err != nil || result == ddb.Kept {
			return false, err
		}
	}
	result, err := s.db.Delete(ctx, "prune", run, r.StillFinished())
	return result == ddb.Removed, err
}

// partsOf reads everything under the run's key, the run item last; nil if the run item is missing or another run's.
func (s *Store) partsOf(ctx context.Context, r *rows.Run) (parts []item.Item, err error) {
	err = s.db.Query(ctx, &ddb.Query{
		Operation: "prune",
		Where:     "#pk = :pk AND #sk <= :run",
		Values:    item.Item{":pk": item.Text(r.PK), ":run": item.Text(rows.RunSK)},
	}, func(it item.Item) (bool, error) {
		parts = append(parts, it)
		return true, nil
	})
	if err != nil || len(parts) == 0 {
		return nil, err
	}
	if run := parts[len(parts)-1]; item.TextOf(run[item.SK]) != rows.RunSK || r.StillFinished().Fails(run) {
		return nil, nil
	}
	return parts, nil
}
