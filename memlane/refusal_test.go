package memlane_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

var errNoHandler = errors.New("no handler")

func TestTransport_RefusedAgainAndAgain_ComesAtGrowingDistances(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport := memlane.NewTransport(nil)
		var distances []time.Duration
		last := time.Now()
		stop := listen(t, transport, 2, func(lane.Wakeup) error {
			distances = append(distances, time.Since(last))
			last = time.Now()
			return errNoHandler
		}, "q")
		send(t, transport, wakeup("a", "q"))
		time.Sleep(23 * time.Minute)
		stop()
		s := time.Second
		want := []time.Duration{0, s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 64 * s, 128 * s, 256 * s, 300 * s, 300 * s}
		if d := cmp.Diff(want, distances); d != "" {
			t.Error(d)
		}
		wantDepth(t, transport, "q", 0, 1)
	})
}

// Two programs with different tasks receive from one queue. What one refuses the other gets at once, once; a busy one gets it next,
// and who leaves gives back what was meant for it.
func TestTransport_WhatOneReceiverRefuses_GoesToTheOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport := memlane.NewTransport(nil)
		start := time.Now()
		var mu sync.Mutex // of seen
		seen := map[string][]arrival{}
		only := func(name, prefix string, takes time.Duration) func(lane.Wakeup) error {
			return func(w lane.Wakeup) error {
				mu.Lock()
				seen[name] = append(seen[name], arrival{w.RunID, time.Since(start)})
				mu.Unlock()
				if string(w.RunID[:1]) != prefix {
					return errNoHandler
				}
				time.Sleep(takes)
				return nil
			}
		}
		stopA := listen(t, transport, 1, only("A", "a", 0), "q")
		stopB := listen(t, transport, 1, only("B", "b", 10*time.Second), "q")
		synctest.Wait() // for both to have joined
		for i := range 3 {
			send(t, transport, wakeup(runlane.RunID(fmt.Sprint("b", i)), "q"))
			synctest.Wait() // else B may be handed the next one while A refuses this one
		}
		time.Sleep(25 * time.Second)
		synctest.Wait()
		want := []arrival{{"b0", 0}, {"b1", 10 * time.Second}, {"b2", 20 * time.Second}}
		if d := cmp.Diff(want, seen["B"]); d != "" {
			t.Error(d)
		}
		time.Sleep(10 * time.Second)
		wantDepth(t, transport, "q", 0, 0)

		send(t, transport, wakeup("b3", "q"), wakeup("b4", "q"))
		time.Sleep(time.Second)
		stopB() // with b3 under way, and b4 meant for it
		time.Sleep(20 * time.Second)
		wantDepth(t, transport, "q", 0, 1)
		stopB = listen(t, transport, 1, only("B", "b", 0), "q")
		time.Sleep(time.Minute)
		wantDepth(t, transport, "q", 0, 0)
		stopA()
		stopB()
		if len(seen["A"]) > 12 {
			t.Errorf("A saw %v", seen["A"])
		}
	})
}

// Three programs receive from one queue: b is busy for an hour and does not know c's tasks, c knows them and is busy for one second
// more, a is idle and does not know them. What a refuses is not kept for b.
func TestTransport_RefusedWakeup_GoesToTheFirstFreeReceiver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport := memlane.NewTransport(nil)
		start := time.Now()
		var mu sync.Mutex // of got
		var got []arrival
		only := func(prefix string, takes time.Duration) func(lane.Wakeup) error {
			return func(w lane.Wakeup) error {
				if string(w.RunID[:1]) != prefix {
					return errNoHandler
				}
				mu.Lock()
				got = append(got, arrival{w.RunID, time.Since(start)})
				mu.Unlock()
				time.Sleep(takes)
				return nil
			}
		}
		stopB := listen(t, transport, 1, only("b", time.Hour), "q")
		send(t, transport, wakeup("b1", "q"))
		synctest.Wait()
		stopC := listen(t, transport, 1, only("c", time.Second), "q")
		send(t, transport, wakeup("c1", "q"))
		synctest.Wait()
		stopA := listen(t, transport, 1, only("a", 0), "q")
		synctest.Wait()
		send(t, transport, wakeup("c2", "q"), wakeup("c3", "q"), wakeup("a1", "q"))
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		want := []arrival{{"b1", 0}, {"c1", 0}, {"a1", 0}, {"c2", time.Second}, {"c3", 2 * time.Second}}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		wantDepth(t, transport, "q", 0, 0)
		stopA()
		stopB()
		stopC()
	})
}

