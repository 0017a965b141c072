package sqlitelane_test

import (
	"context"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/sqlitelane"
)

// docs/compatibility.md: a file of this format that was made before a table was added gets it when it is opened.
func TestOpen_AFileFromBeforeATableWasAdded_GetsIt(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	opened := func() *sqlitelane.Storage {
		t.Helper()
		s := sqlitelane.NewStorage(path, 0)
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		return s
	}
	old := opened()
	made, err := old.AppendRunEvents(t.Context(), lanetest.NewFactory("").Creation(t, time.Now(), lanetest.RunOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Drop("records"); err != nil {
		t.Fatal(err)
	}
	if err := old.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	s := opened()
	defer func() { _ = s.Close(context.Background()) }()
	key := lane.RunKey{Environment: made.Run.Environment, RunID: made.Run.ID}
	_, err = s.KeepRecord(t.Context(), &lane.KeepCommand{
		RunKey: key, CreatedAt: made.Run.CreatedAt,
		Record: lane.StepRecord{Name: "charge", Kind: runlane.StepKindStep, Attempt: 1, At: time.Now(), Result: []byte("1")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if run, err := s.GetRun(t.Context(), key); err != nil || run.EventSequence != made.Run.EventSequence {
		t.Errorf("%+v, %v", run, err)
	}
}
