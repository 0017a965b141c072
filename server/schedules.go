package server

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

type oneSchedule struct {
	Schedule runlane.ScheduleID `path:"schedule" doc:"the id of the schedule"`
}

type scheduleChangeInput struct {
	oneSchedule
	Body reasonBody `body:"json"`
}

func listSchedules(ctx context.Context, c *call, _ *nothing) (*reply, error) {
	var all []core.ScheduleState
	for state, err := range c.rt.Schedules().List(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, state)
	}
	return pageOf("schedule", all, "", asItIs), nil
}

func getSchedule(ctx context.Context, c *call, in *oneSchedule) (*reply, error) {
	state, err := c.rt.Schedules().Get(ctx, in.Schedule)
	if err != nil {
		return nil, err
	}
	return object("schedule", state), nil
}

type nextInput struct {
	oneSchedule
	Count int `query:"count" min:"1" max:"1000" doc:"how many times; 5 unless given"`
}

const defaultFires = 5

func nextFires(_ context.Context, c *call, in *nextInput) (*reply, error) {
	times, err := c.rt.Schedules().Preview(in.Schedule, cmp.Or(in.Count, defaultFires))
	if err != nil {
		return nil, err
	}
	return pageOf("fire", times, "", func(at *time.Time) any { return shown.Fire{ID: in.Schedule, At: *at} }), nil
}

type occurrencesInput struct {
	oneSchedule
	Limit   int  `query:"limit" min:"1" max:"500" doc:"how many; 50 unless given"`
	Skipped bool `query:"skipped" doc:"true: only those that made no run"`
}

func listOccurrences(ctx context.Context, c *call, in *occurrencesInput) (*reply, error) {
	var found []runlane.Occurrence
	for occurrence, err := range c.rt.Schedules().Occurrences(ctx, in.Schedule, in.Skipped) {
		if err != nil {
			return nil, err
		}
		if found = append(found, occurrence); len(found) == cmp.Or(in.Limit, runlane.DefaultPageLimit) {
			break
		}
	}
	if len(found) == 0 {
		if _, err := c.rt.Schedules().Get(ctx, in.Schedule); err != nil {
			return nil, err // the schedule may not exist
		}
	}
	return pageOf("occurrence", found, "", asItIs), nil
}

func switchHandler(
	change func(*core.Schedules, context.Context, runlane.ScheduleID, *core.ChangeOptions) error,
) func(context.Context, *call, *scheduleChangeInput) (*reply, error) {
	return func(ctx context.Context, c *call, in *scheduleChangeInput) (*reply, error) {
		options, err := in.Body.by(c.by)
		if err != nil {
			return nil, err
		}
		if err := change(c.rt.Schedules(), ctx, in.Schedule, &options); err != nil {
			return nil, refused(err)
		}
		return getSchedule(ctx, c, &in.oneSchedule)
	}
}

func triggerSchedule(ctx context.Context, c *call, in *scheduleChangeInput) (*reply, error) {
	options, err := in.Body.by(c.by)
	if err != nil {
		return nil, err
	}
	run, err := c.rt.Schedules().TriggerNow(ctx, in.Schedule, &options)
	if err != nil {
		return nil, refused(err)
	}
	made := &runlane.TriggerResult{Run: run, Outcome: runlane.TriggerCreated}
	answered := object("triggered", shown.TriggeredOf(made, 0))
	answered.status, answered.run, answered.made = http.StatusCreated, string(run.ID), true
	answered.sequence = run.EventSequence
	return answered, nil
}
