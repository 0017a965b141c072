// Package schedule decides when schedules make runs, and keeps their records: what is due, what the policies for
// misfires and overlap leave of it, and which process makes the run of an occurrence. Package core makes the runs.
package schedule

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/fail"
	"github.com/runlane/runlane-go/lane"
)

// Host is what schedules need of the runtime.
type Host interface {
	// Now is the time as storages keep it.
	Now() time.Time
	// Storage is the one on which the runtime works.
	Storage() lane.Storage
	// Create makes a run of a schedule. announce then sends its wakeup.
	Create(ctx context.Context, d *Definition, run *Run) (made *runlane.Run, announce func(context.Context), err error)
	// Cancel cancels a run. One that has ended, or is gone, is no error.
	Cancel(ctx context.Context, id runlane.RunID, actor runlane.Actor, reason string) error
}

// Run is what one run of a schedule has of its own.
type Run struct {
	ID       runlane.RunID
	Actor    runlane.Actor
	FireTime time.Time // zero: the time at which the run is made
	Reason   string    // of an operator; "" for none
}

// Scheduler has the schedules of one runtime. Add all before any other use.
type Scheduler struct {
	Host        Host
	Environment runlane.Environment
	Logger      *slog.Logger
	Coded       bool      // payloads are encoded, so that nothing may be kept that confirms a guess of one
	OpenedAt    time.Time // of the runtime

	definitions []*Definition // by id
}

// All are the definitions, by id.
func (s *Scheduler) All() []*Definition { return s.definitions }

func compareID(d *Definition, id runlane.ScheduleID) int { return cmp.Compare(d.ID, id) }

// Find is the definition of an id.
func (s *Scheduler) Find(id runlane.ScheduleID) (*Definition, bool) {
	at, ok := slices.BinarySearchFunc(s.definitions, id, compareID)
	if !ok {
		return nil, false
	}
	return s.definitions[at], true
}

// Supported refuses a storage that keeps no schedules.
func (s *Scheduler) Supported() error {
	if !s.Host.Storage().Capabilities().KeepsSchedules {
		return fail.Unsupported("the storage keeps no schedules")
	}
	return nil
}

func (s *Scheduler) key(id runlane.ScheduleID) lane.ScheduleKey {
	return lane.ScheduleKey{Environment: s.Environment, ScheduleID: id}
}

// NextFire is the earliest time of any schedule after an instant.
func (s *Scheduler) NextFire(after time.Time) (fire time.Time, ok bool) {
	for _, d := range s.definitions {
		if at, fires := d.When.Next(after); fires {
			fire, ok = earliest(fire, at), true
		}
	}
	return fire, ok
}

// WarnOfFine warns of schedules that become due more often than ticks at this distance look at them.
func (s *Scheduler) WarnOfFine(ctx context.Context, ticks time.Duration) {
	for _, d := range s.definitions {
		first, fires := d.When.Next(s.Host.Now())
		second, again := d.When.Next(first)
		if !fires || !again || second.Sub(first) >= ticks {
			continue
		}
		s.Logger.LogAttrs(
			ctx,
			slog.LevelWarn,
			"schedule is finer than the ticks that fire it",
			slog.String("schedule", string(d.ID)),
			slog.String("when", d.When.String()),
			slog.String("distance", runlane.FormatDuration(second.Sub(first))),
			slog.String("tick", runlane.FormatDuration(ticks)),
			slog.String(
				"hint",
				fmt.Sprintf(
					"a tick looks about every %s and decides by the misfire policy: %q makes one run of all that came "+
						"due since, %q makes each",
					runlane.FormatDuration(ticks),
					runlane.MisfireLatest,
					runlane.MisfireCatchUp,
				),
			),
		)
	}
}

// records walks all records that are stored, by id, in pages of this size; 0 means the storage's.
func (s *Scheduler) records(ctx context.Context, limit int) iter.Seq2[*runlane.ScheduleRecord, error] {
	return func(yield func(*runlane.ScheduleRecord, error) bool) {
		q := lane.PageQuery{Environment: s.Environment, Limit: limit}
		for {
			page, err := s.Host.Storage().ListSchedules(ctx, &q)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Items {
				if !yield(&page.Items[i], nil) {
					return
				}
			}
			if q.After = page.Next; q.After == "" {
				return
			}
		}
	}
}

// Occurrences walks the recorded occurrences of a schedule, newest first. An error is the last thing it yields.
func (s *Scheduler) Occurrences(
	ctx context.Context, id runlane.ScheduleID, skippedOnly bool,
) iter.Seq2[*runlane.Occurrence, error] {
	return func(yield func(*runlane.Occurrence, error) bool) {
		q := lane.OccurrenceQuery{
			PageQuery:   lane.PageQuery{Environment: s.Environment},
			ScheduleID:  id,
			SkippedOnly: skippedOnly,
		}
		for {
			page, err := s.Host.Storage().ListScheduleOccurrences(ctx, &q)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Items {
				if !yield(&page.Items[i], nil) {
					return
				}
			}
			if q.After = page.Next; q.After == "" {
				return
			}
		}
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// earliest is the earlier of two instants. A zero a is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
