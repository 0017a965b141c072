package memlane_test

import (
	"errors"
	"fmt"
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

// Two programs with different tasks receive from one queue. What one refuses the other gets at once, once; whoever is busy gets it next,
// and who leaves gives back what was meant for it.
func TestTransport_WhatOneReceiverRefuses_GoesToTheOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport := memlane.NewTransport(nil)
		start := time.Now()
		seen := map[string][]arrival{}
		only := func(name, prefix string, takes time.Duration) func(lane.Wakeup) error {
			return func(w lane.Wakeup) error {
				seen[name] = append(seen[name], arrival{w.RunID, time.Since(start)})
				if string(w.RunID[:1]) != prefix {
					return errNoHandler
				}
				time.Sleep(takes)
				return nil
			}
		}
		stopA := listen(t, transport, 1, only("A", "a", 0), "q")
		stopB := listen(t, transport, 1, only("B", "b", 10*time.Second), "q")
		for i := range 3 {
			send(t, transport, wakeup(runlane.RunID(fmt.Sprint("b", i)), "q"))
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
