package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
)

// Load asks for much at once, on the embedded lane and on DynamoDB Local. Each case holds what has to be true of every run, and bounds
// memory and requests; time is printed and asserted nowhere, since it is the machine's. Without -full the embedded lane carries all but
// for a tenth of 100,000 runs, under the race detector a twentieth, and DynamoDB Local a part. The cases run one after the other: each
// measures the memory of the process.

const (
	embedded = "memlane"
	dynamoDB = "dynamodb"
)

// loadCase is one load.
type loadCase struct {
	name string
	// embedded and dynamoDB are how many runs, or events, make the full load; short is how many DynamoDB Local carries without
	// -full. 0: not on that lane.
	embedded, dynamoDB, short int
	// divisible is what every size is a multiple of. 0 means 1.
	divisible int
	// heap is how many bytes the process may have on its heap at most, with so many runs, on the embedded lane; there they all stay.
	heap func(runs int) uint64
	// requests is how many requests DynamoDB may get a run, retries included, beside those of ticks with nothing to do: these are paid
	// once a minute, whatever runs do.
	requests float64
	play     func(w *load)
}

// dynamoHeap is how much the process may have on its heap while the runs are in DynamoDB: nothing grows with them but their wakeups.
const dynamoHeap = 192 << 20

// onEachLane plays a case on the embedded lane, in virtual time, and on DynamoDB Local.
func onEachLane(t *testing.T, c *loadCase) {
	t.Helper()
	if c.embedded > 0 {
		t.Run(embedded, func(t *testing.T) {
			runs := c.embedded
			switch {
			case *fullLoad:
			case patience.Race || testing.Short():
				runs /= 20
			case runs > 20_000:
				runs /= 10
			}
			measure(t, c, embedded, runs, c.embedded, func(w *load) {
				synctest.Test(t, func(t *testing.T) {
					w.T = t
					w.openMemory()
					c.play(w)
				})
			})
		})
	}
	if c.dynamoDB > 0 {
		t.Run(dynamoDB, func(t *testing.T) {
			runs := c.short
			if *fullLoad {
				runs = c.dynamoDB
			}
			measure(t, c, dynamoDB, runs, c.dynamoDB, func(w *load) {
				w.openDynamoDB()
				c.play(w)
			})
		})
	}
}

// measure plays a case, prints its line, and holds its bounds.
func measure(t *testing.T, c *loadCase, lane string, runs, full int, play func(*load)) {
	t.Helper()
	if c.divisible > 1 {
		runs -= runs % c.divisible
	}
	w := &load{T: t, runs: runs, over: observe()}
	t.Cleanup(func() { w.over() }) // also where the case is left out, or ends early
	play(w)
	if t.Failed() {
		return
	}
	took, most := w.over()
	line := []string{
		fmt.Sprintf("load case=%q lane=%s runs=%d of=%d", c.name, lane, runs, full),
		fmt.Sprintf("seconds=%.1f peak_heap_mb=%d", took.Seconds(), most>>20),
	}
	bound := uint64(dynamoHeap)
	if lane == embedded {
		bound = c.heap(runs)
	} else {
		each := float64(w.used) / float64(runs)
		line = append(line, fmt.Sprintf("requests_per_run=%.1f", each))
		if each > c.requests {
			t.Errorf("%.1f requests a run, want at most %.1f", each, c.requests)
		}
	}
	line = append(line, w.notes...)
	fmt.Fprintln(os.Stdout, strings.Join(line, " "))
	if most > bound {
		t.Errorf("the heap had %d MB, want at most %d", most>>20, bound>>20)
	}
}

// observe samples the heap until the function that it returns is called, from wherever: that tells how long it took, by the real clock,
// and the most there was on the heap, dead objects included.
func observe() (over func() (took time.Duration, peak uint64)) {
	runtime.GC()
	ctx, stop := context.WithCancel(context.Background())
	var took time.Duration
	var peak uint64
	ended := make(chan struct{})
	began := time.Now()
	go func() { // ends with stop; outside of any bubble
		defer close(ended)
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		for ctx.Err() == nil {
			metrics.Read(sample)
			peak = max(peak, sample[0].Value.Uint64())
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
		took = time.Since(began)
	}()
	return func() (time.Duration, uint64) {
		stop()
		<-ended
		return took, peak
	}
}

// perRun is a bound for the heap: so much for the process, and so much a run.
func perRun(bytes int) func(runs int) uint64 {
	return func(runs int) uint64 { return 64<<20 + uint64(max(0, min(runs, math.MaxInt32/bytes)))*uint64(bytes) } // not negative
}
