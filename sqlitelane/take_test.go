package sqlitelane_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane"
)

// holder is a process that handles one wakeup until it is told how that ended.
type holder struct {
	t       *testing.T
	storage *sqlitelane.Storage
	wakeups *sqlitelane.Transport
	has     chan runlane.RunID
	end     chan error
	done    chan error
}

// hold starts a process whose clock is ahead, and waits until it has the wakeup of a run.
func hold(t *testing.T, path string, ahead time.Duration, want runlane.RunID) *holder {
	t.Helper()
	h := &holder{t: t, has: make(chan runlane.RunID, 10), end: make(chan error, 10), done: make(chan error, 1)}
	h.storage = sqlitelane.NewStorage(path, ahead)
	if err := h.storage.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.wakeups = sqlitelane.NewTransport(h.storage, "mail")
	go func() {
		h.done <- h.wakeups.Receive(t.Context(), []runlane.QueueName{"mail"}, 1, func(_ context.Context, w lane.Wakeup) error {
			h.has <- w.RunID
			return <-h.end
		})
	}()
	if got := h.next(); got != want {
		t.Fatalf("%s was taken, want %s", got, want)
	}
	return h
}

// next waits for the next wakeup that the process takes.
func (h *holder) next() runlane.RunID {
	h.t.Helper()
	select {
	case id := <-h.has:
		return id
	case <-time.After(patience.Limit):
		h.t.Fatal("nothing was taken")
		return ""
	}
}

// stop lets the handler return, and waits until what follows is in the file.
func (h *holder) stop(err error) {
	h.t.Helper()
	h.end <- err
	close(h.end) // whatever else it has
	if err := errors.Join(h.wakeups.Close(context.Background()), <-h.done, h.storage.Close(context.Background())); err != nil {
		h.t.Error(err)
	}
}

// depth wants so many wakeups in the queue.
func depth(t *testing.T, w *sqlitelane.Transport, visible, inFlight int) {
	t.Helper()
	v, f, err := w.Depth(t.Context(), "mail")
	if d := cmp.Diff([2]int{visible, inFlight}, [2]int{v, f}); d != "" || err != nil {
		t.Errorf("visible and in flight (-want +got), %v:\n%s", err, d)
	}
}

// A process that was suspended for longer than its wakeup is kept goes on, when another has taken that. What it says of
// it comes too late: the other's stays, and what waits behind it waits.
func TestTake_OfAProcessThatWasSuspended_ChangesNothing(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]error{"acknowledges": nil, "hands back": errors.New("not now")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			from := ordered(t, started(t, path, 0))
			publish(t, from, "a", "1", "2")
			a := hold(t, path, 0, "1")
			b := hold(t, path, 40*time.Second, "1")
			a.stop(outcome)
			depth(t, from, 1, 1)
			b.end <- nil
			if got := b.next(); got != "2" {
				t.Errorf("%s came next", got)
			}
			b.stop(nil)
			depth(t, from, 0, 0)
		})
	}
}

// The number of a wakeup that is gone is given to another. A process that had the first one, and does not know that it
// is gone, changes nothing of the second.
func TestTake_OfANumberThatWasUsedAgain_ChangesNothing(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]error{"acknowledges": nil, "hands back": errors.New("not now")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := newPath(t)
			from := ordered(t, started(t, path, 0))
			publish(t, from, "a", "1")
			a := hold(t, path, 0, "1")
			hold(t, path, 40*time.Second, "1").stop(nil)
			depth(t, from, 0, 0)
			publish(t, from, "b", "2")
			a.wakeups.Keep()
			depth(t, from, 1, 0)
			a.stop(outcome)
			depth(t, from, 1, 0)
			if got := receiveAll(t, from, 1); got[0] != "2" {
				t.Error(got)
			}
		})
	}
}

// Environments of one file have the same queue, with the same key. Neither takes the other's wakeups, counts them or
// waits for them, also where its worker is idle in the process that publishes.
func TestScope_EnvironmentsOfAFileDoNotMeet(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	open := func(environment runlane.Environment) *sqlitelane.Transport {
		w := ordered(t, started(t, path, 0))
		if err := w.Start(t.Context(), lane.StartOptions{Environment: environment}); err != nil {
			t.Fatal(err)
		}
		return w
	}
	staging, prod := open("staging"), open("default")
	publish(t, prod, "a", "1")
	depth(t, staging, 0, 0)
	depth(t, prod, 1, 0)
	ctx, cancel := context.WithCancel(t.Context())
	taken, done := make(chan runlane.RunID, 10), make(chan error, 1)
	go func() {
		done <- staging.Receive(ctx, []runlane.QueueName{"mail"}, 4, func(_ context.Context, w lane.Wakeup) error {
			taken <- w.RunID
			return nil
		})
	}()
	if _, err := staging.PublishWakeups(t.Context(), &lane.PublishCommand{Attempts: []lane.PublishAttempt{{
		Wakeup: lane.Wakeup{
			RunKey: lane.RunKey{Environment: "staging", RunID: "theirs"}, Queue: "mail", RequestedAt: noon,
		},
		GroupKey: "a",
	}}}); err != nil {
		t.Fatal(err)
	}
	if id := <-taken; id != "theirs" {
		t.Errorf("staging took %s", id)
	}
	publish(t, staging, "a", "2") // of the default environment
	cancel()
	if err := <-done; err != nil || len(taken) > 0 {
		t.Error(err, "staging took another")
	}
	if got := receiveAll(t, prod, 2); got[0] != "1" || got[1] != "2" {
		t.Error(got)
	}
}
