package lanetest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

func needsKept(c lane.StorageCapabilities) bool { return c.SuspendsRuns }

// docs/internals/contract.md, Records.
func recordCases() []storageCase {
	return []storageCase{
		{"AreKeptAsTheyWereGiven", needsKept, recordsKept},
		{"TheFirstStaysAndWhoComesLaterIsToldIt", needsKept, recordsFirst},
		{"OfManyAtOnceOneIsKeptAndEachIsToldIt", needsKept, recordsRace},
		{"NeedNoLeaseAndChangeNoRun", needsBoth(needsKept, needsLeases), recordsUnfenced},
		{"AreReplacedOnlyByLaterOnesOfTheirKind", needsKept, recordsReplaced},
		{"ArePagedByName", needsKept, recordsPaged},
		{"LogsAreApartFromTheOthers", needsKept, recordsOfLogs},
		{"LargeResultsAreKept", needsKept, recordsLarge},
		{"MalformedOnesAreRefusedAndNothingIsKept", needsKept, recordsMalformed},
		{"ResultsAreTheCallersOwn", needsKept, recordsCopied},
		{"BelongToARunOfOneEnvironment", needsKept, recordsElsewhere},
		{"Hazard41_AnIDUsedAgainHasNoneOfTheRunBefore", needsBoth(needsKept, needsPruning), recordsReused},
		{"GoWithTheirRun", needsBoth(needsKept, needsPruning), recordsPruned},
	}
}

// keeping is a command for a run.
func (b *bundle) keeping(run *runlane.Run, name, result string) *lane.KeepCommand {
	return &lane.KeepCommand{
		RunKey:    lane.RunKey{Environment: run.Environment, RunID: run.ID},
		CreatedAt: run.CreatedAt,
		Record: lane.StepRecord{
			Name:    name,
			Kind:    runlane.StepKindStep,
			Attempt: 1,
			At:      noon.Add(time.Second),
			Result:  []byte(result),
		},
	}
}

// keep keeps a record and returns what is kept.
func (b *bundle) keep(c *lane.KeepCommand) *lane.StepRecord {
	b.t.Helper()
	return must(b.storage.KeepRecord(b.ctx(), c))(b.t)
}

// records are all of a run.
func (b *bundle) records(run *runlane.Run) []lane.StepRecord {
	b.t.Helper()
	q := &lane.RecordQuery{
		PageQuery: lane.PageQuery{Environment: run.Environment},
		RunID:     run.ID,
		CreatedAt: run.CreatedAt,
	}
	return collect(b.t, &q.PageQuery, func() (*runlane.Page[lane.StepRecord], error) {
		return b.storage.ListRecords(b.ctx(), q)
	})
}

func recordsKept(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	equal(t, "records before the first", nil, b.records(run))
	c := b.keeping(run, "Ωλ charge: 1/2", `{"a": 1.0e2 }`)
	c.Record.Type, c.Record.Attempt = "shop.Receipt", 7
	c.Record.StartedAt = noon.Add(1234567 * time.Nanosecond).In(time.FixedZone("elsewhere", 3600))
	c.Record.At = c.Record.StartedAt.Add(time.Second)
	want := *lane.RecordAtRest(&c.Record)
	equal(t, "kept", &want, b.keep(c))
	none := b.keeping(run, "none", "")
	none.Record.Kind = "kind of a newer program"
	equal(t, "kept without a result", lane.RecordAtRest(&none.Record), b.keep(none))
	equal(t, "listed", []lane.StepRecord{*lane.RecordAtRest(&none.Record), want}, b.records(run))
	equal(t, "run", run, b.get(run.ID))
}

func recordsFirst(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	first := b.keep(b.keeping(run, "charge", "1"))
	for _, result := range []string{"2", "", "1"} {
		later := b.keeping(run, "charge", result)
		later.Record.Attempt, later.Record.At = 2, noon.Add(time.Hour)
		if result == "" {
			later.Record.Kind = runlane.StepKindCheckpoint
		}
		equal(t, "told to who comes later", first, b.keep(later))
	}
	equal(t, "listed", []lane.StepRecord{*first}, b.records(run))
}

