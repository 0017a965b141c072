package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"

	"golang.org/x/sync/errgroup"

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
	var all []*Seen
	for summary, err := range rt.Runs().All(ctx, nil) {
		if err != nil {
			return err
		}
		all = append(all, &Seen{Run: summary.ID, Status: summary.Status})
	}
	if !briefly {
		if err := readAll(ctx, rt, all); err != nil {
			return err
		}
	}
	out := json.NewEncoder(os.Stdout)
	for _, seen := range all {
		if err := out.Encode(seen); err != nil {
			return err
		}
	}
	return nil
}

// readAll puts in place of each run what is read of it, a few at once: each is three requests.
func readAll(ctx context.Context, rt *core.Runtime, all []*Seen) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i := range all {
		group.Go(func() error {
			seen, err := read(ctx, rt, all[i].Run)
			if err != nil {
				return fmt.Errorf("run %s: %w", all[i].Run, err)
			}
			all[i] = seen
			return nil
		})
	}
	return group.Wait()
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
