package dynamostore

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// pruning is one call of PruneRuns.
type pruning struct {
	*lane.PruneCommand
	limit    int
	progress lane.PruneProgress
}

// PruneRuns implements lane.Storage. The index done tells what is old; each run is then read strongly. Its run item goes last:
// as long as it stands the index shows it, and the next call goes on where another one was interrupted.
func (s *Store) PruneRuns(ctx context.Context, c *lane.PruneCommand) (*lane.PruneProgress, error) {
	statuses, err := c.Terminal()
	if err != nil {
		return nil, err
	}
	p := &pruning{PruneCommand: c}
	if p.limit, err = c.PruneLimit(); err != nil {
		return nil, err
	}
	cutoff := toMillis(c.OlderThan)
	scope := fmt.Sprintf("prune %s %q %d %t", c.Environment.Name(), statuses, cutoff, c.ReleaseOwners)
	var after indexPosition // of the last row that was pruned or passed
	if err := openCursor(c.After, scope, &after); err != nil {
		return nil, err
	}
	shards, err := s.shardCounts(ctx, c.Environment)
	if err != nil {
		return nil, err
	}
	old := doneSpan(c.Environment, statuses, shards, fmt.Sprintf("%013d:", cutoff)) // of the cutoff itself, a key goes on behind the colon
	_, stopped, more, err := s.db.Walk(ctx, "prune", old, after, chunkOf(p.limit), maxListRows, func(rows []indexRow) (int, bool, error) {
		taken, err := s.pruneRows(ctx, p, rows)
		return taken, p.progress.Pruned >= p.limit || taken < len(rows), err
	})
	if err != nil {
		return nil, err
	}
	if more {
		p.progress.Next = sealCursor(scope, stopped)
	}
	return &p.progress, nil
}

// pruneRows prunes rows in their order until the call's limit, and tells how many it pruned or passed.
func (s *Store) pruneRows(ctx context.Context, p *pruning, rows []indexRow) (taken int, err error) {
	ids := make([]runlane.RunID, len(rows))
	for i, row := range rows {
		key, _ := parseRunPK(row.PK)
		ids[i] = key.RunID
	}
	runs, err := s.readRuns(ctx, p.Environment, ids)
	if err != nil {
		return 0, err
	}
	owners, err := s.ownersHeld(ctx, runs)
	if err != nil {
		return 0, err
	}
	var chosen []*runItem
	for ; taken < len(rows) && p.progress.Pruned+len(chosen) < p.limit; taken++ {
		r := runs[ids[taken]]
		switch {
		case r == nil || r.DoneA != rows[taken].Sort: // pruned already, or the id is used again: the index is late
		case !p.ReleaseOwners && slices.ContainsFunc(owners[ids[taken]], func(o ownerItem) bool { return o.holds(r, s.now()) }):
			p.progress.Skipped++
		default:
			chosen = append(chosen, r)
		}
	}
	var removed atomic.Int64
	err = InParallel(ctx, chosen, func(ctx context.Context, _ int, r *runItem) error {
		gone, err := s.pruneRun(ctx, r, owners[r.key().RunID])
		if gone {
			removed.Add(1)
		}
		return err
	})
	p.progress.Pruned += int(removed.Load())
	return taken, err
}

// ownersHeld reads which of their keys the runs still own: a key may have been reset, or taken over.
func (s *Store) ownersHeld(ctx context.Context, runs map[runlane.RunID]*runItem) (map[runlane.RunID][]ownerItem, error) {
	var keys []item
	for _, r := range runs {
		for _, owner := range ownersOf(r.run(), "") {
			keys = append(keys, itemKey(owner.PK, owner.SK))
		}
	}
	held := map[runlane.RunID][]ownerItem{}
	err := s.db.BatchGet(ctx, "read owners", keys, func(it item) error {
		var owner ownerItem
		if err := unmarshalItem(it, &owner); err != nil {
			return err
		}
		held[owner.Run] = append(held[owner.Run], owner)
		return nil
	})
	return held, err
}

// pruneRun removes one run: its owners, payload, output, its log from the newest back, and the run item last. It is done over
// and over until the run item is gone, by any number of callers; gone tells the one who removed that. Another caller may be done
// before, and the id used again: owners, and what stands under the run's key, were read before the run was last found as it is
// here, so they are this run's, and each is removed only as it was read.
func (s *Store) pruneRun(ctx context.Context, r *runItem, owners []ownerItem) (gone bool, err error) {
	parts, err := s.partsOf(ctx, r)
	if err != nil || parts == nil {
		return false, err
	}
	for _, owner := range owners {
		raw, err := marshalItem(owner)
		if err != nil {
			return false, err
		}
		if _, err := s.db.Delete(ctx, "prune", raw, owner.unchanged()); err != nil {
			return false, err
		}
	}
	if detach := r.detach(); detach != nil {
		if _, ok, err := s.db.Update(ctx, "prune", detach); err != nil || !ok {
			return false, err
		}
	}
	run, rest := parts[len(parts)-1], parts[:len(parts)-1]
	for _, part := range slices.Backward(rest) { // 'payload' > 'output' > 'note' > 'log:…': backwards is the order wanted
		if result, err := s.db.Delete(ctx, "prune", part, asRead(part)); err != nil || result == Kept {
			return false, err
		}
	}
	result, err := s.db.Delete(ctx, "prune", run, r.finished())
	return result == Removed, err
}

// partsOf reads everything under the run's key, the run item last; nil when that is gone, or another run's.
func (s *Store) partsOf(ctx context.Context, r *runItem) (parts []item, err error) {
	err = s.db.Query(ctx, &Query{
		Operation: "prune", Where: "#pk = :pk AND #sk <= :run", Values: item{":pk": text(r.PK), ":run": text(skRun)},
	}, func(it item) (bool, error) {
		parts = append(parts, it)
		return true, nil
	})
	if err != nil || len(parts) == 0 {
		return nil, err
	}
	if run := parts[len(parts)-1]; textOf(run[attrSK]) != skRun || r.finished().fails(run) {
		return nil, nil
	}
	return parts, nil
}