func recordsRace(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	const callers = 8
	told := make([]*lane.StepRecord, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			c := b.keeping(run, "charge", fmt.Sprint(i))
			c.Record.Attempt = i + 1
			told[i], _ = b.storage.KeepRecord(b.ctx(), c)
		})
	}
	wg.Wait()
	kept := b.records(run)
	equal(t, "how many are kept", 1, len(kept))
	for i, r := range told {
		equal(t, fmt.Sprintf("told to caller %d", i), &kept[0], r)
	}
	equal(t, "the result is that of its attempt", string(kept[0].Result), fmt.Sprint(kept[0].Attempt-1))
}

func recordsUnfenced(t *testing.T, b *bundle) {
	run := b.running(noon, noon.Add(time.Minute), RunOptions{})
	b.keep(b.keeping(run, "under a lease", "1"))
	equal(t, "run", run, b.get(run.ID))
	run = b.claim(run, noon.Add(time.Minute), noon.Add(2*time.Minute))
	b.keep(b.keeping(run, "of the late owner", "1"))
	run = b.push(run, noon.Add(time.Minute), Succeeded(run, nil))
	b.keep(b.keeping(run, "after the end", "1"))
	equal(t, "run after its end", run, b.get(run.ID))
	equal(t, "records", 3, len(b.records(run)))
}

func recordsReplaced(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	put := func(attempt int, at time.Duration, result string) *lane.StepRecord {
		t.Helper()
		c := b.keeping(run, "rows", result)
		c.Record.Kind, c.Record.Attempt, c.Record.At = runlane.StepKindCheckpoint, attempt, noon.Add(at)
		c.Replace = true
		if attempt == 1 {
			c.Record.Type = "int" // what a later record has not goes with the one it replaces
		}
		return b.keep(c)
	}
	for _, step := range []struct {
		attempt int
		at      time.Duration
		result  string
		kept    string
	}{
		{1, time.Second, "1", "1"},
		{1, 2 * time.Second, "2", "2"},
		{1, 2 * time.Second, "3", "3"},    // at once
		{1, time.Second, "late", "3"},     // sent again by the network
		{2, time.Millisecond, "4", "4"},   // the clock of the next worker is behind
		{1, time.Hour, "late owner", "4"}, // of the worker before
		{2, 3 * time.Second, "", ""},
	} {
		equal(t, "kept", step.kept, string(put(step.attempt, step.at, step.result).Result))
	}
	other := b.keeping(run, "rows", "a step")
	other.Record.Attempt, other.Record.At, other.Replace = 9, noon.Add(time.Hour), true
	equal(t, "kind", runlane.StepKindCheckpoint, b.keep(other).Kind)
	kept := b.records(run)
	equal(t, "how many are kept", 1, len(kept))
	equal(t, "type", "", kept[0].Type)
}

