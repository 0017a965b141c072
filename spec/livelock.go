package main

import (
	"fmt"
	"io"

	"github.com/runlane/runlane-go/spec/explore"
)

// circle asks, where nothing fails and every wakeup takes equally long, whether a world can end and whether it can go
// round for ever.
func (w *world) circle(most int) (states int, ends, forEver bool) {
	x := explore.NewSpace[state]()
	x.Add(&state{})
	var next [][]int32
	for i := 0; i < len(x.States) && i < most; i++ {
		s := x.States[i]
		var out []int32
		w.Steps(&s, func(_ label, t state, _ string) {
			w.Canon(&t)
			id, _ := x.Add(&t)
			out = append(out, id)
		})
		next = append(next, out)
		over := true
		for r := range w.runs {
			over = over && s.runs[r].status == terminal
		}
		ends = ends || over
	}
	return len(next), ends, cyclic(next)
}

// cyclic removes what leads nowhere, again and again; what is left goes round.
func cyclic(next [][]int32) bool {
	degree, before := make([]int, len(next)), make([][]int32, len(next))
	var leaves []int32
	for i, out := range next {
		for _, j := range out {
			if int(j) < len(next) {
				degree[i]++
				before[j] = append(before[j], int32(i)) // memory ends long before
			}
		}
		if degree[i] == 0 {
			leaves = append(leaves, int32(i)) // memory ends long before
		}
	}
	left := len(next)
	for len(leaves) > 0 {
		i := leaves[len(leaves)-1]
		leaves = leaves[:len(leaves)-1]
		left--
		for _, j := range before[i] {
			if degree[j]--; degree[j] == 0 {
				leaves = append(leaves, j)
			}
		}
	}
	return left > 0
}

// urgent is a world of bounded runs in which nothing fails.
func urgent(runs int, limit, latency int8, doubling bool) *world {
	return &world{
		name:         "urgent",
		runs:         runs,
		processes:    2,
		limits:       []int8{limit},
		maxAbandoned: 2,
		reservation:  2,
		latency:      latency,
		doubling:     doubling,
	}
}

// reservations are the urgent worlds that are looked at, with and without the doubling of reservations.
func reservations(doubling bool) []*world {
	all := []*world{urgent(1, 1, 2, doubling), urgent(3, 1, 4, doubling), urgent(3, 2, 4, doubling)}
	for latency := int8(1); latency <= 5; latency++ {
		all = append(all, urgent(2, 1, latency, doubling))
	}
	return all
}

// printReservations is false when a world goes round although reservations double.
func printReservations(out io.Writer) bool {
	ok := true
	for _, doubling := range []bool{false, true} {
		for _, w := range reservations(doubling) {
			states, ends, forEver := w.circle(cutOff)
			_, _ = fmt.Fprintf(
				out,
				"%d runs, limit %d, reservation %d, latency %d, doubling %-5v  %7d states  can end: %-5v  can go "+
					"round for ever: %v\n",
				w.runs, w.limits[0], w.reservation, w.latency, doubling, states, ends, forEver,
			)
			ok = ok && (!doubling || ends && !forEver)
		}
	}
	return ok
}
