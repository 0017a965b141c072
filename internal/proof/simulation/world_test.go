package main

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
	"time"
)

func sameReport(t *testing.T, seed uint64, x extent) []byte {
	t.Helper()
	text, err := json.Marshal(investigate(seed, x))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestReport_IsTheSeeds(t *testing.T) {
	t.Parallel()
	small := extent{rates: []float64{2, 5}, backlog: 20_000, weight: 10}
	first := sameReport(t, 3, small)
	if again := sameReport(t, 3, small); !bytes.Equal(first, again) {
		t.Errorf("seed 3 gave two reports:\n%s\n%s", first, again)
	}
	if other := sameReport(t, 4, small); bytes.Equal(bytes.Replace(other, []byte(`"seed":4`), []byte(`"seed":3`), 1), first) {
		t.Error("seeds 3 and 4 gave one report")
	}
	var r report
	if err := json.Unmarshal(first, &r); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := r.write(&text); err != nil || !bytes.Contains(text.Bytes(), []byte("seed 3")) {
		t.Errorf("%v\n%s", err, &text)
	}
}

// Where arithmetic can tell what a limit allows, the simulation finds the same.
func TestLimits_AreWhereArithmeticSays(t *testing.T) {
	t.Parallel()
	unlimited := deployment{Shards: 64, Mappings: 1, Unlimited: true, TablePartitions: 200}
	for limit, c := range map[string]struct {
		change func(*deployment)
		kind   load
	}{
		limitTable:      {change: func(d *deployment) { d.TablePartitions = 2 }},
		limitTableQuota: {change: func(d *deployment) { d.Quota = 3000 }},
		limitDueShard:   {change: func(d *deployment) { d.Shards = 1 }},
		limitBridge:     {change: func(d *deployment) { d.Unlimited, d.Scaled, d.Concurrency, d.Account = false, true, 4, 1000 }},
		limitAccount:    {change: func(d *deployment) { d.Unlimited, d.Scaled, d.Concurrency, d.Account = false, true, 50, 4 }},
		limitSlots:      {kind: load{Limit: maxLimit}},
	} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			d := unlimited
			if c.change != nil {
				c.change(&d)
			}
			c.kind.Handler = handlerTime
			want := ceilings(d, handlerTime)[limit]
			rate, found := carries(1, d, c.kind, want*0.6, want*2)
			if found != limit {
				t.Errorf("limited by %q", found)
			}
			if math.Abs(rate/want-1) > 0.12 {
				t.Errorf("carries %.0f runs a second, arithmetic says %.0f", rate, want)
			}
		})
	}
}

// The size of cohorts is a matter of speed, not of what is found.
func TestCohorts_OfAnySize_FindTheSame(t *testing.T) {
	t.Parallel()
	d := sizedFor(2000)
	for name, change := range map[string]func(*load){
		"steady": func(*load) {},
		"failing": func(l *load) {
			l.Attempts, l.Failing = 4, func(_ time.Duration, attempt int) bool { return attempt < 3 }
		},
		"backlog": func(l *load) { l.Rate, l.Backlog, l.During = 0, 30_000, 0 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var units, ended [2]float64
			for i, weight := range []float64{1, 20} {
				l := load{Rate: 400, During: 30 * time.Second, Then: 30 * time.Second, Handler: handlerTime, Weight: weight, Attempts: 1}
				change(&l)
				w := simulate(5, d, l)
				if w.outcome.active != 0 || w.outcome.turnedAway != 0 {
					t.Fatalf("%v active, %v turned away", w.outcome.active, w.outcome.turnedAway)
				}
				units[i], ended[i] = w.total.Writes/w.outcome.created, w.outcome.lastEnd.Seconds()
			}
			if math.Abs(units[0]/units[1]-1) > 0.02 {
				t.Errorf("%v write units a run, in cohorts %v", units[0], units[1])
			}
			if math.Abs(ended[0]-ended[1]) > 0.1*ended[0]+1 {
				t.Errorf("the last run ended after %v s, in cohorts after %v s", ended[0], ended[1])
			}
		})
	}
}

