package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// Seen is a run as this program reads it.
type Seen struct {
	Run      runlane.RunID      `json:"run"`
	Name     string             `json:"name"`
	Bytes    int                `json:"bytes"` // of the payload
	Status   runlane.Status     `json:"status"`
	Attempts int                `json:"attempts"`
	Schedule runlane.ScheduleID `json:"schedule,omitempty"`
	Fire     int64              `json:"fire,omitempty"` // of that schedule, in milliseconds
	Output   string             `json:"output,omitempty"`
	// Fault is what is wrong with the run, or with its history.
	Fault string `json:"fault,omitempty"`
}

// glance lists every run with its status.
func glance(ctx context.Context) error { return list(ctx, true) }

// look lists every run, each with what is read of it.
func look(ctx context.Context) error { return list(ctx, false) }

func list(ctx context.Context, briefly bool) (err error) {
	rt, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close(ctx)) }()
	out := json.NewEncoder(os.Stdout)
	for summary, err := range rt.Runs().All(ctx, nil) {
		if err != nil {
			return err
		}
		if briefly {
			if err := out.Encode(&Seen{Run: summary.ID, Status: summary.Status}); err != nil {
				return err
			}
			continue
		}
		seen, err := read(ctx, rt, summary.ID)
		if err != nil {
			return fmt.Errorf("run %s: %w", summary.ID, err)
		}
		if err := out.Encode(seen); err != nil {
			return err
		}
	}
	return nil
}

func read(ctx context.Context, rt *core.Runtime, id runlane.RunID) (*Seen, error) {
	for { // a run that changes between two reads is read again
		before, err := rt.Runs().Get(ctx, id)
		if err != nil {
			return nil, err
		}
		var folded *runlane.Run
		fault := ""
		for record, err := range rt.Runs().Events(ctx, id, nil) {
			if err != nil {
				return nil, err
			}
			sequence := int64(0)
			if folded != nil {
				sequence = folded.EventSequence
			}
			if folded, err = core.ProjectRunEvents(folded, sequence, record.Event); err != nil {
				return nil, fmt.Errorf("event %d: %w", record.Sequence, err)
			}
		}
		after, err := rt.Runs().Get(ctx, id)
		if err != nil {
			return nil, err
		}
		if before.EventSequence != after.EventSequence {
			continue
		}
		if folded == nil || folded.Status != after.Status || folded.EventSequence != after.EventSequence ||
			!reflect.DeepEqual(folded.Counters, after.Counters) {
			fault = "its history folds to something else"
		}
		var job Job
		if err := json.Unmarshal(after.Payload, &job); err != nil {
			fault = "its payload cannot be read: " + err.Error()
		}
		seen := &Seen{
			Run:      id,
			Name:     job.Name,
			Bytes:    len(after.Payload),
			Status:   after.Status,
			Attempts: after.Counters.Attempts,
			Schedule: after.Source.ScheduleID,
			Output:   string(after.Output),
			Fault:    fault,
		}
		if !after.Source.FireTime.IsZero() {
			seen.Fire = after.Source.FireTime.UnixMilli()
		}
		return seen, nil
	}
}
