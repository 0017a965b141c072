package demo

import (
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/examples/webhooks/receiver"
)

// Summary is the result. Every run is counted in one of Succeeded, Failed and Lost.
type Summary struct {
	Runs, Succeeded, Failed int
	// Lost runs have not ended, or say that they delivered what the receiver does not know.
	Lost int
	// NotTriggered lines were sound, and yet no run was made of them. BadLines were no webhooks.
	NotTriggered, BadLines int
	// Receiver is what the other side saw.
	Receiver receiver.Report

	runs figures
}

// Complete reports whether every webhook was delivered, as it was given.
func (s *Summary) Complete() bool {
	return s.Succeeded == s.Runs && s.NotTriggered == 0 && s.Receiver.Mismatched == 0 && s.Receiver.BadSignatures == 0
}

// String is the last line of the demo.
func (s *Summary) String() string {
	return fmt.Sprintf("demo: %d runs, %d succeeded, %d failed, %d lost", s.Runs, s.Succeeded, s.Failed, s.Lost)
}

func (d *demo) summarize() *Summary {
	f := d.webhooks.figures()
	s := &Summary{
		Runs:         f.runs,
		Lost:         f.open,
		NotTriggered: len(d.notTriggered),
		BadLines:     d.badLines,
		Receiver:     d.receiver.Report(),
		runs:         f,
	}
	for _, run := range f.ended {
		switch {
		case run.status != runlane.StatusSucceeded:
			s.Failed++
		case !d.receiver.Accepted(run.deliveryID):
			s.Lost++
		default:
			s.Succeeded++
		}
	}
	return s
}

func (d *demo) print(s *Summary, took time.Duration, noOps, webhooks usage) {
	for _, err := range d.notTriggered {
		fmt.Fprintf(d.Stderr, "demo: not triggered: %v\n", err)
	}
	table := tabwriter.NewWriter(d.Stdout, 0, 0, 2, ' ', 0)
	row := func(name, format string, values ...any) { fmt.Fprintf(table, name+"\t"+format+"\n", values...) }
	attempts, retries, before := 0, 0, 0
	var durations []time.Duration
	for _, run := range s.runs.ended {
		attempts, retries = attempts+run.attempts, retries+run.retries
		durations = append(durations, run.took)
		if !run.here {
			before++
		}
	}
	row("lane", "%s, seed %d", d.Engine.Name, d.state.Seed)
	if d.Resume {
		row("resumed", "%d of %d runs had ended before", before, s.Runs)
	}
	row("runs", "%d: %d succeeded, %d failed, %d lost", s.Runs, s.Succeeded, s.Failed, s.Lost)
	if s.BadLines+s.NotTriggered > 0 {
		row("lines left out", "%d bad, %d not triggered", s.BadLines, s.NotTriggered)
	}
	row("attempts", "%d, of which %d were retries", attempts, retries)
	row("trigger to end", "p50 %s, p99 %s", percentile(durations, 50), percentile(durations, 99))
	row("all in", "%s", took.Round(10*time.Millisecond))
	r := s.Receiver
	row(
		"receiver",
		"%d accepted, %d again, %d mismatched, %d bad signatures",
		r.Accepted,
		r.Duplicates,
		r.Mismatched,
		r.BadSignatures,
	)
	row("failed on purpose", "%d with 5xx, %d with 429, %d answered too late", r.Unavailable, r.Throttled, r.Late)
	if d.Engine.LookAt != "" {
		row("look at them", "runlane --lane %s --env %s runs list", d.Engine.LookAt, d.state.Environment)
	}
	_ = table.Flush()
	if len(webhooks) > 0 && !d.Resume { // which repeats triggers and skips runs: an average would mislead
		d.printUsage(noOps, webhooks, took)
	}
	fmt.Fprintln(d.Stdout, s)
}

// printUsage shows what a run costs, operation by operation.
func (d *demo) printUsage(noOps, webhooks usage, took time.Duration) {
	measured, ended := len(d.noOps.figures().ended), len(d.webhooks.figures().ended)
	small, large := noOps.path(), webhooks.path()
	line := func(name string, a, b dynamostore.Usage) {
		fmt.Fprintf(
			d.Stdout,
			"%-24s %11s %9s %12s %9s\n",
			name,
			each(a.WriteUnits, measured),
			each(float64(a.Requests), measured),
			each(b.WriteUnits, ended),
			each(float64(b.Requests), ended),
		)
	}
	fmt.Fprintf(
		d.Stdout,
		"\n%-24s %21s %22s\n",
		"",
		fmt.Sprintf("%d no-op runs", measured),
		fmt.Sprintf("%d webhooks", ended),
	)
	fmt.Fprintf(
		d.Stdout,
		"%-24s %11s %9s %12s %9s\n",
		"DynamoDB, for each run",
		"write units",
		"requests",
		"write units",
		"requests",
	)
	for _, name := range operationNames(small, large) {
		line(name, small[name], large[name])
	}
	line("together", total(small), total(large))
	tick := plus(total(noOps[Tick]), total(webhooks[Tick]))
	fmt.Fprintf(
		d.Stdout,
		"Beside that, the tick made %d requests in %s and wrote %g units.\n",
		tick.Requests,
		took.Round(time.Second),
		tick.WriteUnits,
	)
	if d.Engine.DeferEvery > 0 {
		fmt.Fprintf(
			d.Stdout,
			"Every %dth webhook was triggered without a wakeup, which left it to the relay.\n",
			d.Engine.DeferEvery,
		)
	}
	fmt.Fprintln(d.Stdout)
}

func each(sum float64, runs int) string {
	if runs == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", sum/float64(runs))
}

// percentile is the smallest duration that p percent of all do not exceed.
func percentile(durations []time.Duration, p int) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	slices.Sort(durations)
	return durations[(len(durations)*p+99)/100-1].Round(time.Millisecond)
}