// One program refuses three wakeups for 19 minutes. The program that knows them joins, and gets them at once, in their order.
func TestTransport_ReceiverThatJoins_GetsWhatPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport := memlane.NewTransport(nil)
		refusals := 0
		stopA := listen(t, transport, 1, func(lane.Wakeup) error { refusals++; return errNoHandler }, "q")
		for i := range 3 {
			send(t, transport, wakeup(runlane.RunID(fmt.Sprint("c", i)), "q"))
			synctest.Wait()
		}
		time.Sleep(19 * time.Minute)
		synctest.Wait()
		wantDepth(t, transport, "q", 0, 3)
		before, joined := refusals, time.Now()
		got := map[runlane.RunID]time.Duration{}
		stopC := listen(t, transport, 1, func(w lane.Wakeup) error { got[w.RunID] = time.Since(joined); return nil }, "q")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if d := cmp.Diff(map[runlane.RunID]time.Duration{"c0": 0, "c1": 0, "c2": 0}, got); d != "" {
			t.Error(d)
		}
		if refusals != before {
			t.Errorf("the first receiver saw %d more", refusals-before)
		}
		wantDepth(t, transport, "q", 0, 0)
		stopA()
		stopC()
	})
}

// Receivers that join and refuse do not put the end of a pause off for those that were there.
func TestTransport_ReceiversThatJoinAndRefuse_DoNotProlongThePause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport := memlane.NewTransport(nil)
		start := time.Now()
		var seen []time.Duration
		stop := listen(t, transport, 1, func(lane.Wakeup) error {
			seen = append(seen, time.Since(start))
			return errNoHandler
		}, "q")
		send(t, transport, wakeup("x", "q"))
		time.Sleep(40 * time.Second) // refused at 31 s, it pauses until 63 s
		joins := 0
		for range 10 {
			leave := listen(t, transport, 1, func(lane.Wakeup) error { joins++; return errNoHandler }, "q")
			time.Sleep(2 * time.Second)
			leave()
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		stop()
		s := time.Second
		if d := cmp.Diff([]time.Duration{0, s, 3 * s, 7 * s, 15 * s, 31 * s, 63 * s}, seen); d != "" || joins != 10 {
			t.Errorf("%d joined, %s", joins, d)
		}
	})
}

// A receiver refuses for a passing reason, and the only other one is busy for an hour: the first is asked again.
func TestTransport_RefusedOnceBesideABusyReceiver_ComesAgainWithinTheLongestPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport := memlane.NewTransport(nil)
		stopB := listen(t, transport, 1, func(lane.Wakeup) error { time.Sleep(time.Hour); return nil }, "q")
		send(t, transport, wakeup("b", "q"))
		synctest.Wait()
		start := time.Now()
		var seen []time.Duration
		stopA := listen(t, transport, 1, func(lane.Wakeup) error {
			if seen = append(seen, time.Since(start)); len(seen) == 1 {
				return errors.New("not now")
			}
			return nil
		}, "q")
		send(t, transport, wakeup("a", "q"))
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if d := cmp.Diff([]time.Duration{0, memlane.MaxHandBack}, seen); d != "" {
			t.Error(d)
		}
		stopA()
		stopB()
	})
}

// Receivers of two queues, each with its own tasks, join and leave at random times. Every wakeup is taken exactly once, and a receiver
// that stays to the end has them all.
func TestTransport_ReceiversComeAndGoAndRefuse_NothingIsLost(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 52))
			transport := memlane.NewTransport(nil)
			var mu sync.Mutex
			taken := map[runlane.RunID]int{}
			knows := func(kinds string, takes time.Duration) func(lane.Wakeup) error {
				return func(w lane.Wakeup) error {
					time.Sleep(takes)
					if !strings.Contains(kinds, string(w.RunID[:1])) {
						return errNoHandler
					}
					mu.Lock()
					defer mu.Unlock()
					taken[w.RunID]++
					return nil
				}
			}
			var stops []func()
			sent := 0
			for range 300 {
				switch n := random.IntN(10); {
				case n < 6:
					kind := string("abc"[random.IntN(3)])
					send(t, transport, wakeup(runlane.RunID(fmt.Sprint(kind, sent)), []runlane.QueueName{"q", "r"}[random.IntN(2)]))
					sent++
				case n < 8 && len(stops) < 5:
					takes := time.Duration(random.IntN(3)) * time.Second
					queues := [][]runlane.QueueName{{"q"}, {"r"}, {"q", "r"}}[random.IntN(3)]
					stops = append(stops, listen(t, transport, 1+random.IntN(3), knows(string("ab"[random.IntN(2)]), takes), queues...))
				case len(stops) > 0:
					i := random.IntN(len(stops))
					stops[i]()
					stops = slices.Delete(stops, i, i+1)
				}
				time.Sleep(time.Duration(random.IntN(4)) * time.Second / 2)
			}
			stops = append(stops, listen(t, transport, 2, knows("abc", 0), "q", "r"))
			time.Sleep(20 * time.Minute)
			synctest.Wait()
			wantDepth(t, transport, "q", 0, 0)
			wantDepth(t, transport, "r", 0, 0)
			for _, stop := range stops {
				stop()
			}
			for id, times := range taken {
				if times != 1 {
					t.Errorf("seed %d: %s was taken %d times", seed, id, times)
				}
			}
			if len(taken) != sent {
				t.Errorf("seed %d: %d of %d were taken", seed, len(taken), sent)
			}
		})
	}
}
