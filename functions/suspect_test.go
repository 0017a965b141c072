package functions_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/lane"
)

// abandoned are runs whose first worker died ten minutes ago, in the hands of a program of today.
func abandoned(t *testing.T, handle func(ctx context.Context, name string) error, names ...string) (*program, []runlane.RunID) {
	t.Helper()
	var past atomic.Int64
	past.Store(int64(10 * time.Minute))
	now := func() time.Time { return time.Now().Add(-time.Duration(past.Load())) }
	p := openWith(t, handle, &core.Options{World: &core.World{Now: now}})
	var ids []runlane.RunID
	for _, name := range names {
		id := p.trigger(t, greet.With(name))
		ids = append(ids, id)
		if name[0] != 's' {
			continue
		}
		run, err := p.Runs().Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		at := runlane.UTCMillis(now())
		header := runlane.Event{RunID: id, Environment: run.Environment, OccurredAt: at, Actor: runlane.SystemActor}
		claimed, started := header, header
		claimed.Body = &runlane.RunLeaseClaimed{Lease: runlane.Lease{Token: "lease_dead", WorkerID: "dead", ExpiresAt: at.Add(time.Minute)}}
		started.Body = &runlane.RunStarted{Attempt: 1}
		c := &lane.ClaimCommand{At: at, ByWakeup: true, Transition: lane.Transition{
			ExpectedSequence: run.EventSequence, Events: []runlane.Event{claimed, started}, Queue: runlane.DefaultQueue,
		}}
		if c.Projected, err = core.ProjectRunEvents(run, run.EventSequence, c.Events...); err != nil {
			t.Fatal(err)
		}
		if got, err := p.Lane().Storage.ClaimRunLease(t.Context(), c); err != nil || got.Outcome != lane.Acquired {
			t.Fatal(got, err)
		}
	}
	past.Store(0)
	return p, ids
}

// A run that may have killed its process is executed when nothing is left that it could take along.
func TestHazard51_SuspectsOfABatch_AreExecutedWhenTheOthersHaveEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var executing, most atomic.Int64
		p, ids := abandoned(t, func(_ context.Context, name string) error {
			if n := executing.Add(1); name[0] == 's' {
				most.Store(max(most.Load(), n))
			}
			defer executing.Add(-1)
			if name[0] != 's' {
				time.Sleep(50 * time.Millisecond) // a suspect that does not wait would be beside it
			}
			return nil
		}, "suspect 1", "a", "suspect 2", "b", "c")
		var records []events.SQSMessage
		for i, id := range ids {
			records = append(records, message(string(rune('0'+i)), wakeup(id), standardARN, 1))
		}
		equal(t, "failures", invoke(t, p, records...), []string{})
		for _, id := range ids {
			equal(t, "status", p.status(t, id), runlane.StatusSucceeded)
		}
		equal(t, "executed beside a suspect, and itself", most.Load(), int64(1))
		if last := p.greeted[3:]; !slices.Contains(last, "suspect 1") || !slices.Contains(last, "suspect 2") {
			t.Errorf("executed in the order %v", p.greeted)
		}
	})
}

func TestHazard51_SuspectOfAFIFOBatch_HoldsItsGroupBackAndWaitsForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, ids := abandoned(t, nil, "suspect", "behind", "other")
		first, behind := message("suspect", wakeup(ids[0]), fifoARN, 1, "a"), message("behind", wakeup(ids[1]), fifoARN, 1, "a")
		equal(t, "failures", invoke(t, p, first, behind, message("other", wakeup(ids[2]), fifoARN, 1, "b")), []string{"behind"})
		equal(t, "executed", p.greeted, []string{"other", "suspect"})
		equal(t, "hand backs", p.transport.calls, []handBack{{fifoARN, map[string]time.Duration{"behind": 10 * time.Second}}})

		// A batch of one group is executed in order: a suspect has nothing beside it.
		p, ids = abandoned(t, nil, "suspect", "behind")
		equal(t, "failures", invoke(t, p, message("suspect", wakeup(ids[0]), fifoARN, 1, "a"), message("behind", wakeup(ids[1]), fifoARN, 1, "a")), []string{})
		equal(t, "executed", p.greeted, []string{"suspect", "behind"})
	})
}

// No attempt is begun, or counted, for which the others have left too little time: the suspect comes again in a while, and is executed
// first then. Behind others it would come to nothing as long as its queue is busy.
func TestHazard51_SuspectWithoutTimeLeft_IsHandedBackWithADelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, ids := abandoned(t, func(_ context.Context, name string) error {
			if name == "late" {
				time.Sleep(2 * time.Second)
			}
			return nil
		}, "suspect", "late", "late")
		ctx, cancel := context.WithTimeout(t.Context(), 8500*time.Millisecond) // a task without a timeout needs 5 s, and 2 s are kept free
		defer cancel()
		response, err := functions.Bridge(p.Runtime)(ctx, events.SQSEvent{Records: []events.SQSMessage{
			message("suspect", wakeup(ids[0]), standardARN, 1), message("late", wakeup(ids[1]), standardARN, 1),
		}})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "failures", failures(response), []string{"suspect"})
		equal(t, "hand backs", p.transport.calls, []handBack{{standardARN, map[string]time.Duration{"suspect": 10 * time.Second}}})
		run, err := p.Runs().Get(t.Context(), ids[0])
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "attempts", run.Counters.Attempts, 1)

		again, cancel := context.WithTimeout(t.Context(), 8500*time.Millisecond)
		defer cancel()
		response, err = functions.Bridge(p.Runtime)(again, events.SQSEvent{Records: []events.SQSMessage{
			message("late", wakeup(ids[2]), standardARN, 1), message("suspect", wakeup(ids[0]), standardARN, 2),
		}})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "failures", failures(response), []string{})
		equal(t, "executed", p.greeted, []string{"late", "suspect", "late"})
	})
}

// A suspect may end the process: what was handed back before has to be on its way already.
func TestHazard51_NeighboursAreHandedBackBeforeASuspectBegins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		before := -1
		var p *program
		p, ids := abandoned(t, func(_ context.Context, name string) error {
			p.transport.mu.Lock()
			defer p.transport.mu.Unlock()
			before = len(p.transport.calls)
			return nil
		}, "suspect")
		alien := p.trigger(t, unknown.With("x"))
		equal(t, "failures", invoke(t, p, message("suspect", wakeup(ids[0]), standardARN, 1), message("alien", wakeup(alien), standardARN, 1)),
			[]string{"alien"})
		equal(t, "hand backs when the suspect began", before, 1)
	})
}
