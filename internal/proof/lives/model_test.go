package lives

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
)

type modelRepeatCall = func(context.Context, runlane.RunID, *core.ChangeOptions) (*runlane.Run, error)

// TestModel_RandomLivesFollowTheRules drives the runtime on memory storage through random steps in virtual time and holds everything
// that can be observed against an oracle: a model that states the rules a second time. rapid shrinks what fails.
//
// It is 20,000 lives, with the race detector or -short 2,000; CI runs both. What is rare may be missing among so few: then more are
// drawn, up to the number of the whole run, until everything was reached. It is not beside the other lives, which have a time and
// would be fewer.
func TestModel_RandomLivesFollowTheRules(t *testing.T) {
	const all = 50 // checks of each part, of a hundred lives each unless the test is short
	whole := !patience.Race && !testing.Short()
	d := newDrive("model")
	d.checks = 5
	switch {
	case whole:
		d.checks = all
	case testing.Short():
		d.checks *= 5 // rapid draws a fifth
	}
	d.run = func(r *rapid.T, _ int, total *tally) {
		lived := newTally()
		rapid.SyncTest(r, func(r *rapid.T) { newModelSequence(r, lived).live() })
		total.merge(lived)
	}
	t.Cleanup(func() {
		if one != 0 || t.Failed() {
			return
		}
		for _, what := range missing(d.tally, whole) {
			t.Errorf("no life reached %s", what)
		}
	})
	d.lives(t)
	for n := d.checks; one == 0 && n < all && len(missing(d.tally, whole)) > 0 && !t.Failed(); n++ {
		for part := range parts {
			d.check(t, part, d.seedOf(part, n))
		}
	}
}

// conclude mends everything and lets time pass: each run ends, however badly it was treated.
func (s *modelSequence) conclude() {
	s.note("conclude")
	if s.m.fault != modeSound {
		s.breakTransport(modeSound)
	}
	if s.m.schedule != nil {
		s.stepPause()
	}
	for _, x := range slices.Clone(s.inFlight) { // one after another: those of other deployments hand their slots over or not
		if !x.finished {
			x.decision <- outcome{kind: succeeds}
			synctest.Wait()
			s.settle()
		}
	}
	s.advance(time.Second)
	for range 80 {
		until := s.nextChange()
		if until.IsZero() {
			break
		}
		if d := max(until.Sub(s.m.now), time.Minute); len(s.inFlight) == 0 {
			s.jump(d)
		}
		if s.m.contended(s.d) {
			s.tick(1)
		} else {
			s.tick(100)
		}
		s.requeueAll()
		s.compareSchedule()
		s.compareSent()
		s.deliverAll()
	}
	s.compare()
	for _, run := range s.m.all() {
		if run.Status.Active() && !run.task.strange {
			s.fail("run %s is still %s and waits for %+v", run.ID, run.Status, s.m.explain(run, s.d))
		}
		s.compareAttempts(run)
	}
}

// compareAttempts holds the list of attempts against the counters.
func (s *modelSequence) compareAttempts(run *modelRun) {
	attempts, err := s.d.rt.Runs().Attempts(s.ctx, run.ID)
	if err != nil || len(attempts) != run.Counters.Attempts {
		s.fail("run %s has the attempts %+v, %v, not %d", run.ID, attempts, err, run.Counters.Attempts)
	}
	counts := map[runlane.AttemptStatus]int{}
	for _, attempt := range attempts {
		counts[attempt.Status]++
	}
	failed := counts[runlane.AttemptFailed] + counts[runlane.AttemptRetrying]
	if run.Failure.Code == runlane.ErrLeaseExpired {
		failed++ // the last of those that were abandoned
	}
	if failed != run.Counters.Failures || counts[runlane.AttemptReleased] != run.Counters.Releases ||
		counts[runlane.AttemptSucceeded] > 0 != (run.Status == runlane.StatusSucceeded) || counts[runlane.AttemptRunning] > 0 {
		s.fail("run %s, which is %s after %+v, has the attempts %+v", run.ID, run.Status, run.Counters, attempts)
	}
}

// nextChange is when the first of the runs that a worker can execute moves on, as the model explains it; zero when all have ended.
func (s *modelSequence) nextChange() (first time.Time) {
	for _, run := range s.m.all() {
		if run.Status.Terminal() || run.task.strange {
			continue
		}
		until := s.m.explain(run, s.d).until
		if until.IsZero() { // it waits for an operator
			until = s.m.now
		}
		if first.IsZero() || until.Before(first) {
			first = until
		}
	}
	return first
}

func (s *modelSequence) requeueAll() {
	for _, run := range s.m.all() {
		if run.dead() {
			s.refused("requeue", s.d.rt.DeadLetters().Requeue(s.ctx, run.ID, nil), "")
			s.m.request(run, 0, s.d.bound(run.Queue) == 0)
			s.m.handOver(s.d, run)
		}
	}
}

// deliverAll delivers every message that has arrived.
func (s *modelSequence) deliverAll() {
	later := s.mail[:0:0]
	mail := s.mail
	s.mail = nil
	for _, message := range mail {
		if message.arrives.After(s.m.now) {
			later = append(later, message)
			continue
		}
		s.deliver(message.run, "", &modelAttempt{outcome: outcome{kind: succeeds}}, 0)
	}
	s.mail = append(s.mail, later...)
}

// missing is what no life with an oracle reached. Some are so rare that only
// the whole run has them for sure.
func missing(t *tally, whole bool) []string {
	want := map[string][]string{
		"wait": {
			"time", "slot", "publish", "wakeup", "reservation", "lease", "cancellation", "tick", "queue", "operator", "none",
		},
		"outcome":   modelOutcomes,
		"transport": modelFaults,
		"step":      namesOf(modelSteps),
	}
	for _, status := range runlane.Statuses() {
		want["status"] = append(want["status"], string(status))
	}
	if whole {
		want["ignored"] = []string{
			"not_found", "terminal", "not_due", "wrong_queue", "already_leased", "no_capacity", "cancellation_requested", "abandoned",
		}
		want["refusal"] = []string{"singleton_key", "queue_capacity", "idempotency_key", "validation_failed", "task_not_found"}
		want["skipped"] = []string{"misfire", "overlap", "singleton", "paused"}
		want["seen"] = []string{
			"heartbeat", "timeout", "cancelled while running", "interrupted", "lost lease", "existing run", "repeated before", "pruned run",
			"key reset", "requeued dead letter", "failed by the bound", "key of a retry taken", "key of a retry taken over",
		}
	}
	return t.absent(want)
}
