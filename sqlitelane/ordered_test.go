package sqlitelane_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane"
)

// ordered is a transport that orders the wakeups of a queue.
func ordered(t *testing.T, s *sqlitelane.Storage) *sqlitelane.Transport {
	t.Helper()
	w := sqlitelane.NewTransport(s, "mail")
	t.Cleanup(func() {
		if err := w.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// publish sends wakeups of a group, one after the other.
func publish(t *testing.T, w *sqlitelane.Transport, group string, ids ...runlane.RunID) {
	t.Helper()
	for _, id := range ids {
		if _, err := w.PublishWakeups(t.Context(), &lane.PublishCommand{Attempts: []lane.PublishAttempt{{
			Wakeup: lane.Wakeup{RunKey: lane.RunKey{Environment: "default", RunID: id}, Queue: "mail", RequestedAt: noon}, GroupKey: group,
		}}}); err != nil {
			t.Fatal(err)
		}
	}
}

// receiveAll takes so many wakeups, one at a time, and says in which order they came.
func receiveAll(t *testing.T, w *sqlitelane.Transport, want int) (got []runlane.RunID) {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	err := w.Receive(ctx, []runlane.QueueName{"mail"}, 1, func(_ context.Context, w lane.Wakeup) error {
		if got = append(got, w.RunID); len(got) == want {
			cancel()
		}
		return nil
	})
	if err != nil || len(got) < want {
		t.Fatalf("%v arrived, not %d: %v", got, want, err)
	}
	return got
}

// Two processes receive what a third publishes. In each group one wakeup is handled at a time, in the order in which they were published.
func TestOrdered_ProcessesKeepTheOrderOfAGroupTogether(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	const groups, each = 3, 15
	from := ordered(t, started(t, path, 0))
	want, of := map[string][]runlane.RunID{}, map[runlane.RunID]string{}
	for n := range groups * each {
		id, group := runlane.RunID(fmt.Sprintf("run_%03d", n)), fmt.Sprint("customer ", n%groups)
		want[group], of[id] = append(want[group], id), group
		publish(t, from, group, id)
	}
	if visible, flying, err := from.Depth(t.Context(), "mail"); err != nil || visible != groups*each || flying != 0 {
		t.Errorf("depth is %d and %d, %v: those that wait for others of their group wait, too", visible, flying, err)
	}
	ctx, cancel := patience.Context(t)
	defer cancel()
	var mu sync.Mutex
	handled, by, busy, got := 0, [2]int{}, map[string]bool{}, map[string][]runlane.RunID{}
	var receivers sync.WaitGroup
	for p := range by {
		w := ordered(t, started(t, path, 0))
		receivers.Go(func() {
			err := w.Receive(ctx, []runlane.QueueName{"mail"}, 2, func(_ context.Context, w lane.Wakeup) error {
				mu.Lock()
				defer mu.Unlock()
				group := of[w.RunID]
				if busy[group] {
					t.Errorf("%s came while another of its group was handled", w.RunID)
				}
				busy[group] = true
				mu.Unlock()
				_, _, err := from.Depth(t.Context(), "mail") // another of the group would come meanwhile
				mu.Lock()
				busy[group] = false
				got[group] = append(got[group], w.RunID)
				by[p]++
				if handled++; handled == groups*each {
					cancel()
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	receivers.Wait()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-published +handled)\n%s", d)
	}
	t.Log("handled by each process:", by)
}

// A wakeup that comes again, because its handler refused it or its process died, still comes before those behind it.
func TestOrdered_TheFirstComesAgainBeforeTheSecond(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	first := started(t, path, 0)
	w := ordered(t, first)
	publish(t, w, "a", "1", "2", "3")
	ctx, cancel := patience.Context(t)
	defer cancel()
	err := w.Receive(ctx, []runlane.QueueName{"mail"}, 3, func(_ context.Context, w lane.Wakeup) error {
		cancel()
		if w.RunID != "1" {
			t.Errorf("%s came first", w.RunID)
		}
		return errors.New("not now")
	})
	if err != nil {
		t.Fatal(err)
	}
	later := ordered(t, started(t, path, time.Hour))
	publish(t, later, "a", "4")
	if got := receiveAll(t, later, 4); !slices.Equal(got, []runlane.RunID{"1", "2", "3", "4"}) {
		t.Error(got)
	}
	// Nothing is left of the group, and its next wakeup waits for none.
	publish(t, later, "a", "5")
	if got := receiveAll(t, later, 1); got[0] != "5" {
		t.Error(got)
	}
}

// A clock that is set back changes nothing of what waits in a group.
func TestOrdered_AfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	publish(t, ordered(t, started(t, path, time.Hour)), "a", "1", "2", "3")
	if got := receiveAll(t, ordered(t, started(t, path, 0)), 3); !slices.Equal(got, []runlane.RunID{"1", "2", "3"}) {
		t.Error(got)
	}
}

// A program that knows of no groups removes the first of one and wakes none: the next receiver that does finds the second.
func TestOrdered_WhatAnOlderProgramRemovedHoldsNoneBack(t *testing.T) {
	t.Parallel()
	s := started(t, newPath(t), 0)
	w := ordered(t, s)
	publish(t, w, "a", "1", "2", "3")
	if err := s.LoseFirst(); err != nil {
		t.Fatal(err)
	}
	if got := receiveAll(t, w, 2); !slices.Equal(got, []runlane.RunID{"2", "3"}) {
		t.Error(got)
	}
}

// Wakeups of other queues are in no group. What would be in none of an ordered queue is refused.
func TestOrdered_OtherWakeupsWaitForNone(t *testing.T) {
	t.Parallel()
	s := started(t, newPath(t), 0)
	w := sqlitelane.NewTransport(s, "other")
	publish(t, w, "a", "1", "2", "3")
	mail := ordered(t, s)
	if got, err := mail.SendWakeups(t.Context(), []lane.DelayedWakeup{{Wakeup: lane.Wakeup{
		RunKey: lane.RunKey{Environment: "default", RunID: "4"}, Queue: "mail", RequestedAt: noon,
	}}}); err != nil || got[0].Type != lane.PublishFailed || !got[0].Permanent || mail.MaxDelay("mail") != 0 || mail.MaxDelay("other") == 0 {
		t.Errorf("%+v, %v", got, err)
	}
	ctx, cancel := patience.Context(t)
	defer cancel()
	var together sync.WaitGroup
	together.Add(3)
	err := w.Receive(ctx, []runlane.QueueName{"mail"}, 3, func(context.Context, lane.Wakeup) error {
		together.Done()
		together.Wait() // all three are here, or the test ends by its time
		cancel()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A wakeup that is handed back again and again holds its group back, so its pauses end at five seconds.
func TestOrdered_PausesForFiveSecondsAtMost(t *testing.T) {
	t.Parallel()
	for group, longest := range map[string]time.Duration{"ada": 5 * time.Second, "": 5 * time.Minute} {
		var ahead atomic.Int64
		s := sqlitelane.NewRelaxedStorage(newPath(t), func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close(context.Background()) })
		w := ordered(t, s)
		publish(t, w, group, "1")
		for range 12 {
			ctx, cancel := patience.Context(t)
			if err := w.Receive(ctx, []runlane.QueueName{"mail"}, 1, func(context.Context, lane.Wakeup) error {
				cancel()
				return errors.New("not now")
			}); err != nil {
				t.Fatal(err)
			}
			cancel()
			ahead.Add(int64(10 * time.Minute))
		}
		publish(t, w, group, "2") // behind what was handed back, in the file too
		if got, stuck, err := s.Pauses(); err != nil || stuck || len(got) != 1 || got[0] != longest {
			t.Errorf("%q: %s, stuck %v, %v", group, got, stuck, err)
		}
	}
}

// docs/compatibility.md: a file of the same format from before a column, an index or a table was added gets what it lacks, with
// everything that it has.
func TestFormat_AnOlderFileOfTheFormat_GetsWhatWasAdded(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	older := started(t, path, 0)
	want, err := older.Schema()
	if err != nil {
		t.Fatal(err)
	}
	publish(t, ordered(t, older), "a", "1", "2")
	if err := errors.Join(older.ForgetGroups(), older.Drop("records")); err != nil {
		t.Fatal(err)
	}
	if lacking, err := older.Schema(); err != nil || len(lacking) != len(want)-2 {
		t.Fatal(lacking, err)
	}
	newer := started(t, path, 0)
	if got, err := newer.Schema(); err != nil || !cmp.Equal(want, got) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, got))
	}
	publish(t, ordered(t, newer), "b", "3", "4")
	if visible, _, err := sqlitelane.NewTransport(newer).Depth(t.Context(), "mail"); err != nil || visible != 4 {
		t.Error(visible, err)
	}
}

// The file keeps which queues are ordered: a program that names none publishes in order, also one that was open before.
func TestOrdered_FileKeepsTheNames(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	open := func(names ...runlane.QueueName) (*lane.Lane, error) {
		return sqlitelane.Open(t.Context(), path, &sqlitelane.Options{Ordered: names})
	}
	before := sqlitelane.NewTransport(started(t, path, 0))
	if l, err := open(); err != nil || l.Transport.Capabilities().OrderedDelivery {
		t.Fatal(err)
	}
	for _, c := range []struct {
		names   []runlane.QueueName
		refused bool
	}{
		{[]runlane.QueueName{"mail"}, false}, {nil, false}, {[]runlane.QueueName{"other"}, true}, {[]runlane.QueueName{"other", "mail"}, false},
		{[]runlane.QueueName{"mail"}, true}, {nil, false},
	} {
		l, err := open(c.names...)
		if c.refused != (runlane.CodeOf(err) == runlane.ErrConfigurationInvalid) || !c.refused && err != nil {
			t.Fatalf("%q: %v", c.names, err)
		}
		if err == nil && !l.Transport.Capabilities().OrderedDelivery {
			t.Errorf("%q: no order", c.names)
		}
	}
	if !before.Ordered("mail") || before.Ordered("default") || before.MaxDelay("mail") != 0 {
		t.Error("a program that was open before delays what is ordered")
	}
	publish(t, before, "ada", "1", "2", "3")
	ctx, cancel := context.WithCancel(t.Context())
	var handled int
	if err := before.Receive(ctx, []runlane.QueueName{"mail"}, 3, func(context.Context, lane.Wakeup) error {
		handled++ // without a lock: one at a time
		if visible, inFlight, err := before.Depth(t.Context(), "mail"); err != nil || inFlight != 1 || visible != 3-handled {
			t.Errorf("%d wait, %d are handled, %v", visible, inFlight, err)
		}
		if handled == 3 {
			cancel()
		}
		return nil
	}); err != nil || handled != 3 {
		t.Errorf("%d, %v", handled, err)
	}
	cancel()
}

// The wakeups of runs that are under way are in no group: a queue that has some is refused, until they have ended.
func TestOrdered_QueueWithActiveRuns_IsRefused(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	open := func(names ...runlane.QueueName) (*core.Runtime, bool, error) {
		l, err := sqlitelane.Open(t.Context(), path, &sqlitelane.Options{Ordered: names, Sync: sqlitelane.SyncNormal})
		if err != nil {
			return nil, false, err
		}
		rt, err := core.Open(t.Context(), l, &core.Options{Environment: "shop", Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = rt.Close(context.Background()) })
		return rt, l.Transport.Capabilities().OrderedDelivery, nil
	}
	plain, _, err := open()
	if err != nil {
		t.Fatal(err)
	}
	for _, delay := range []time.Duration{0, time.Hour} { // queued, and waiting
		made, err := plain.Trigger(t.Context(), turnTask.With(turn{"1"}), &runlane.TriggerOptions{Delay: delay})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := open("mail"); runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
			t.Errorf("delay %s: %v", delay, err)
		}
		if _, _, err := open("other"); err != nil { // whatever other queues have
			t.Errorf("delay %s: %v", delay, err)
		}
		if _, err := plain.Runs().Cancel(t.Context(), made.Run.ID, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, ordered, err := open("mail", "other"); err != nil || !ordered {
		t.Errorf("ordered %v, %v", ordered, err)
	}
}
