package core

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// orphanAge is how old a body is before it counts as an orphan: its commit may still follow.
const orphanAge = 24 * time.Hour

// OrphanOptions of [Runs.OrphanedBodies]. nil means none.
type OrphanOptions struct {
	// Limit is about how many bodies to look at. 0 means all.
	Limit int
	// Remove removes the orphans.
	Remove bool
}

// OrphanedBodies counts bodies in the lane's store of bodies.
type OrphanedBodies struct {
	Seen    int   `json:"seen"` // all bodies of the environment
	Orphans int   `json:"orphans"`
	Bytes   int64 `json:"bytes"` // of the orphans
	Removed int   `json:"removed"`
}

// OrphanedBodies looks for bodies without a run, and can remove them: of commits that were refused or never made, and
// of a pruning that was interrupted. Bodies of the last day do not count. It reads the list of bodies. A negative limit
// is runlane.ErrValidationFailed, a lane without a store of bodies runlane.ErrCapabilityUnsupported.
func (r *Runs) OrphanedBodies(ctx context.Context, options *OrphanOptions) (*OrphanedBodies, error) {
	if err := r.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer r.rt.gate.leave()
	if options != nil && options.Limit < 0 {
		return nil, invalidInput("use 0 for all", "OrphanOptions.Limit is %d", options.Limit)
	}
	if r.rt.lane.Bodies == nil {
		return nil, unsupported("the lane keeps no bodies apart from its storage")
	}
	found := &OrphanedBodies{}
	store, before := r.rt.lane.Bodies.Store, r.rt.now().Add(-orphanAge)
	for after := ""; ; {
		page, err := store.List(ctx, lane.BodiesIn(r.rt.environment), after, listedBodies)
		if err != nil {
			return nil, bodiesFailed(ctx, "", err)
		}
		found.Seen += len(page)
		orphans, err := r.rt.orphans(ctx, page, before)
		if err != nil {
			return nil, err
		}
		var keys []string
		for _, body := range orphans {
			found.Orphans++
			found.Bytes += body.Bytes
			keys = append(keys, body.Key)
		}
		if options != nil && options.Remove && len(keys) > 0 {
			if err := store.Delete(ctx, keys...); err != nil {
				return nil, bodiesFailed(ctx, "", err)
			}
			found.Removed += len(keys)
		}
		if len(page) < listedBodies || options != nil && options.Limit > 0 && found.Seen >= options.Limit {
			return found, nil
		}
		after = page[len(page)-1].Key
	}
}

// orphans returns the old bodies whose run, in that creation, does not exist.
func (rt *Runtime) orphans(
	ctx context.Context, page []lane.ListedBody, before time.Time,
) (orphans []lane.ListedBody, err error) {
	type owned struct {
		body lane.ListedBody
		run  lane.RunInstance
	}
	var old []owned
	var ids []runlane.RunID
	for _, body := range page {
		_, run, ok := lane.ParseBodyKey(body.Key)
		if !ok || !body.At.Before(before) {
			continue
		}
		old = append(old, owned{body, run})
		if len(ids) == 0 || ids[len(ids)-1] != run.RunID {
			ids = append(ids, run.RunID)
		}
	}
	there := map[lane.RunInstance]bool{}
	for len(ids) > 0 {
		chunk := ids[:min(len(ids), runlane.MaxPageLimit)]
		runs, err := rt.storage().GetRuns(ctx, &lane.RunsQuery{
			Environment: rt.environment, IDs: chunk, WithoutPayload: true,
		})
		if err != nil {
			return nil, err
		}
		for _, run := range runs {
			there[lane.RunInstance{RunID: run.ID, CreatedAt: run.CreatedAt.UTC()}] = true
		}
		ids = ids[len(chunk):]
	}
	for _, o := range old {
		if !there[o.run] {
			orphans = append(orphans, o.body)
		}
	}
	return orphans, nil
}
