package core

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// firesBetweenTicks reports that workers here wait for the times of schedules themselves. They do so where reading the
// state costs almost nothing: in the memory of this process, or near it. Of several processes one makes each run. See
// docs/internals/design.md, Schedules.
func (rt *Runtime) firesBetweenTicks() bool {
	if len(rt.schedules) == 0 {
		return false
	}
	_, near := lane.As[lane.Near](rt.storage())
	return near || rt.storage().Capabilities().ProcessLocalState
}

// tickDistance is about how long workers here wait between two ticks: a minute, unless the storage is near.
func (rt *Runtime) tickDistance() time.Duration {
	if near, ok := lane.As[lane.Near](rt.storage()); ok {
		return near.TickEvery()
	}
	return tickEvery
}

// rest waits for the next tick. Meanwhile it makes the runs of schedules at their times, if [Runtime.firesBetweenTicks]
// says so. tickedAt is an instant before the last tick read the schedules. It returns false when ctx has ended.
func (rt *Runtime) rest(ctx context.Context, workerID string, tickedAt time.Time) bool {
	whole := rt.world.around(rt.tickDistance())
	if !rt.firesBetweenTicks() {
		return pause(ctx, whole)
	}
	for end := time.Now().Add(whole); ; {
		left := time.Until(end)
		fire, ok := rt.nextFire(tickedAt)
		wait := fire.Sub(rt.world.Now())
		if !ok || wait >= left {
			return pause(ctx, left)
		}
		if !pause(ctx, wait) {
			return false
		}
		tickedAt = rt.now()
		t := tick{rt: rt}
		if result := t.materialize(ctx); result.Err != nil && ctx.Err() == nil { // the tick tries again
			attrs := append([]slog.Attr{slog.String(attrWorkerID, workerID)}, errorAttrs(result.Err)...)
			rt.logger.LogAttrs(ctx, slog.LevelWarn, "schedules could not be fired at their time", attrs...)
		}
	}
}

// nextFire is the earliest time of any schedule after an instant.
func (rt *Runtime) nextFire(after time.Time) (fire time.Time, ok bool) {
	for _, s := range rt.schedules {
		if at, fires := s.When.Next(after); fires {
			fire, ok = earliest(fire, at), true
		}
	}
	return fire, ok
}

// warnOfFineSchedules warns once, when the runtime opens, of schedules that become due more often than a tick runs.
func (rt *Runtime) warnOfFineSchedules(ctx context.Context) {
	if rt.firesBetweenTicks() {
		return
	}
	for _, s := range rt.schedules {
		first, fires := s.When.Next(rt.now())
		second, again := s.When.Next(first)
		if !fires || !again || second.Sub(first) >= tickEvery {
			continue
		}
		rt.logger.LogAttrs(
			ctx,
			slog.LevelWarn,
			"schedule is finer than the ticks that fire it",
			slog.String("schedule", string(s.ID)),
			slog.String("when", s.When.String()),
			slog.String("distance", runlane.FormatDuration(second.Sub(first))),
			slog.String("tick", runlane.FormatDuration(tickEvery)),
			slog.String(
				"hint",
				fmt.Sprintf(
					"a tick looks about every %s and decides by the misfire policy: %q makes one run of all that came "+
						"due since, %q makes each",
					runlane.FormatDuration(tickEvery),
					runlane.MisfireLatest,
					runlane.MisfireCatchUp,
				),
			),
		)
	}
}
