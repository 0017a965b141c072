package demo

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/examples/webhooks"
	"github.com/runlane/runlane-go/examples/webhooks/receiver"
)

func TestSummary_EachRunIsCountedOnce(t *testing.T) {
	t.Parallel()
	r, err := receiver.Open(receiver.Options{Ledger: filepath.Join(t.TempDir(), "ledger")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	d := &demo{webhooks: newBoard(), receiver: r}
	end := func(id runlane.RunID, status runlane.Status) *runlane.Run {
		return &runlane.Run{ID: id, Status: status, FinishedAt: time.Now()}
	}
	d.webhooks.triggered("open", &runlane.TriggerResult{Run: end("1", runlane.StatusQueued)})
	d.webhooks.triggered("failed", &runlane.TriggerResult{Run: end("2", runlane.StatusFailed)})
	d.webhooks.triggered("cancelled", &runlane.TriggerResult{Run: end("3", runlane.StatusRunning)})
	d.webhooks.seen(end("3", runlane.StatusRunning)) // not yet
	d.webhooks.seen(end("3", runlane.StatusCancelled))
	d.webhooks.triggered("says it delivered", &runlane.TriggerResult{Run: end("4", runlane.StatusSucceeded)})
	d.webhooks.seen(end("5", runlane.StatusSucceeded)) // of no run here
	s := d.summarize()
	if want := "demo: 4 runs, 0 succeeded, 2 failed, 2 lost"; s.String() != want || s.Complete() {
		t.Errorf("got %q, want %q", s, want)
	}
}

func TestSummary_Complete(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		summary  Summary
		complete bool
	}{
		"all":             {Summary{Runs: 2, Succeeded: 2}, true},
		"with bad lines":  {Summary{Runs: 2, Succeeded: 2, BadLines: 1}, true},
		"with duplicates": {Summary{Runs: 2, Succeeded: 2, Receiver: receiver.Report{Duplicates: 3}}, true},
		"one failed":      {Summary{Runs: 2, Succeeded: 1, Failed: 1}, false},
		"one lost":        {Summary{Runs: 2, Succeeded: 1, Lost: 1}, false},
		"not triggered":   {Summary{Runs: 2, Succeeded: 2, NotTriggered: 1}, false},
		"mismatched":      {Summary{Runs: 2, Succeeded: 2, Receiver: receiver.Report{Mismatched: 1}}, false},
		"bad signature":   {Summary{Runs: 2, Succeeded: 2, Receiver: receiver.Report{BadSignatures: 1}}, false},
	} {
		if c.summary.Complete() != c.complete {
			t.Errorf("%s: complete is %t", name, !c.complete)
		}
	}
}

func TestUsage_PerOperationOfTheRolesThatRunsPass(t *testing.T) {
	t.Parallel()
	before := usage{Application: {"run.created": {Requests: 2, WriteUnits: 10}}, Tick: {"scan": {Requests: 8}}}
	after := usage{
		Application: {"run.created": {Requests: 5, WriteUnits: 25}, "acknowledge": {Requests: 2, WriteUnits: 2}},
		Relay:       {"acknowledge": {Requests: 1, WriteUnits: 4}},
		Bridge:      {"run.started": {Requests: 3, WriteUnits: 12}},
		Tick:        {"scan": {Requests: 80}},
	}
	path := after.since(before).path()
	want := map[string]dynamostore.Usage{
		"run.created": {Requests: 3, WriteUnits: 15}, "acknowledge": {Requests: 3, WriteUnits: 6}, "run.started": {Requests: 3, WriteUnits: 12},
	}
	if diff := cmp.Diff(want, path); diff != "" {
		t.Error(diff)
	}
	if got := total(path); got.Requests != 9 || got.WriteUnits != 33 {
		t.Errorf("together %+v", got)
	}
	names := operationNames(path, map[string]dynamostore.Usage{"run.retry_scheduled": {WriteUnits: 13}})
	if diff := cmp.Diff([]string{"run.created", "run.retry_scheduled", "run.started", "acknowledge"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestPercentile(t *testing.T) {
	t.Parallel()
	var hundred []time.Duration
	for n := range 100 {
		hundred = append(hundred, time.Duration(100-n)*time.Millisecond)
	}
	for p, want := range map[int]time.Duration{1: time.Millisecond, 50: 50 * time.Millisecond, 99: 99 * time.Millisecond, 100: 100 * time.Millisecond} {
		if got := percentile(hundred, p); got != want {
			t.Errorf("p%d of 1 to 100 ms is %s", p, got)
		}
	}
	if percentile(nil, 50) != 0 || percentile(hundred[:1], 99) != time.Millisecond {
		t.Error("of none or one")
	}
}

func TestBoard_ARunMayHaveEndedOnlyAfterItsLastAttempt(t *testing.T) {
	t.Parallel()
	failure := webhooks.ErrNotDelivered
	for name, c := range map[string]struct {
		failures int
		err      error
		maybe    bool
	}{
		"succeeded":    {0, nil, true},
		"will retry":   {0, failure, false},
		"permanent":    {0, runlane.Permanent(failure), true},
		"last failure": {webhooks.MaxAttempts - 1, failure, true},
		"one to go":    {webhooks.MaxAttempts - 2, failure, false},
	} {
		b := newBoard()
		run := runlane.Run{ID: "run", Status: runlane.StatusRunning, Counters: runlane.Counters{Failures: c.failures}}
		b.triggered("x", &runlane.TriggerResult{Run: &run})
		_ = b.watch(t.Context(), &runlane.Attempt{Run: run}, func(context.Context) error { return c.err })
		if got := len(b.toInspect(false)) == 1; got != c.maybe {
			t.Errorf("%s: may have ended is %t", name, got)
		}
		if len(b.toInspect(true)) != 1 {
			t.Errorf("%s: a sweep leaves it out", name)
		}
	}
}
