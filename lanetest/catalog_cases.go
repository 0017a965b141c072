package lanetest

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/design.md, Programs: the definitions that ticks store for programs without the tasks.
func catalogCases() []storageCase {
	return []storageCase{
		{"DefinitionsComeBackAsTheyWerePut", needsTasks, catalogRoundTrip},
		{"APutReplacesAllOfWhatWasThere", needsTasks, catalogReplaced},
		{"DefinitionsAreListedByID", needsTasks, catalogListed},
		{"PutsOfDifferentTasksAtOnceAreAllKept", needsTasks, catalogTogether},
		{"OfPutsOfOneTaskAtOnceOneIsKeptWhole", needsTasks, catalogRace},
		{"MalformedDefinitionsAreContractViolationsAndWriteNothing", needsTasks, catalogMalformed},
		{"EnvironmentsHaveTasksOfTheirOwn", needsTasks, catalogApart},
		{"ChangingACommandOrAResultChangesNothing", needsTasks, catalogCopies},
		{"AnEndedContextIsOperationCancelledAndWritesNothing", needsTasks, catalogEndedContext},
	}
}

func (b *bundle) putTask(records ...lane.TaskRecord) {
	b.t.Helper()
	for _, r := range records {
		if err := b.storage.PutTask(b.ctx(), &lane.PutTaskCommand{Environment: b.env, Record: r}); err != nil {
			b.t.Fatal(err)
		}
	}
}

// tasks reads the whole catalog, so many records at a time.
func (b *bundle) tasks(env runlane.Environment, limit int) []lane.TaskRecord {
	b.t.Helper()
	q := &lane.PageQuery{Environment: env, Limit: limit}
	return collect(b.t, q, func() (*runlane.Page[lane.TaskRecord], error) { return b.storage.ListTasks(b.ctx(), q) })
}

// plainTask is the least that a definition has.
func plainTask(id runlane.TaskID) lane.TaskRecord {
	return lane.TaskRecord{
		ID:             id,
		Queue:          runlane.DefaultQueue,
		IdempotencyTTL: runlane.DefaultIdempotencyTTL,
		MaxAttempts:    1,
		SeenAt:         noon,
	}
}

// fullTask has every field set.
func fullTask(id runlane.TaskID) lane.TaskRecord {
	return lane.TaskRecord{
		ID: id,
		Queue: runlane.Queue{
			Name:            "orders – süd",
			Concurrency:     runlane.MaxQueueConcurrency,
			DispatchTimeout: 90*time.Second + 1,
			Rate:            runlane.Rate{Count: 7, Period: time.Hour + 1},
			Burst:           runlane.MaxQueueBurst,
		},
		IdempotencyTTL: runlane.WhileActive,
		Keys:           runlane.TaskKeys{Concurrency: true, Idempotency: true, Singleton: true},
		MaxAttempts:    7,
		Backoff:        "exponential, \"1s\" to 5m – ±20 %",
		Timeout:        math.MaxInt64,
		ErrorMessages:  true,
		Keep:           runlane.Keep{Succeeded: time.Hour + 1, Failed: runlane.KeepForever, Cancelled: math.MaxInt64},
		KeepLogs:       true,
		Version:        7,
		SeenAt:         noon,
	}
}

func catalogRoundTrip(t *testing.T, b *bundle) {
	equal(t, "tasks at first", nil, b.tasks(b.env, 0))
	fine := fullTask("fine")
	// cut off at the millisecond
	fine.SeenAt = noon.Add(456 * time.Microsecond).In(time.FixedZone("elsewhere", 5*60*60))
	fine.Timeout, fine.IdempotencyTTL = time.Nanosecond, 36*time.Hour+1
	want := []lane.TaskRecord{fine, fullTask("full"), plainTask("plain")}
	for i, keys := range []runlane.TaskKeys{{Concurrency: true}, {Idempotency: true}, {Singleton: true}} {
		one := plainTask(runlane.TaskID("plain " + string(rune('a'+i))))
		one.Keys = keys
		want = append(want, one)
	}
	b.putTask(want...)
	want[0].SeenAt = noon
	equal(t, "tasks", want, b.tasks(b.env, 0))
}

func catalogReplaced(t *testing.T, b *bundle) {
	for _, record := range []lane.TaskRecord{fullTask("task"), plainTask("task"), fullTask("task")} {
		b.putTask(record)
		equal(t, "tasks", []lane.TaskRecord{record}, b.tasks(b.env, 0))
	}
	earlier := plainTask("task")
	earlier.SeenAt = noon.Add(-time.Hour) // a clock that is behind
	b.putTask(earlier, earlier)
	equal(t, "tasks", []lane.TaskRecord{earlier}, b.tasks(b.env, 0))
}

func catalogListed(t *testing.T, b *bundle) {
	var want []lane.TaskRecord
	for _, id := range oddIDs {
		b.putTask(plainTask(runlane.TaskID(id)))
	}
	for _, id := range sorted(oddIDs) { // byte by byte
		want = append(want, plainTask(runlane.TaskID(id)))
	}
	for _, limit := range []int{0, 1, 5, len(oddIDs), runlane.MaxPageLimit} {
		equal(t, "tasks", want, b.tasks(b.env, limit))
	}
	for _, limit := range []int{-1, runlane.MaxPageLimit + 1} {
		_, err := b.storage.ListTasks(b.ctx(), &lane.PageQuery{Environment: b.env, Limit: limit})
		wantError(t, err, runlane.ErrValidationFailed)
	}
	first := must(b.storage.ListTasks(b.ctx(), &lane.PageQuery{Environment: b.env, Limit: 1}))(t)
	for name, q := range map[string]*lane.PageQuery{
		"of another environment": {Environment: b.env + "-elsewhere", After: first.Next},
		"of nothing":             {Environment: b.env, After: "no cursor"},
	} {
		if _, err := b.storage.ListTasks(b.ctx(), q); runlane.CodeOf(err) != runlane.ErrValidationFailed {
			t.Errorf("cursor %s: %v, want %q", name, err, runlane.ErrValidationFailed)
		}
	}
}

