// Package schedule decides when schedules make runs and keeps their records: due occurrences, the policies for misfires
// and overlap, and which process makes the run of an occurrence. Package core makes the runs.
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

// Host is the runtime's side of schedules.
type Host interface {
	Now() time.Time
	Storage() lane.Storage
	// Create makes a run of a schedule. announce then sends its wakeup.
	Create(ctx context.Context, d *Definition, run *Run) (made *runlane.Run, announce func(context.Context), err error)
	// Cancel cancels a run. A run that has ended or is gone is not an error.
	Cancel(ctx context.Context, id runlane.RunID, actor runlane.Actor, reason string) error
}

// Run holds the details of one run of a schedule.
type Run struct {
	ID       runlane.RunID
	Actor    runlane.Actor
	FireTime time.Time // zero: when the run is made
	Reason   string    // an operator's; "" for none
}

// Scheduler manages the schedules of one runtime. Add all of them before any other use.
type Scheduler struct {
	Host        Host
	Environment runlane.Environment
	Logger      *slog.Logger
	Coded       bool      // payloads are encoded; keep no hash that would confirm a guess
	OpenedAt    time.Time // of the runtime

	definitions []*Definition // sorted by id
}

// All returns the definitions, sorted by ID.
func (s *Scheduler) All() []*Definition { return s.definitions }

func compareID(d *Definition, id runlane.ScheduleID) int { return cmp.Compare(d.ID, id) }

func (s *Scheduler) Find(id runlane.ScheduleID) (*Definition, bool) {
	at, ok := slices.BinarySearchFunc(s.definitions, id, compareID)
	if !ok {
		return nil, false
	}
	return s.definitions[at], true
}

func (s *Scheduler) Supported() error {
	if !s.Host.Storage().Capabilities().KeepsSchedules {
		return fail.Unsupported("the storage keeps no schedules")
	}
	return nil
}

func (s *Scheduler) key(id runlane.ScheduleID) lane.ScheduleKey {
	return lane.ScheduleKey{Environment: s.Environment, ScheduleID: id}
}

// NextFire returns the earliest fire of any schedule after an instant.
func (s *Scheduler) NextFire(after time.Time) (fire time.Time, ok bool) {
	for _, d := range s.definitions {
		if at, fires := d.When.Next(after); fires {
			fire, ok = earliest(fire, at), true
		}
	}
	return fire, ok
}

// WarnOfFine warns of schedules that fire more often than ticks come.
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
					"a tick comes about every %s and applies the misfire policy: %q makes one run for all times since "+
						"the last tick, %q one for each",
					runlane.FormatDuration(ticks),
					runlane.MisfireLatest,
					runlane.MisfireCatchUp,
				),
			),
		)
	}
}

// records returns all stored records by ID, in pages of limit; 0 means the storage's default.
func (s *Scheduler) records(ctx context.Context, limit int) iter.Seq2[*runlane.ScheduleRecord, error] {
	return walk(func(after runlane.Cursor) (*runlane.Page[runlane.ScheduleRecord], error) {
		q := &lane.PageQuery{Environment: s.Environment, Limit: limit, After: after}
		return s.Host.Storage().ListSchedules(ctx, q)
	})
}

// Occurrences returns the recorded occurrences of a schedule, newest first. An error ends it.
func (s *Scheduler) Occurrences(
	ctx context.Context, id runlane.ScheduleID, skippedOnly bool,
) iter.Seq2[*runlane.Occurrence, error] {
	return walk(func(after runlane.Cursor) (*runlane.Page[runlane.Occurrence], error) {
		return s.Host.Storage().ListScheduleOccurrences(ctx, &lane.OccurrenceQuery{
			PageQuery:   lane.PageQuery{Environment: s.Environment, After: after},
			ScheduleID:  id,
			SkippedOnly: skippedOnly,
		})
	})
}

// walk yields the items of all pages of a list. An error ends it.
func walk[T any](read func(after runlane.Cursor) (*runlane.Page[T], error)) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for after := runlane.Cursor(""); ; {
			page, err := read(after)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Items {
				if !yield(&page.Items[i], nil) {
					return
				}
			}
			if after = page.Next; after == "" {
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

// earliest returns the earlier of two instants. A zero a is ignored.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
