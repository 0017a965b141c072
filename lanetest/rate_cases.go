package lanetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Bounded queues.
func rateCases() []storageCase {
	return []storageCase{
		{"ARateAllowsItsBurstAndThenOneStartAnInterval", needsRates, rateStarts},
		{"RacingClaimersNeverStartMoreThanTheRateAllows", needsRates, rateRace},
		{"EachConcurrencyKeyHasItsOwnRate", needsRates, rateKeys},
		{"ARefusedStartCostsTheRunAndItsSlotNothing", needsRates, rateRefused},
		{"ACreationThatRunsAtOnceIsAStart", needsRates, rateRunNow},
		{"TicketsAreOneIntervalApartAndReachOnlyAhead", needsRates, rateTickets},
		{"ScansShowNoMoreRunsThanMayStartOrGetATicket", needsRates, rateScans},
		{"AnotherRateOrBurstHoldsFromTheNextStartOn", needsRates, rateChanged},
	}
}

func needsRates(c lane.StorageCapabilities) bool { return needsQueues(c) && c.EnforcesQueueRate }

// rated is the bundle's queue with a rate.
type rated struct {
	*bundle
	queue runlane.Queue
}

func (b *bundle) rated(rate runlane.Rate, burst int) *rated {
	return &rated{b, runlane.Queue{Name: Queue, Rate: rate, Burst: burst}}
}

// runs wait for a ticket.
func (r *rated) runs(n int, at time.Time, key string) []*runlane.Run {
	r.t.Helper()
	runs := make([]*runlane.Run, n)
	for i := range runs {
		c := r.Creation(r.t, at, RunOptions{NoDelivery: true, ConcurrencyKey: key})
		c.Queue = r.queue
		runs[i] = r.append(c).Run
	}
	return runs
}

func (r *rated) claim(run *runlane.Run, at time.Time) *lane.ClaimCommand {
	r.t.Helper()
	c := r.Claim(r.t, run, at, at.Add(time.Minute), r.NewToken())
	c.Queue, c.Slot = r.queue, true
	return c
}

// start demands that the run starts at the instant, or may do so at again.
func (r *rated) start(what string, run *runlane.Run, at, again time.Time) *lane.Acquisition {
	r.t.Helper()
	got := must(r.storage.ClaimRunLease(r.ctx(), r.claim(run, at)))(r.t)
	next, _ := new(got.Pace).Start(r.queue, at)
	switch {
	case at.Equal(again) && got.Outcome != lane.Acquired:
		r.t.Fatalf("%s: %q, want a start", what, got.Outcome)
	case at.Before(again) && (got.Outcome != lane.LostRate || got.Commit != nil || !next.Equal(again)):
		r.t.Fatalf("%s: %q, again at %s; want %q and %s", what, got.Outcome, next, lane.LostRate, again)
	}
	return got
}

