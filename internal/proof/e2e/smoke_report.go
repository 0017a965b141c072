package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/runlane/runlane-go"
)

// split is where the time of a run went. A wait that was asked for is no part of it.
type split struct {
	commit time.Duration // from the trigger until DynamoDB had the run, by this machine's clock
	start  time.Duration // from there, or from the run's time, until the first attempt began: by two clocks
	end    time.Duration // of the last attempt, by the function's clock
}

// splitOf needs the history of a run that was executed.
func splitOf(p *probe) (s split, ok bool) {
	var first, last time.Time
	for _, event := range p.events {
		if _, started := event.Body.(*runlane.RunStarted); started {
			last = event.OccurredAt
			if first.IsZero() {
				first = last
			}
		}
	}
	if p.run == nil || first.IsZero() || p.committed.IsZero() {
		return s, false
	}
	due := p.committed
	if p.options.Delay > 0 {
		due = p.triggered.Add(p.options.Delay)
	}
	return split{commit: p.committed.Sub(p.triggered), start: first.Sub(due), end: p.run.FinishedAt.Sub(last)}, true
}

// middleAndMost is the median and the maximum, in milliseconds.
func middleAndMost(times []time.Duration) string {
	if len(times) == 0 {
		return "-"
	}
	slices.Sort(times)
	return fmt.Sprintf("%d / %d", times[(len(times)-1)/2].Milliseconds(), times[len(times)-1].Milliseconds())
}

// report writes the result as tables.
func (s *smoke) report(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "kind\truns\tas wanted\tuntil commit\tuntil start\tuntil end\t")
	for _, k := range s.kinds {
		var runs, sound int
		var commit, start, end []time.Duration
		for _, p := range s.probes {
			if p.label() != k.label() {
				continue
			}
			if runs++; p.fault == nil {
				sound++
			}
			if x, ok := splitOf(p); ok {
				commit, start, end = append(commit, x.commit), append(start, x.start), append(end, x.end)
			}
		}
		fmt.Fprintf(
			t,
			"%s\t%d\t%d\t%s\t%s\t%s\t\n",
			k.label(),
			runs,
			sound,
			middleAndMost(commit),
			middleAndMost(start),
			middleAndMost(end),
		)
	}
	for _, g := range s.without {
		fmt.Fprintf(t, "%s\t0\t-\t%s\t\t\t\n", g.name, g.reason)
	}
	fmt.Fprintln(t, "\t\t\tms, median / most\t\t\t")
	fmt.Fprintln(t, "\ntriggering\trequests\twrite units\tread units\t\t\t")
	fmt.Fprintf(
		t,
		"as DynamoDB reports\t%d\t%.1f\t%.1f\t\t\t\n",
		s.billed.Requests,
		s.billed.WriteUnits,
		s.billed.ReadUnits,
	)
	fmt.Fprintf(
		t,
		"as the meter computes\t%d\t%.1f\t%.1f\t\t\t\n",
		s.told.Requests,
		s.told.WriteUnits,
		s.told.ReadUnits,
	)
	fmt.Fprintf(
		t,
		"the meter is off by\t\t%s\t%s\t\t\t\n",
		percent(s.told.WriteUnits, s.billed.WriteUnits),
		percent(s.told.ReadUnits, s.billed.ReadUnits),
	)
	err := t.Flush()
	fmt.Fprintln(w)
	for _, p := range s.probes {
		if p.fault != nil {
			fmt.Fprintf(w, "WRONG: %s: %v\n", p.id, p.fault)
		}
	}
	for _, left := range s.leftover {
		fmt.Fprintf(w, "LEFT BEHIND: %v\n", left)
	}
	_, last := fmt.Fprintf(
		w,
		"%d runs named %s_… were removed, %d were left behind\n",
		s.removed,
		s.prefix,
		len(s.leftover),
	)
	return errors.Join(err, last)
}

func percent(computed, reported float64) string {
	if reported == 0 {
		return "-"
	}
	off := math.Round(1000*(computed-reported)/reported) / 10
	return fmt.Sprintf("%+.1f %%", off+0) // + 0: no minus zero
}
