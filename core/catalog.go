package core

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

const (
	// catalogEvery is how often a ticking runtime reads the catalog, and the age at which it stores its records again. So
	// they are never older than twice this time.
	catalogEvery = 12 * time.Hour
	// catalogRetry is the pause after a failed reading.
	catalogRetry = 10 * time.Minute
)

// catalog is a runtime's share of its environment's stored task definitions (docs/internals/design.md, Programs).
type catalog struct {
	mu       sync.Mutex // held during a merge; other callers skip theirs
	mergedAt time.Time  // monotonic clock
	every    time.Duration
	settled  map[runlane.TaskID]bool // definitions that this runtime stored or found stored
}

func (rt *Runtime) keepsTasks() bool { return rt.storage().Capabilities().KeepsTasks }

// storeTasks stores those of this runtime's task definitions that differ from the stored ones. It is not a stage of the
// tick: a failure is logged and retried later.
func (rt *Runtime) storeTasks(ctx context.Context, deadline time.Time) {
	c := &rt.catalog
	left := deadline.Sub(rt.world.Now())
	if !rt.keepsTasks() || len(rt.definitions) == 0 || left <= 0 || ctx.Err() != nil || !c.mu.TryLock() {
		return
	}
	defer c.mu.Unlock()
	now := rt.world.Now()
	if !c.mergedAt.IsZero() && now.Sub(c.mergedAt) < c.every {
		return
	}
	limited, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	err := rt.mergeTasks(limited)
	if err != nil && limited.Err() != nil {
		return // out of time: the next tick continues
	}
	c.mergedAt, c.every = now, catalogEvery
	if err != nil {
		c.every = catalogRetry
		rt.logger.LogAttrs(
			ctx,
			slog.LevelWarn,
			"task definitions were not stored; other programs may not know these tasks",
			errorAttrs(err)...,
		)
	}
}

// mergeTasks stores definitions that are missing, changed or old. If one that it stored before has changed since, a
// program that started later stored it: it stays, or the two would replace each other's for ever.
func (rt *Runtime) mergeTasks(ctx context.Context) error {
	c := &rt.catalog
	stored, err := rt.storedTasks(ctx)
	if err != nil {
		return err
	}
	now := rt.now()
	var puts []lane.TaskRecord
	for _, d := range rt.definitions {
		own := taskRecord(d, now)
		there, known := stored[d.ID]
		switch same := there.Same(own); {
		case same && now.Sub(there.SeenAt).Abs() < catalogEvery: // a record with a time in the future is stored again
			c.settled[d.ID] = true
		case known && !same && c.settled[d.ID]:
		default:
			puts = append(puts, own)
		}
	}
	faults := make([]error, len(puts))
	group := errgroup.Group{}
	group.SetLimit(parallel)
	for i := range puts {
		group.Go(func() error {
			faults[i] = rt.storage().PutTask(ctx, &lane.PutTaskCommand{Environment: rt.environment, Record: puts[i]})
			return nil
		})
	}
	_ = group.Wait() // errors are collected
	for i := range puts {
		if faults[i] == nil {
			c.settled[puts[i].ID] = true
		}
	}
	return firstError(faults...) // any of them will do
}

func (rt *Runtime) storedTasks(ctx context.Context) (map[runlane.TaskID]lane.TaskRecord, error) {
	stored := map[runlane.TaskID]lane.TaskRecord{}
	q := lane.PageQuery{Environment: rt.environment, Limit: runlane.MaxPageLimit}
	for {
		page, err := rt.storage().ListTasks(ctx, &q)
		if err != nil {
			return nil, err
		}
		for _, record := range page.Items {
			stored[record.ID] = record
		}
		if q.After = page.Next; q.After == "" {
			return stored, nil
		}
	}
}

// taskRecord is the part of a definition that other programs see.
func taskRecord(d *runlane.Definition, seen time.Time) lane.TaskRecord {
	r := d.Record(seen)
	if r.MaxAttempts > 1 {
		r.Backoff = backoffText(d.Retry.Backoff)
	}
	return r
}

// backoffText describes a backoff. One from outside this module is named by its type: describing it would need a call.
func backoffText(b runlane.Backoff) string {
	switch b := b.(type) {
	case nil:
		return exponentialText(runlane.Exponential{})
	case runlane.Exponential:
		return exponentialText(b)
	case runlane.Fixed:
		return "fixed, " + runlane.FormatDuration(time.Duration(b))
	case runlane.BackoffFunc:
		return "a function"
	default:
		name := reflect.TypeOf(b).String()
		return strings.ToValidUTF8(name[:min(len(name), lane.MaxBackoffText)], "")
	}
}

func exponentialText(b runlane.Exponential) string {
	base, limit := b.Base, b.Max
	if base == 0 {
		base = runlane.DefaultBackoffBase
	}
	if limit == 0 {
		limit = runlane.DefaultBackoffMax
	}
	return fmt.Sprintf("exponential, %s to %s", runlane.FormatDuration(base), runlane.FormatDuration(limit))
}
