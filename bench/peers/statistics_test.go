package main

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSummarize_MediansSpreadAndRatios(t *testing.T) {
	t.Parallel()
	own := &subject{name: memlaneName, group: memory}
	peer := &subject{name: "peer", group: memory}
	other := &subject{name: "peer", group: machine}
	rounds := func(rates, delays []float64) []map[metric]float64 {
		var list []map[metric]float64
		for i := range rates {
			list = append(list, map[metric]float64{drain: rates[i], startDelay: delays[i]})
		}
		return list
	}
	rows := summarize([]*subject{other, own, peer}, map[*subject][]map[metric]float64{
		own:   rounds([]float64{30, 10, 20}, []float64{8, 9, 7}),
		peer:  rounds([]float64{80, 70, 60, 90}, []float64{16, 16, 15, 17}),
		other: rounds([]float64{1}, []float64{1}),
	})
	want := []row{
		{"row", memlaneName, memory, drain, "jobs/s", 20, 10, 30, 3, 20.0 / 75, 1},
		{"row", "peer", memory, drain, "jobs/s", 75, 60, 90, 4, 1, 3.75},
		{"row", memlaneName, memory, startDelay, "µs", 8, 7, 9, 3, 1, 1},
		{"row", "peer", memory, startDelay, "µs", 16, 15, 17, 4, 0.5, 0.5},
		{"row", "peer", machine, drain, "jobs/s", 1, 1, 1, 1, 1, 0},
		{"row", "peer", machine, startDelay, "µs", 1, 1, 1, 1, 1, 0},
	}
	if !slices.Equal(rows, want) {
		t.Errorf("got  %v\nwant %v", rows, want)
	}
	said := strings.Join(verdicts(rows), "\n")
	for _, want := range []string{
		"memory, drain: beside runlane memlane, peer wins, 3.75 times as fast",
		"memory, idle_start: beside runlane memlane, peer loses, 0.5 times as fast",
		"machine: no row of Runlane; fastest are peer in drain, peer in idle_start",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not said in\n%s", want, said)
		}
	}
}

func TestNumber_ThreeDigits(t *testing.T) {
	t.Parallel()
	for value, want := range map[float64]string{
		0.1234: "0.123", 8.666: "8.67", 99.94: "99.9", 100: "100", 999.6: "1 000", 1234: "1 230", 1_234_567: "1 230 000",
	} {
		if got := number(value); got != want {
			t.Errorf("%v: %q", value, got)
		}
	}
}

func TestCallsLeft_AHundredthOfTheWindowAndThenNone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		calls          int
		passed, window time.Duration
		want           int
	}{
		{1, time.Second, time.Second, 0},
		{1, time.Millisecond, time.Second, 10},
		{1000, 100 * time.Millisecond, time.Second, 100},
		{1, 999 * time.Millisecond, time.Second, 1},
	} {
		if got := callsLeft(c.calls, c.passed, c.window); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	if got := callsLeft(1, 0, time.Second); got < 1 || got == math.MaxInt {
		t.Errorf("before the clock moved: %d", got)
	}
}

func TestTally_AwaitsTheNumberOrTheEnd(t *testing.T) {
	t.Parallel()
	counted := newTally()
	go func() { // ends by itself
		for range 1000 {
			counted.add(1)
		}
	}()
	if err := counted.await(t.Context(), 1000); err != nil {
		t.Fatal(err)
	}
	if err := counted.await(t.Context(), 10); err != nil { // long reached
		t.Fatal(err)
	}
	reason := errors.New("too late")
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	if err := counted.await(ended, 1001); !errors.Is(err, reason) {
		t.Errorf("%v", err)
	}
}
