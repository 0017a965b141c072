package core

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// prunePages limits the pages that a dry run reads.
const prunePages = 20

// Prune removes runs that ended more than OlderThan ago, with their histories, oldest first, at most Limit in one call.
// Call again with Next until it is empty; the first call fixes the cutoff. Runs that still hold an idempotency key are
// skipped unless ReleaseOwners is set. The ids of removed runs count as unused. Unless Statuses are given, the last
// call also removes the records of flows that finished before the cutoff. A flow can be retried while its record and
// its runs exist.
//
// A dry run counts by the list, which lags a little and begins with the newest run. A call may match a few more than
// Limit, fewer, or none, and still have a Next. Skipped then counts the matched runs that hold a key.
//
// Impossible options are runlane.ErrValidationFailed. A storage that cannot prune is runlane.ErrCapabilityUnsupported.
func (r *Runs) Prune(ctx context.Context, options *PruneOptions) (*BulkResult, error) {
	if err := r.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer r.rt.gate.leave()
	return r.rt.prune(ctx, options)
}

func (rt *Runtime) prune(ctx context.Context, options *PruneOptions) (*BulkResult, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	if !rt.storage().Capabilities().PrunesRuns {
		return nil, unsupported("the storage does not prune runs")
	}
	p, err := rt.newPruning(options)
	if err != nil {
		return nil, err
	}
	if options.DryRun {
		if err := rt.operatorReads(); err != nil {
			return nil, err
		}
		return p.count(ctx)
	}
	progress, err := rt.storage().PruneRuns(ctx, &p.command)
	if err != nil {
		return nil, err
	}
	if progress.Next == "" && len(options.Statuses) == 0 {
		if err := p.flows(ctx); err != nil {
			rt.logger.LogAttrs(ctx, slog.LevelWarn, "records of flows were not pruned; the next pruning does it",
				errorAttrs(err)...)
		}
	}
	return &BulkResult{
		Matched: progress.Pruned + progress.Skipped,
		Changed: progress.Pruned,
		Skipped: progress.Skipped,
		Next:    p.next(progress.Next),
	}, nil
}

type pruning struct {
	rt      *Runtime
	scope   string
	command lane.PruneCommand
}

func (rt *Runtime) newPruning(o *PruneOptions) (*pruning, error) {
	p := &pruning{
		rt: rt,
		scope: fmt.Sprintf(
			"prune %s %s %s %t %t",
			rt.environment,
			o.OlderThan,
			describeList(o.Statuses),
			o.ReleaseOwners,
			o.DryRun,
		),
		command: lane.PruneCommand{
			PageQuery: lane.PageQuery{
				Environment: rt.environment,
				Limit:       cmp.Or(o.Limit, runlane.DefaultPruneLimit),
			},
			Statuses:      slices.Clone(o.Statuses),
			OlderThan:     nextMilli(rt.now().Add(-o.OlderThan)),
			ReleaseOwners: o.ReleaseOwners,
		},
	}
	if len(p.command.Statuses) == 0 {
		p.command.Statuses = terminalStatuses
	}
	if o.After == "" {
		return p, nil
	}
	position, err := openCursor(o.After, p.scope, "PruneOptions.After")
	if err != nil {
		return nil, err
	}
	cutoff, inner, _ := strings.Cut(position, " ")
	ms, err := strconv.ParseInt(cutoff, 10, 64)
	if err != nil {
		return nil, foreignCursor("PruneOptions.After")
	}
	p.command.OlderThan, p.command.After = time.UnixMilli(ms).UTC(), runlane.Cursor(inner)
	return p, nil
}

// nextMilli rounds up, as runs end at whole milliseconds.
func nextMilli(at time.Time) time.Time { return runlane.UTCMillis(at.Add(time.Millisecond - 1)) }

// next resumes with the same cutoff.
func (p *pruning) next(inner runlane.Cursor) runlane.Cursor {
	if inner == "" {
		return ""
	}
	return sealCursor(p.scope, fmt.Sprintf("%d %s", p.command.OlderThan.UnixMilli(), inner))
}

// flows removes the records of flows that finished before the cutoff. Records that change meanwhile stay.
func (p *pruning) flows(ctx context.Context) error {
	if !p.rt.storage().Capabilities().SuspendsRuns {
		return nil
	}
	q := lane.FlowQuery{
		PageQuery: lane.PageQuery{Environment: p.rt.environment, Limit: min(p.command.Limit, runlane.MaxPageLimit)},
		Finished:  true,
		Before:    p.command.OlderThan,
	}
	for {
		page, err := p.rt.storage().ListFlows(ctx, &q)
		if err != nil {
			return err
		}
		for i := range page.Items {
			command := &lane.FlowCommand{Environment: p.rt.environment, Flow: page.Items[i], Remove: true}
			if _, err := p.rt.storage().PutFlow(ctx, command); err != nil && !isConflict(err, runlane.ConflictFlow) {
				return err
			}
		}
		if q.After = page.Next; page.Next == "" {
			return nil
		}
	}
}

// count counts like a storage's pruning, without removing anything.
func (p *pruning) count(ctx context.Context) (*BulkResult, error) {
	result := &BulkResult{}
	filter, after := RunFilter{Statuses: p.command.Statuses}, p.command.After
	for range prunePages {
		page, err := p.rt.listRuns(ctx, &filter, p.command.Limit, after)
		if err != nil {
			result.Next = p.next(after)
			return result, err
		}
		var old []runlane.RunID
		for i := range page.Items {
			if page.Items[i].FinishedAt.Before(p.command.OlderThan) {
				old = append(old, page.Items[i].ID)
			}
		}
		retaining, err := p.retaining(ctx, old)
		if err != nil {
			result.Next = p.next(after)
			return result, err
		}
		result.Matched += len(old)
		result.Skipped += retaining
		after = page.Next
		if after == "" || result.Matched >= p.command.Limit {
			break
		}
	}
	result.Next = p.next(after)
	return result, nil
}

// retaining counts the runs that still own their idempotency key, by the owner's record.
func (p *pruning) retaining(ctx context.Context, ids []runlane.RunID) (n int, err error) {
	if p.command.ReleaseOwners || len(ids) == 0 {
		return 0, nil
	}
	runs, err := p.rt.storage().GetRuns(ctx, &lane.RunsQuery{
		Environment:    p.rt.environment,
		IDs:            ids,
		WithoutPayload: true,
	})
	if err != nil {
		return 0, err
	}
	for _, run := range runs {
		if run.IdempotencyKey == "" || run.Status == runlane.StatusFailed || run.Retention.WhileActive {
			continue // holds no key after its end
		}
		owner, err := p.rt.storage().GetRunByIdempotencyKey(ctx, lane.OwnerKey{
			Environment: p.rt.environment, TaskID: run.TaskID, Key: run.IdempotencyKey,
		})
		switch {
		case isNotFound(err):
		case err != nil:
			return n, err
		case owner.ID == run.ID:
			n++
		}
	}
	return n, nil
}