func recordsPaged(t *testing.T, b *bundle) {
	run, other := b.create(noon, RunOptions{}), b.create(noon, RunOptions{})
	b.keep(b.keeping(other, "step/03x", "1"))
	names := []string{
		"a", "Z", "step/10", "step/02", "step:1", "é", "ÿ z", strings.Repeat("n", runlane.MaxStepNameBytes),
	}
	for i := range 7 {
		names = append(names, fmt.Sprintf("page/%d", i))
	}
	for _, name := range names {
		b.keep(b.keeping(run, name, "1"))
	}
	slices.Sort(names)
	q := &lane.RecordQuery{
		PageQuery: lane.PageQuery{Environment: b.env, Limit: 4}, RunID: run.ID, CreatedAt: run.CreatedAt,
	}
	var listed []string
	for _, r := range collect(t, &q.PageQuery, func() (*runlane.Page[lane.StepRecord], error) {
		return b.storage.ListRecords(b.ctx(), q)
	}) {
		listed = append(listed, r.Name)
	}
	equal(t, "names", names, listed)
	q.After = must(b.storage.ListRecords(b.ctx(), q))(t).Next
	for what, alien := range map[string]lane.RecordQuery{
		"another run":      {PageQuery: q.PageQuery, RunID: other.ID, CreatedAt: other.CreatedAt},
		"another creation": {PageQuery: q.PageQuery, RunID: run.ID, CreatedAt: run.CreatedAt.Add(time.Millisecond)},
		"no cursor": {
			PageQuery: lane.PageQuery{Environment: b.env, After: "x"}, RunID: run.ID, CreatedAt: run.CreatedAt,
		},
		"a limit out of range": {
			PageQuery: lane.PageQuery{Environment: b.env, Limit: -1}, RunID: run.ID, CreatedAt: run.CreatedAt,
		},
	} {
		if _, err := b.storage.ListRecords(b.ctx(), &alien); runlane.CodeOf(err) != runlane.ErrValidationFailed {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func recordsOfLogs(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	for _, name := range []string{"1:0", "1:1", "2:0", "2:1", "3:0"} {
		b.keep(b.keeping(run, name, "1"))
		c := b.keeping(run, name, "2")
		c.Record.Kind = runlane.StepKindLog
		equal(t, "kept", "2", string(b.keep(c).Result))
	}
	list := func(q lane.RecordQuery) (names []string) {
		q.Environment, q.Limit, q.RunID, q.CreatedAt = b.env, 2, run.ID, run.CreatedAt
		for _, r := range collect(t, &q.PageQuery, func() (*runlane.Page[lane.StepRecord], error) {
			return b.storage.ListRecords(b.ctx(), &q)
		}) {
			equal(t, "kind of "+r.Name, q.Logs, r.Kind == runlane.StepKindLog)
			names = append(names, r.Name)
		}
		return names
	}
	for _, logs := range []bool{false, true} {
		equal(t, "all", []string{"1:0", "1:1", "2:0", "2:1", "3:0"}, list(lane.RecordQuery{Logs: logs}))
		equal(t, "from", []string{"1:1", "2:0", "2:1", "3:0"}, list(lane.RecordQuery{Logs: logs, From: "1:1"}))
		equal(t, "until", []string{"1:0", "1:1", "2:0"}, list(lane.RecordQuery{Logs: logs, Until: "2:1"}))
		equal(t, "between", []string{"2:0", "2:1"}, list(lane.RecordQuery{Logs: logs, From: "2:", Until: "3:"}))
	}
	q := &lane.RecordQuery{
		PageQuery: lane.PageQuery{Environment: b.env, Limit: 1}, RunID: run.ID, CreatedAt: run.CreatedAt, Logs: true,
	}
	q.After, q.Logs = must(b.storage.ListRecords(b.ctx(), q))(t).Next, false
	_, err := b.storage.ListRecords(b.ctx(), q)
	wantError(t, err, runlane.ErrValidationFailed)
}

func recordsLarge(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	for i, result := range [][]byte{
		bytes.Repeat([]byte("0123456789"), 100_000),
		incompressible(300 << 10),
		incompressible(1200),
		{0, 1, 0xff},
	} {
		c := b.keeping(run, fmt.Sprint(i), "")
		c.Record.Result = result
		want, kept := lane.RecordAtRest(&c.Record), b.keep(c)
		equalBytes(t, "kept", want.Result, kept.Result)
		equalBytes(t, "listed", result, b.records(run)[i].Result)
		want.Result, kept.Result = nil, nil
		equal(t, "kept", want, kept)
	}
}

// equalBytes does not show a difference, which takes minutes to find among a million bytes.
func equalBytes(t testing.TB, what string, want, got []byte) {
	t.Helper()
	if !bytes.Equal(want, got) {
		t.Fatalf("%s: %d bytes, want %d", what, len(got), len(want))
	}
}

// incompressible are bytes of a seed.
func incompressible(n int) []byte {
	b, state := make([]byte, n), uint64(n)
	for i := range b {
		state = state*6364136223846793005 + 1442695040888963407
		b[i] = byte(state >> 33)
	}
	return b
}

func recordsMalformed(t *testing.T, b *bundle) {
	run, long := b.create(noon, RunOptions{}), strings.Repeat("n", runlane.MaxStepNameBytes+1)
	for what, spoil := range map[string]func(*lane.KeepCommand){
		"no name":           func(c *lane.KeepCommand) { c.Record.Name = "" },
		"a long name":       func(c *lane.KeepCommand) { c.Record.Name = long },
		"a name of control": func(c *lane.KeepCommand) { c.Record.Name = "a\nb" },
		"no text":           func(c *lane.KeepCommand) { c.Record.Name = "\xff" },
		"no kind":           func(c *lane.KeepCommand) { c.Record.Kind = "" },
		"a long kind":       func(c *lane.KeepCommand) { c.Record.Kind = runlane.StepKind(long) },
		"a long type":       func(c *lane.KeepCommand) { c.Record.Type = long },
		"no attempt":        func(c *lane.KeepCommand) { c.Record.Attempt = -1 },
		"no time":           func(c *lane.KeepCommand) { c.Record.At = time.Time{} },
		"no creation":       func(c *lane.KeepCommand) { c.CreatedAt = time.Time{} },
		"no run":            func(c *lane.KeepCommand) { c.RunID = "" },
	} {
		c := b.keeping(run, "charge", "1")
		spoil(c)
		if _, err := b.storage.KeepRecord(b.ctx(), c); runlane.CodeOf(err) != runlane.ErrContractViolation {
			t.Errorf("%s: %v", what, err)
		}
	}
	ended, cancel := context.WithCancel(b.ctx())
	cancel()
	_, err := b.storage.KeepRecord(ended, b.keeping(run, "charge", "1"))
	wantError(t, err, runlane.ErrOperationCancelled)
	equal(t, "records", nil, b.records(run))
}

func recordsCopied(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	c := b.keeping(run, "charge", "12345")
	kept := b.keep(c)
	c.Record.Result[0], kept.Result[1] = 'x', 'x'
	b.records(run)[0].Result[2] = 'x'
	equal(t, "result", "12345", string(b.records(run)[0].Result))
	equal(t, "told again", "12345", string(b.keep(b.keeping(run, "charge", "no")).Result))
}

func recordsElsewhere(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	there := b.create(noon, RunOptions{ID: run.ID, Environment: b.env + "-elsewhere"})
	b.keep(b.keeping(run, "charge", "1"))
	equal(t, "elsewhere", nil, b.records(there))
	equal(t, "kept elsewhere", "2", string(b.keep(b.keeping(there, "charge", "2")).Result))
	equal(t, "here", "1", string(b.records(run)[0].Result))
	missing := run.Clone()
	missing.ID = "run_missing"
	equal(t, "of a run that is not there", nil, b.records(missing))
	if _, err := b.storage.KeepRecord(b.ctx(), b.keeping(missing, "charge", "1")); err != nil {
		wantError(t, err, runlane.ErrRunNotFound)
	}
}

func recordsReused(t *testing.T, b *bundle) {
	o := RunOptions{ID: "run_again"}
	now := time.Now()
	first := b.create(now, o)
	b.keep(b.keeping(first, "charge", "1"))
	first = b.end(first, now, runlane.StatusCancelled)
	b.ahead().pruneUntilGone(first)
	late := b.keeping(first, "charge", "late")
	if _, err := b.storage.KeepRecord(b.ctx(), late); err != nil { // a worker that is not told of anything
		wantError(t, err, runlane.ErrRunNotFound)
	}
	second := b.create(now.Add(time.Second), o)
	equal(t, "records of the next run", nil, b.records(second))
	if _, err := b.storage.KeepRecord(b.ctx(), late); err != nil {
		wantError(t, err, runlane.ErrRunNotFound)
	}
	equal(t, "records of the next run", nil, b.records(second))
	equal(t, "kept of the next run", "2", string(b.keep(b.keeping(second, "charge", "2")).Result))
}

func recordsPruned(t *testing.T, b *bundle) {
	now := time.Now()
	run := b.create(now, RunOptions{})
	for i := range 30 {
		b.keep(b.keeping(run, fmt.Sprint(i), "1"))
	}
	log := b.keeping(run, "log", "1")
	log.Record.Kind = runlane.StepKindLog
	b.keep(log)
	run = b.end(run, now, runlane.StatusSucceeded)
	equal(t, "records after the end", 30, len(b.records(run)))
	b.ahead().pruneUntilGone(run)
	equal(t, "records", nil, b.records(run))
	logs := must(b.storage.ListRecords(b.ctx(), &lane.RecordQuery{
		PageQuery: lane.PageQuery{Environment: b.env}, RunID: run.ID, CreatedAt: run.CreatedAt, Logs: true,
	}))(t)
	equal(t, "logs", 0, len(logs.Items))
}
