package core

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
)

// newerPause is how long a run is left alone by a program whose task has a lower version than the run has met.
const newerPause = time.Minute

// versionRecord is the name of the record of a version.
func versionRecord(version int) string { return fmt.Sprint(versionPrefix, version) }

// versionPrefix begins the names of these records. No step, wait or call has such a name.
const versionPrefix = "version:"

// settleVersion finds out which version of its task the run began with, before the attempt remembers anything, and
// keeps that this one goes on with it. Tasks without a version pay nothing. The caller has the lock of steps.
func (x *execution) settleVersion(ctx context.Context, known map[string]*runlane.StepRecord) error {
	own := x.handler.Task.Version
	met := runlane.TaskVersion{}
	for _, record := range known {
		if record.Kind != runlane.StepKindVersion {
			continue
		}
		var one runlane.TaskVersion
		if err := opened(x, record, &one); err != nil {
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
		met.Began = own // it remembers nothing, and never waited: it begins with what executes it
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
	err = opened(x, kept, &met) // of two that go on with it at once, the first record counts
	x.steps.began = met.Began
	return err
}

// leaveToNewer suspends the attempt: code of a higher version has gone on with the run, and this one may not know what
// it did.
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
