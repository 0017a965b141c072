package main

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
)

// TestChaos breaks everything for a while, lets everything settle, and accounts for every run. -chaos says for how long, -seed repeats
// a plan. Below ten minutes all clocks are put forward when the faults are over, instead of waiting for what takes minutes: wakeups
// that got lost are asked for after ten.
//
//	go test ./internal/proof/e2e -run TestChaos -v -chaos 30m
func TestChaos(t *testing.T) {
	t.Parallel()
	awstest.Config(t) // skips under -short
	for *chaosSeed == 0 {
		*chaosSeed = rand.Uint64() // a choice of faults
	}
	plan := NewPlan(*chaosSeed, *chaosFor)
	fmt.Print(plan)
	t.Logf("seed %d", plan.Seed)

	w := newWorld(t, plan)
	rt := w.open(w.faulty, 0)
	w.fleet.deploy(Skew, 0)
	t.Cleanup(w.fleet.retire)
	w.fleet.begin()

	w.suffer(&triggers{world: w, rt: rt, random: rand.New(rand.NewPCG(plan.Seed, 2))}) // repeatable

	observer, r, settled := w.settle()
	recovered := time.Since(r.began)
	w.fleet.retire()
	w.sound(observer)
	w.complete(observer)

	effects, err := lambdatest.ReadLedger(w.ledger)
	if err != nil {
		t.Fatal(err)
	}
	w.report(NewAccount(w.endings(observer), effects), r, settled, recovered)
}

// suffer triggers runs and lets the faults happen, until both are through.
func (w *world) suffer(l *triggers) {
	w.faults.Switch(true)
	w.faulty.Switch(true)
	w.suffering.Store(true)
	var both sync.WaitGroup
	both.Go(func() { l.run(w.t.Context()) })
	both.Go(func() { w.execute(w.t.Context(), l.rt) })
	both.Wait()
	w.faults.Switch(false)
	w.faulty.Switch(false)
	w.fleet.countSkewed()
	w.suffering.Store(false)
}

// report prints the account, and fails the test for whatever must not be.
func (w *world) report(account *Account, r *recovery, settled bool, recovered time.Duration) {
	fmt.Print(account)
	fmt.Printf("dead letters: %d poison messages, %d wakeups; clocks put forward by %s\n", len(w.messages), r.deadWakeups, r.ahead)
	fmt.Printf("recovered after %.1f s, seed %d\n", recovered.Seconds(), w.plan.Seed)
	happened, wire := w.faults.Happened(), w.faulty.Stats()
	happened[Conflict], happened[Throttle], happened[LostResponse] = int(wire.Conflicts), int(wire.Throttled), int(wire.Lost)
	fmt.Println("faults:", happened)
	for _, kind := range Kinds() {
		if happened[kind] == 0 {
			w.t.Errorf("%s never happened", kind)
		}
	}
	if !settled {
		w.t.Errorf("not everything has ended %s after the faults; poison messages, and whether they are dead letters: %v", recovered, w.messages)
	}
	for _, problem := range account.Problems {
		w.t.Error(problem)
	}
	if account.Waiting != farRuns {
		w.t.Errorf("%d runs wait, and %d are due tomorrow", account.Waiting, farRuns)
	}
	if w.t.Failed() {
		w.t.Logf("the functions wrote:\n%s", w.fleet.complaints())
	}
}
