package core

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// refusalGap is the time between two log lines about refused triggers.
const refusalGap = 10 * time.Second

// refusals counts refused triggers between two log lines.
type refusals struct {
	count  atomic.Int64
	logged atomic.Pointer[time.Time] // nil: never
}

// admit asks a storage that has limits whether it takes more runs.
func (rt *Runtime) admit(ctx context.Context, runs int, labels Labels) error {
	if rt.admitter == nil {
		return nil
	}
	err := rt.admitter.AdmitRuns(runs)
	if err == nil {
		return nil
	}
	labels.Environment = rt.environment
	rt.metrics.count(ctx, MetricTriggersRefused, 1, labels)
	rt.refusals.count.Add(1)
	last, now := rt.refusals.logged.Load(), rt.now()
	if (last == nil || now.Sub(*last) >= refusalGap) && rt.refusals.logged.CompareAndSwap(last, &now) {
		attrs := append(errorAttrs(err), slog.Int64("refused", rt.refusals.count.Swap(0)))
		rt.logger.LogAttrs(ctx, slog.LevelWarn, "triggers are refused: the storage is near its limit", attrs...)
	}
	return err
}
