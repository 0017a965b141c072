package core

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
)

// Keep is how long finished runs are kept, by how they ended. Ticks then remove them with their histories, like
// [Runs.Prune]: not while they hold an idempotency key or something refers to them. 0 means for ever; at least
// [MinKeep].
type Keep struct {
	Succeeded, Failed, Cancelled time.Duration
}

// KeepAll keeps all finished runs for the same time.
func KeepAll(d time.Duration) Keep { return Keep{Succeeded: d, Failed: d, Cancelled: d} }

// MinKeep leaves callers the time to read a result.
const MinKeep = time.Hour

// keepEvery is how often a runtime looks for runs to remove; what is left over then follows in the next ticks.
const keepEvery = 6 * time.Hour

func (k *Keep) of(status runlane.Status) time.Duration {
	switch status {
	case runlane.StatusSucceeded:
		return k.Succeeded
	case runlane.StatusFailed:
		return k.Failed
	default:
		return k.Cancelled
	}
}

func (rt *Runtime) checkKeep() error {
	if rt.keep.rule == (Keep{}) {
		return nil
	}
	for _, status := range terminalStatuses {
		if d := rt.keep.rule.of(status); d != 0 && d < MinKeep {
			return invalidOption(fmt.Sprintf("use 0 for ever, or at least %s", MinKeep), "Options.Keep keeps %s runs for %s", status, d)
		}
	}
	if !rt.storage().Capabilities().PrunesRuns {
		return unsupported("the storage does not remove runs (Options.Keep)")
	}
	return nil
}

// keeping is where a runtime's removal of old runs stands.
type keeping struct {
	rule Keep

	mu    sync.Mutex
	next  time.Time                         // when it begins anew
	after map[runlane.Status]runlane.Cursor // of the statuses that it has not ended with; nil: it begins
}

// prune removes runs that Options.Keep no longer keeps. One tick of a runtime does it at a time; other processes may do
// it meanwhile, which is harmless.
func (t *tick) prune(ctx context.Context) (result StageResult) {
	k := &t.rt.keep
	now := t.rt.world.Now()
	if !k.mu.TryLock() {
		return result
	}
	defer k.mu.Unlock()
	if k.after == nil {
		if now.Before(k.next) {
			return result
		}
		k.begin()
	}
	for _, status := range terminalStatuses {
		after, unfinished := k.after[status]
		for unfinished && result.Done < t.limit {
			removed, err := t.rt.prune(ctx, &PruneOptions{
				OlderThan: k.rule.of(status),
				Statuses:  []runlane.Status{status},
				After:     after,
				Limit:     t.limit - result.Done,
			})
			if err != nil {
				result.Err = err
				return result
			}
			result.Done += removed.Changed
			after, unfinished = removed.Next, removed.Next != ""
			k.after[status] = after
		}
		if unfinished {
			result.More = true
			return result
		}
		delete(k.after, status)
	}
	if result.Err = t.pruneFlows(ctx); result.Err == nil {
		k.after, k.next = nil, now.Add(keepEvery)
	}
	return result
}

func (k *keeping) begin() {
	k.after = map[runlane.Status]runlane.Cursor{}
	for _, status := range terminalStatuses {
		if k.rule.of(status) != 0 {
			k.after[status] = ""
		}
	}
}

// pruneFlows removes the records of flows when the runs of every status have a time: after the longest of them.
func (t *tick) pruneFlows(ctx context.Context) error {
	longest := time.Duration(0)
	for _, status := range terminalStatuses {
		d := t.rt.keep.rule.of(status)
		if d == 0 {
			return nil
		}
		longest = max(longest, d)
	}
	p, err := t.rt.newPruning(&PruneOptions{OlderThan: longest})
	if err != nil {
		return err
	}
	return p.flows(ctx)
}
