package sqlitelane_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane"
)

// A clock that was an hour ahead, when wakeups were written, taken and handed back, was set back. They wait no longer
// than they had to by that clock, from when it is noticed.
func TestWakeups_OfAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	path, now := newPath(t), time.Now()
	wakeup := func(id runlane.RunID) lane.Wakeup {
		return lane.Wakeup{RunKey: lane.RunKey{Environment: "default", RunID: id}, Queue: "mail", RequestedAt: now}
	}
	// each is a process whose clock stands
	process := func(at time.Time, act func(w *sqlitelane.Transport)) {
		s := sqlitelane.NewStorage(path, 0)
		s.SetClock(at)
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		w := sqlitelane.NewTransport(s)
		act(w)
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	// receive takes so many wakeups, and acknowledges all but those that it is to refuse.
	receive := func(w *sqlitelane.Transport, want int, refuse runlane.RunID) (got []runlane.RunID) {
		t.Helper()
		ctx, cancel := patience.Context(t)
		defer cancel()
		err := w.Receive(ctx, []runlane.QueueName{"mail"}, 1, func(_ context.Context, w lane.Wakeup) error {
			if got = append(got, w.RunID); len(got) == want {
				cancel()
			}
			if w.RunID == refuse {
				return context.Canceled
			}
			return nil
		})
		if err != nil || len(got) < want {
			t.Fatalf("%v arrived, not %d: %v", got, want, err)
		}
		slices.Sort(got)
		return got
	}
	process(now.Add(time.Hour), func(w *sqlitelane.Transport) {
		_, err := w.SendWakeups(t.Context(), []lane.DelayedWakeup{{Wakeup: wakeup("refused")}})
		if err != nil {
			t.Fatal(err)
		}
		receive(w, 1, "refused")
		_, err = w.SendWakeups(t.Context(), []lane.DelayedWakeup{
			{Wakeup: wakeup("at once")}, {Wakeup: wakeup("later"), Delay: time.Minute},
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	process(now, func(w *sqlitelane.Transport) {
		if got := receive(w, 1, ""); got[0] != "at once" {
			t.Fatal(got)
		}
	})
	process(now.Add(2*time.Minute), func(w *sqlitelane.Transport) {
		if got := receive(w, 2, ""); !slices.Equal(got, []runlane.RunID{"later", "refused"}) {
			t.Fatal(got)
		}
	})
}
