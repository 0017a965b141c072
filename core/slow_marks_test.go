package core_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// unhurried is a storage that needs its time for every row it marks, one after another.
type unhurried struct {
	lane.Storage

	perRow time.Duration
}

func (s *unhurried) Unwrap() lane.Storage { return s.Storage }

func (s *unhurried) MarkOutboxMessagesPublished(ctx context.Context, c *lane.MarkPublishedCommand) error {
	select {
	case <-time.After(time.Duration(len(c.Messages)) * s.perRow):
		return s.Storage.MarkOutboxMessagesPublished(ctx, c)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// What a single mark may take, each of a hundred may take: a tick over a slow storage ends without a fault, and publishes nothing twice.
func TestTick_SlowStorage_MarksAHundredRows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt := openOn(t, &unhurried{memlane.NewStorage(nil), 80 * time.Millisecond}, memlane.NewTransport(nil))
		task := runlane.NewTask[payload]("any", nil)
		items := make([]core.BatchItem, 100)
		for i := range items {
			items[i] = core.BatchItem{Call: task.With(payload{}), Options: &runlane.TriggerOptions{Deferred: true}}
		}
		if _, err := rt.TriggerBatch(t.Context(), items); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		result, err := rt.Tick(t.Context(), &core.TickOptions{Deadline: time.Now().Add(time.Minute)})
		if err != nil || result.Flushed.Done != len(items) {
			t.Errorf("the tick published %d of %d: %v", result.Flushed.Done, len(items), err)
		}
	})
}
