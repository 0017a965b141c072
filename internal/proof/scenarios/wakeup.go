package scenarios

import (
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// wantSent compares the wakeups sent since the last call. Under faults a wakeup may be held up, but then the outbox has
// it; and it may come twice.
func (s *scene) wantSent(what string, runs ...*runlane.Run) {
	s.Helper()
	var got, want []runlane.RunID
	for _, sent := range s.transport.TakePublished() {
		got = append(got, sent.RunID)
	}
	for _, run := range runs {
		want = append(want, run.ID)
	}
	slices.Sort(got)
	slices.Sort(want)
	if s.faults.happened() {
		got = s.madeUp(got, want)
	}
	for _, id := range want {
		s.known[id] = true
	}
	if !slices.Equal(got, want) {
		s.Fatalf("%s: wakeups of %v, want %v", what, got, want)
	}
}

// wantPublished compares the wakeups sent since the last call.
func (s *scene) wantPublished(runs ...*runlane.Run) {
	s.Helper()
	s.wantSent("published", runs...)
}

// madeUp leaves out wakeups that came once more, and adds those that are held up in the outbox. A slot that was not
// handed over is the next tick's to reserve.
func (s *scene) madeUp(got, want []runlane.RunID) []runlane.RunID {
	s.Helper()
	got = slices.Compact(got)
	got = slices.DeleteFunc(got, func(id runlane.RunID) bool { return s.known[id] && !slices.Contains(want, id) })
	for _, id := range want {
		if slices.Contains(got, id) {
			continue
		}
		if !s.heldUp(id) {
			s.tick()
		}
		if s.heldUp(id) {
			got = append(got, id)
		}
	}
	slices.Sort(got)
	return got
}

// heldUp reports a run whose latest wakeup is in the outbox: to be sent, or counted as sent and asked for again. One
// that a worker has taken needs none any more.
func (s *scene) heldUp(id runlane.RunID) bool {
	s.Helper()
	seen, err := s.storage.InspectRun(s.Context(), &lane.InspectQuery{RunKey: s.key(id)})
	s.must(err)
	if s := seen.Run.Status; s.Terminal() || s == runlane.StatusRunning || s == runlane.StatusCancellationRequested {
		return true
	}
	return seen.Delivery != nil && seen.Delivery.Status != lane.OutboxDeadLettered
}

// now is the runtime's time.
func (s *scene) now() time.Time {
	if s.options.World.Now == nil {
		return time.Now()
	}
	return s.options.World.Now()
}

// deliverAgain hands over the run's wakeup once more, where wakeups come twice. It leads to nothing, unless the run is
// due again by now: then it counts like any wakeup.
func (s *scene) deliverAgain(run *runlane.Run) {
	s.Helper()
	if s.faults == nil || !s.faults.twice {
		return
	}
	before, err := s.storage.Storage.GetRun(s.Context(), s.key(run.ID))
	if runlane.CodeOf(err) == runlane.ErrRunNotFound {
		return
	}
	s.must(err)
	if due, ok := lane.RunnableAt(before); ok && due.Sub(s.now()) <= 5*time.Second {
		return
	}
	delayed := s.transport.TakeDelayed()
	result, err := s.rt.ExecuteDelivery(s.Context(), s.wakeup(run), nil)
	s.must(err)
	s.transport.TakeDelayed() // one that is early is sent again, each time
	s.transport.putDelayed(delayed)
	s.faults.sentTwice()
	if result.Ignored == "" || s.get(run.ID).EventSequence != before.EventSequence {
		s.Fatalf("a wakeup that came twice executed a run that was %s: %+v", before.Status, result)
	}
}
