package toystorage

import (
	"errors"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lanetest"
)

func TestAppendRunEvents_ALostAnswerIsFoundByReading(t *testing.T) {
	t.Parallel()
	plan := lanetest.NewFaultPlan(t, 0, lanetest.FaultRule{Method: "AppendRunEvents", Kind: lanetest.FaultAfter, Rate: 1, Times: 1})
	s := lanetest.FaultyStorage(New(), plan)
	c := lanetest.NewFactory(env).Creation(t, noon, lanetest.RunOptions{})
	_, err := s.AppendRunEvents(t.Context(), c)
	e, ok := errors.AsType[*runlane.Error](err)
	if !ok || e.Code != runlane.ErrStorageUnavailable || e.Meta["outcome"] != "unknown" {
		t.Fatalf("error is %v, want %q with an unknown outcome", err, runlane.ErrStorageUnavailable)
	}
	run, err := s.GetRun(t.Context(), c.Key())
	if err != nil || run.EventSequence != c.Projected.EventSequence {
		t.Fatalf("run is %+v, error %v: the commit that was reported as unknown is not there", run, err)
	}
	_, err = s.AppendRunEvents(t.Context(), c) // a caller that repeats blindly takes its own commit for another's
	wantConflict(t, err, runlane.ConflictEventSequence)
}
