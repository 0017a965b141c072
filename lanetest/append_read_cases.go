package lanetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Readers see a run between its commits, never within one: every event that the projection counts is listed, and the
// latest delivery is that of the last request. The readers continue as long as the writer does.
func appendSeenWhole(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	id := run.ID
	ctx, done := context.WithCancel(b.ctx())
	defer done()
	var readers sync.WaitGroup
	faults := make(chan error, 4)
	for range cap(faults) {
		readers.Go(func() { // ends with the writer
			for ctx.Err() == nil {
				if err := b.seenWhole(id); err != nil {
					faults <- err
					return
				}
			}
		})
	}
	for i := range 12 {
		at := noon.Add(time.Duration(i+1) * time.Second)
		run = b.push(run, at, Delivery(run, at, at), Delivery(run, at, at))
	}
	done()
	readers.Wait()
	close(faults)
	for err := range faults {
		t.Error(err)
	}
	if err := b.seenWhole(id); err != nil {
		t.Error(err)
	}
}

func (b *bundle) seenWhole(id runlane.RunID) error {
	ctx := b.t.Context()
	seen, err := b.storage.InspectRun(ctx, &lane.InspectQuery{RunKey: b.key(id)})
	if err != nil {
		return err
	}
	q := &lane.EventQuery{PageQuery: lane.PageQuery{Environment: b.env, Limit: runlane.MaxPageLimit}, RunID: id}
	page, err := b.storage.ListRunEvents(ctx, q)
	switch {
	case err != nil:
		return err
	case seen.Run.EventSequence%2 != 0:
		return errors.New("a reader saw half of a commit")
	case int64(len(page.Items)) < seen.Run.EventSequence:
		return errors.New("a reader found fewer events than the run that it had read counts")
	case seen.Delivery == nil || !seen.Delivery.Wakeup.RequestedAt.Equal(seen.Run.UpdatedAt):
		return errors.New("a reader found another delivery than the last one of the run beside it")
	default:
		return nil
	}
}