func (r *rated) ticket(key string, at, until time.Time) (time.Time, bool) {
	r.t.Helper()
	start, ok, err := r.storage.TakeTicket(r.ctx(), &lane.TicketCommand{
		Environment: r.env, Queue: r.queue, ConcurrencyKey: key, At: at, Until: until,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return start, ok
}

func rateStarts(t *testing.T, b *bundle) {
	r := b.rated(runlane.PerMinute(6), 2)
	runs := r.runs(4, noon, "")
	ten := noon.Add(10 * time.Second)
	r.start("the first", runs[0], noon, noon)
	r.start("the burst", runs[1], noon, noon)
	r.start("beyond it", runs[2], noon, ten)
	r.start("a millisecond early", runs[2], ten.Add(-time.Millisecond), ten)
	r.start("an interval later", runs[2], ten, ten)
	r.start("and the next", runs[3], ten, noon.Add(20*time.Second))
}

func rateRace(t *testing.T, b *bundle) {
	r := b.rated(runlane.PerSecond(10), 3)
	runs := r.runs(12, noon, "customer:7")
	for second := range 2 {
		at := noon.Add(time.Duration(second) * 300 * time.Millisecond) // three intervals
		commands := make([]*lane.ClaimCommand, len(runs))
		for i, run := range runs {
			commands[i] = r.claim(run, at)
		}
		got, failed := race(len(runs), func(i int) (*lane.Acquisition, error) {
			return r.storage.ClaimRunLease(r.ctx(), commands[i])
		})
		if len(failed) > 0 {
			t.Fatal(failed[0])
		}
		started := map[runlane.RunID]bool{}
		for _, a := range got {
			if a.Outcome == lane.Acquired {
				started[a.Commit.Run.ID] = true
			}
		}
		if len(started) > 3 || len(started) == 0 {
			t.Fatalf("%d runs started at %s, want 1 to 3", len(started), at)
		}
		var rest []*runlane.Run
		for _, run := range runs {
			if !started[run.ID] {
				rest = append(rest, run)
			}
		}
		runs = rest
	}
}

func rateKeys(t *testing.T, b *bundle) {
	r := b.rated(runlane.PerHour(1), 0)
	for _, key := range []string{"", "a", "b"} {
		runs := r.runs(2, noon, key)
		r.start(fmt.Sprintf("the first of key %q", key), runs[0], noon, noon)
		r.start(fmt.Sprintf("the second of key %q", key), runs[1], noon, noon.Add(time.Hour))
	}
}

func rateRefused(t *testing.T, b *bundle) {
	r := b.rated(runlane.PerMinute(1), 0)
	r.queue.Concurrency = 2
	runs := r.runs(2, noon, "")
	r.start("the first", runs[0], noon, noon)
	r.start("the second", runs[1], noon, noon.Add(time.Minute))
	equal(t, "the refused run", runs[1], b.get(runs[1].ID))
	holders := must(b.storage.InspectRun(b.ctx(), &lane.InspectQuery{RunKey: b.key(runs[1].ID), Queue: r.queue}))(t)
	equal(t, "holders", runIDs(runs[0]), sorted(holders.Holders))
	if next, _ := new(holders.Pace).Start(r.queue, noon); !next.Equal(noon.Add(time.Minute)) {
		t.Errorf("the pace that is shown allows the next start at %s", next)
	}
}

func rateRunNow(t *testing.T, b *bundle) {
	r := b.rated(runlane.PerMinute(1), 0)
	runNow := func(at time.Time) *lane.AppendCommand {
		c := b.Creation(t, at, RunOptions{NoDelivery: true})
		c.Queue = r.queue
		rest := b.Transition(t, c.Projected, at, Claimed(b.NewToken(), at.Add(time.Minute)), &runlane.RunStarted{Attempt: 1})
		c.Events, c.Projected = append(c.Events, rest.Events...), rest.Projected
		return c
	}
	b.append(runNow(noon))
	_, err := b.storage.AppendRunEvents(b.ctx(), runNow(noon))
	wantConflict(t, err, runlane.ConflictQueueCapacity, "")
	b.append(runNow(noon.Add(time.Minute)))
}

func rateTickets(t *testing.T, b *bundle) {
	r := b.rated(runlane.PerMinute(6), 0)
	starts, failed := race(5, func(int) (time.Time, error) {
		start, ok, err := r.storage.TakeTicket(r.ctx(), &lane.TicketCommand{
			Environment: r.env, Queue: r.queue, At: noon, Until: noon.Add(time.Minute),
		})
		if err == nil && !ok {
			err = fmt.Errorf("no ticket within a minute")
		}
		return start, err
	})
	if len(failed) > 0 {
		t.Fatal(failed[0])
	}
	seen := map[time.Duration]bool{}
	for _, start := range starts {
		seen[start.Sub(noon)] = true
	}
	for n := range 5 {
		if at := time.Duration(n) * 10 * time.Second; !seen[at] {
			t.Errorf("no ticket after %s: %v", at, seen)
		}
	}
	if start, ok := r.ticket("", noon, noon.Add(49*time.Second)); ok {
		t.Errorf("a ticket for %s, which is too far ahead", start)
	}
	if start, ok := r.ticket("other", noon, noon); !ok || !start.Equal(noon) {
		t.Errorf("another key's first ticket: %s, %t", start, ok)
	}
	run := r.runs(1, noon, "late")[0]
	r.start("a start without a ticket", run, noon, noon)
	if start, ok := r.ticket("late", noon, noon.Add(time.Minute)); !ok || !start.Equal(noon.Add(10*time.Second)) {
		t.Errorf("the ticket after a start is for %s, %t", start, ok)
	}
}

func rateScans(t *testing.T, b *bundle) {
	r := b.rated(runlane.PerMinute(1), 2)
	r.runs(6, noon, "")
	count := func(what string, list scan, want int) {
		t.Helper()
		b.eventually(func() string {
			q := b.due(noon)
			q.Bounded = []runlane.Queue{r.queue}
			if got := len(b.scanAll(list, q)); got != want {
				return fmt.Sprintf("%s: %d runs, want %d", what, got, want)
			}
			return ""
		})
	}
	count("runs that may start", b.storage.ListRunnableRuns, 2)
	count("runs that may get a ticket within two minutes", b.storage.ListRunsNeedingDispatch, 4)
	for range 3 {
		r.ticket("", noon, noon.Add(lane.TicketsAhead))
	}
	count("after three tickets", b.storage.ListRunsNeedingDispatch, 1)
	count("tickets are no starts", b.storage.ListRunnableRuns, 2)
}

func rateChanged(t *testing.T, b *bundle) {
	r := b.rated(runlane.PerHour(1), 0)
	runs := r.runs(4, noon, "")
	r.start("the first", runs[0], noon, noon)
	r.queue.Rate = runlane.PerSecond(1)
	r.start("under the higher rate", runs[1], noon, noon.Add(time.Second))
	r.start("a second later", runs[1], noon.Add(time.Second), noon.Add(time.Second))
	r.queue.Rate = runlane.PerMinute(1)
	r.start("under the lower rate", runs[2], noon.Add(time.Second), noon.Add(61*time.Second))
	r.queue.Rate = runlane.Rate{}
	c := r.claim(runs[3], noon.Add(time.Second))
	c.Slot = false
	if got := must(b.storage.ClaimRunLease(b.ctx(), c))(t); got.Outcome != lane.Acquired {
		t.Errorf("without a rate: %s", got.Outcome)
	}

	r = b.rated(runlane.PerHour(1), 3)
	runs = r.runs(5, noon, "burst")
	for _, run := range runs[:3] {
		r.start("of the burst", run, noon, noon)
	}
	r.queue.Burst = 0
	r.start("with a lower burst", runs[3], noon, noon.Add(time.Hour))
	r.start("an hour later", runs[3], noon.Add(time.Hour), noon.Add(time.Hour))
	r.queue.Burst = 3
	r.start("with the burst again", runs[4], noon.Add(time.Hour), noon.Add(2*time.Hour))
}