// Several programs of one environment store their tasks as each of them ticks.
func catalogTogether(t *testing.T, b *bundle) {
	var want []lane.TaskRecord
	for i := range callers {
		want = append(want, fullTask(runlane.TaskID("task-"+string(rune('A'+i)))))
	}
	_, failed := race(callers, func(i int) (struct{}, error) {
		return struct{}{}, b.storage.PutTask(b.ctx(), &lane.PutTaskCommand{Environment: b.env, Record: want[i]})
	})
	for _, err := range failed {
		t.Error(err)
	}
	equal(t, "tasks", want, b.tasks(b.env, 0))
}

func catalogRace(t *testing.T, b *bundle) {
	versions := []lane.TaskRecord{plainTask("task"), fullTask("task")}
	_, failed := race(callers, func(i int) (struct{}, error) {
		return struct{}{}, b.storage.PutTask(b.ctx(), &lane.PutTaskCommand{Environment: b.env, Record: versions[i%2]})
	})
	for _, err := range failed {
		t.Error(err)
	}
	got := b.tasks(b.env, 0)
	if len(got) != 1 || got[0] != versions[0] && got[0] != versions[1] {
		t.Fatalf("kept is neither of the two definitions: %+v", got)
	}
}

func catalogMalformed(t *testing.T, b *bundle) {
	before := fullTask("task")
	b.putTask(before)
	changed := func(change func(*lane.TaskRecord)) lane.TaskRecord {
		r := plainTask("task")
		change(&r)
		return r
	}
	for name, record := range map[string]lane.TaskRecord{
		"no id":              changed(func(r *lane.TaskRecord) { r.ID = "" }),
		"an id with a colon": changed(func(r *lane.TaskRecord) { r.ID = "a:b" }),
		"no queue":           changed(func(r *lane.TaskRecord) { r.Queue = runlane.Queue{} }),
		"a negative limit":   changed(func(r *lane.TaskRecord) { r.Queue.Concurrency = -1 }),
		"no TTL":             changed(func(r *lane.TaskRecord) { r.IdempotencyTTL = 0 }),
		"a negative TTL":     changed(func(r *lane.TaskRecord) { r.IdempotencyTTL = -time.Hour }),
		"no attempt":         changed(func(r *lane.TaskRecord) { r.MaxAttempts = 0 }),
		"a long backoff": changed(func(r *lane.TaskRecord) {
			r.Backoff = strings.Repeat("x", lane.MaxBackoffText+1)
		}),
		"a backoff of no text": changed(func(r *lane.TaskRecord) { r.Backoff = "\xff" }),
		"a negative timeout":   changed(func(r *lane.TaskRecord) { r.Timeout = -1 }),
		"never seen":           changed(func(r *lane.TaskRecord) { r.SeenAt = time.Time{} }),
	} {
		err := b.storage.PutTask(b.ctx(), &lane.PutTaskCommand{Environment: b.env, Record: record})
		if runlane.CodeOf(err) != runlane.ErrContractViolation {
			t.Errorf("%s: %v, want %q", name, err, runlane.ErrContractViolation)
		}
	}
	equal(t, "tasks", []lane.TaskRecord{before}, b.tasks(b.env, 0))
}

func catalogApart(t *testing.T, b *bundle) {
	b.putTask(fullTask("task"))
	elsewhere := b.env + "-elsewhere"
	equal(t, "tasks elsewhere", nil, b.tasks(elsewhere, 0))
	if err := b.storage.PutTask(b.ctx(), &lane.PutTaskCommand{
		Environment: elsewhere,
		Record:      plainTask("task"),
	}); err != nil {
		t.Fatal(err)
	}
	equal(t, "tasks elsewhere", []lane.TaskRecord{plainTask("task")}, b.tasks(elsewhere, 0))
	equal(t, "tasks here", []lane.TaskRecord{fullTask("task")}, b.tasks(b.env, 0))
}

func catalogCopies(t *testing.T, b *bundle) {
	put := &lane.PutTaskCommand{Environment: b.env, Record: fullTask("task")}
	kept := *put
	if err := b.storage.PutTask(b.ctx(), put); err != nil {
		t.Fatal(err)
	}
	equal(t, "PutTask changed its command", kept, *put)
	put.Record.Queue.Name, put.Record.Backoff = "scribbled", "scribbled"
	must(b.storage.ListTasks(b.ctx(), &lane.PageQuery{Environment: b.env}))(t).Items[0].Queue.Name = "scribbled"
	equal(t, "tasks", []lane.TaskRecord{fullTask("task")}, b.tasks(b.env, 0))
}

func catalogEndedContext(t *testing.T, b *bundle) {
	ctx, cancel := context.WithCancel(b.ctx())
	cancel()
	wantError(
		t,
		b.storage.PutTask(ctx, &lane.PutTaskCommand{Environment: b.env, Record: plainTask("task")}),
		runlane.ErrOperationCancelled,
	)
	_, err := b.storage.ListTasks(ctx, &lane.PageQuery{Environment: b.env})
	wantError(t, err, runlane.ErrOperationCancelled)
	equal(t, "tasks", nil, b.tasks(b.env, 0))
}
