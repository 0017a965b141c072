package scenarios

import (
	"context"
	"encoding/base64"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
)

// signalLarge has two bodies of 330 KB that hardly compress. An item of DynamoDB holds one of them.
func signalLarge(t *testing.T, h Harness) {
	text := func(seed byte) string {
		raw := make([]byte, 248_000)
		_, _ = rand.NewChaCha8([32]byte{seed}).Read(raw)
		return base64.StdEncoding.EncodeToString(raw)
	}
	yes, no := decision{By: text(1)}, decision{By: text(2)}
	got := &heardOf{}
	options := &runlane.TaskOptions[jobPayload]{
		Retry: runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(time.Second)},
	}
	task, handler := job("scenario.signal-large", options, func(ctx context.Context, a *runlane.Attempt) error {
		var first, second *decision
		err := runlane.WaitAll(ctx, a, nil, approved.Into(&first), withdrawn.Into(&second))
		if err != nil {
			return err
		}
		if *first != yes || *second != no {
			t.Errorf("attempt %d was told %d and %d bytes", a.Number, len(first.By), len(second.By))
		}
		got.add("both")
		if a.Number < 2 {
			return errors.New("once more")
		}
		return nil
	})
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), nil)
	s.signal(run.ID, approved.With(yes), nil)
	s.signal(run.ID, withdrawn.With(no), nil)
	s.wantStatus(s.execute(run), runlane.StatusRetrying)
	s.clock.Advance(time.Second)
	s.tick()
	s.wantStatus(s.execute(s.get(run.ID)), runlane.StatusSucceeded)
	s.wantTold(got, "both", "both")
}
