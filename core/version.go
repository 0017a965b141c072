package core

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
)

// newerPause is how long a program leaves a run alone that a higher version of the task has executed.
const newerPause = time.Minute

func versionRecord(version int) string { return fmt.Sprint(versionPrefix, version) }

// versionPrefix begins the names of these records. No step, wait or call has such a name.
const versionPrefix = "version:"

// settleVersion finds the task version that the run began with, before the attempt loads its records, and records that
// this version goes on with it. Tasks without a version pay nothing. The caller holds the lock of steps.
func (x *execution) settleVersion(ctx context.Context, known map[string]*runlane.StepRecord) error {
	own := x.handler.Task.Version
	met := runlane.TaskVersion{}
	for _, record := range known {
		if record.Kind != runlane.StepKindVersion {
			continue
		}
		var one runlane.TaskVersion
		if err := decodeRecord(x, record, &one); err != nil {
			return err
		}
		if one.Version > met.Version {
			met = one
		}
	}
	switch {
	case met.Version > own:
		return x.leaveToNewer(met.Version)
	case met.Version == 0 && len(known) == 0 && x.started.Counters.Releases == 0:
		met.Began = own // no records and no waits yet: it begins with this version
	}
	x.steps.began = met.Began
	if met.Version == own {
		return nil
	}
	result, err := json.Marshal(runlane.TaskVersion{Version: own, Began: met.Began})
	if err != nil {
		return err
	}
	record := &runlane.StepRecord{
		Name:   versionRecord(own),
		Kind:   runlane.StepKindVersion,
		At:     x.rt.now(),
		Result: result,
	}
	kept, err := x.keepOn(ctx, record)
	if err != nil {
		return err
	}
	known[kept.Name], x.steps.last = kept, kept.At
	err = decodeRecord(x, kept, &met) // of two concurrent attempts the first record counts
	x.steps.began = met.Began
	return err
}

// leaveToNewer suspends the attempt: a higher version has executed the run, and this one may not know its records.
func (x *execution) leaveToNewer(version int) error {
	reason := fmt.Sprintf("version %d of the task has gone on with it, this program has version %d",
		version, x.handler.Task.Version)
	w := &runlane.Waiting{
		For:   []runlane.WaitingFor{runlane.WaitingTime},
		Until: ceilMillis(x.rt.now().Add(newerPause)),
	}
	return x.suspend(versionRecord(version), reason, w, -1)
}

// Began implements runlane.StepHost.
func (x *execution) Began(ctx context.Context) (int, error) {
	s := &x.steps
	s.mu.Lock()
	defer s.mu.Unlock()
	err := x.load(ctx)
	return s.began, err
}