// Callers try for as long as dynamostore does, then they are told.
func TestTrigger_OfARefusingTable_IsTurnedAway(t *testing.T) {
	t.Parallel()
	w := newWorld(1, freshDeployment(), load{Weight: 1})
	for _, p := range w.table.parts {
		p.writes.rate, p.writes.level = 1e-9, -1
	}
	w.trigger(1)
	w.run(time.Hour, nil)
	if w.outcome.turnedAway != 1 || w.outcome.created != 0 {
		t.Fatalf("%+v", w.outcome)
	}
	want := throttleBackoff * (1 + 2 + 4 + 8 + 16 + 16 + 16)
	if sent := w.requests[create.name].Requests; sent != maxConflictTries || w.now != want {
		t.Errorf("%v requests in %s, want %d in %s", sent, w.now, maxConflictTries, want)
	}
}

func TestQueue_HandsBackUntilItIsADeadLetter(t *testing.T) {
	t.Parallel()
	w := newWorld(1, freshDeployment(), load{Weight: 1})
	w.queue.send(w.newCohort(1), 1200*time.Millisecond)
	w.run(1999*time.Millisecond, nil)
	if w.queue.visible != 0 {
		t.Error("SQS delays by whole seconds")
	}
	receives := 0
	for range 20 {
		w.run(w.now+time.Hour, nil)
		batch, weight := w.queue.receive(10)
		if len(batch) == 0 {
			break
		}
		receives++
		if weight != 1 || batch[0].receives != receives {
			t.Fatalf("%+v", batch)
		}
		w.queue.handBack(batch[0], handBackDelay(receives))
	}
	if receives != maxReceiveCount || w.queue.dead != 1 || w.queue.inFlight != 0 || w.queue.visible != 0 {
		t.Errorf("received %d times, %v dead, %v in flight", receives, w.queue.dead, w.queue.inFlight)
	}
}

func TestMapping_GrowsByThreeHundredAMinute(t *testing.T) {
	t.Parallel()
	d := freshDeployment()
	d.Concurrency, d.Account = 0, 10_000
	w := newWorld(1, d, load{Backlog: 200_000, Weight: 10, Handler: time.Minute, Attempts: 1})
	w.fill()
	w.bridge.start()
	for minute, want := range map[int]float64{1: 305, 2: 605, 5: 1250} {
		w.run(time.Duration(minute)*time.Minute, nil)
		if minute == 5 && w.bridge.allowed != want || minute != 5 && w.bridge.allowed < want-5 {
			t.Errorf("%v batches at once after %d minutes, want %v", w.bridge.allowed, minute, want)
		}
	}
	if w.outcome.busy > mostBatches {
		t.Errorf("%v batches at once", w.outcome.busy)
	}
}

// A worker that dies leaves its run to a tick, once the lease is over.
func TestTick_RecoversTheRunOfADeadWorker(t *testing.T) {
	t.Parallel()
	l := load{Rate: 1, During: time.Minute, Then: 10 * time.Minute, Handler: handlerTime, Weight: 1, Attempts: 1, Lost: 10 * time.Second}
	w := simulate(1, freshDeployment(), l)
	o := &w.outcome
	if o.lost == nil || o.lost.status != succeeded || o.lost.attempts != 2 || o.active != 0 {
		t.Fatalf("%+v", o)
	}
	lease := bridgeTimeout + leaseAfterDeadline
	if after := o.foundAt - o.lostAt; after < lease-time.Second || after > lease+2*time.Minute {
		t.Errorf("found %s after it was lost, want the lease of %s and a tick or two", after, lease)
	}
	if o.asked != 1 {
		t.Errorf("%v deliveries were asked for", o.asked)
	}
}
