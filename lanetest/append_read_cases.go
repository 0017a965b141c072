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

// docs/internals/contract.md, Events: a reader finds events that a newer version wrote.
func appendUnknown(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	if b.h.PlantUnknownEvent == nil {
		return // only storages that can plant one are asked
	}
	unknown := runlane.UnknownEvent{Type: "run.dreamt", Data: []byte(`{"of": ["sheep"]}`)}
	b.h.PlantUnknownEvent(t, b.storage, b.key(run.ID), unknown)
	history := b.history(b.key(run.ID))
	last := history[len(history)-1]
	got, ok := last.Body.(*runlane.UnknownEvent)
	if !ok || got.Type != unknown.Type || last.Type() != unknown.Type || string(got.Data) != string(unknown.Data) {
		t.Fatalf("unknown event is listed as %T %+v", last.Body, last.Body)
	}
}

func appendMillis(t *testing.T, b *bundle) {
	zone := time.FixedZone("elsewhere", 5*3600+1800)
	odd := func(d time.Duration) time.Time { return noon.Add(d).In(zone).Add(999_999 * time.Nanosecond) }
	check := func(what string, got, want time.Time) {
		t.Helper()
		if !got.Equal(want) || got.Location() != time.UTC {
			t.Errorf("%s is %s, want %s", what, got, want)
		}
	}
	c := b.Creation(t, odd(0), RunOptions{
		RunAt:  odd(time.Minute),
		Source: runlane.Source{Type: runlane.SourceSchedule, ScheduleID: "s", FireTime: odd(-time.Minute)},
	})
	run := b.append(c).Run
	run = b.claim(run, odd(2*time.Minute), odd(3*time.Minute))
	b.push(run, odd(2*time.Minute+time.Second), Retried(run, odd(time.Hour)))

	stored := b.get(run.ID)
	check("createdAt", stored.CreatedAt, noon)
	check("startedAt", stored.StartedAt, noon.Add(2*time.Minute))
	check("updatedAt", stored.UpdatedAt, noon.Add(2*time.Minute+time.Second))
	check("runAt", stored.RunAt, noon.Add(time.Hour))
	check("source.fireTime", stored.Source.FireTime, noon.Add(-time.Minute))
	for _, r := range b.history(b.key(run.ID)) {
		check(string(r.Type())+".occurredAt", r.OccurredAt, runlane.UTCMillis(r.OccurredAt))
		switch body := r.Body.(type) {
		case *runlane.RunCreated:
			check("runAt of the creation", body.RunAt, noon.Add(time.Minute))
		case *runlane.RunDeliveryRequested:
			check("availableAt", body.Delivery.AvailableAt, noon.Add(time.Minute))
			check("requestedAt", body.Delivery.RequestedAt, noon)
		case *runlane.RunLeaseClaimed:
			check("lease", body.Lease.ExpiresAt, noon.Add(3*time.Minute))
		case *runlane.RunRetryScheduled:
			check("retryAt", body.RetryAt, noon.Add(time.Hour))
		default: // has no instant besides the header's
		}
	}
}
