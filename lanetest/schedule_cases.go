package lanetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Schedules.
func scheduleCases() []storageCase {
	return append([]storageCase{
		{"RecordsComeBackAsTheyWerePut", needsRecords, recordRoundTrip},
		{"PutIsConditionalOnTheVersion", needsRecords, recordVersioned},
		{"PutRaceHasOneWinner", needsRecords, recordRace},
		{"PutNeverMovesTheLastFireBack", needsRecords, recordLastFire},
		{"AnUnknownScheduleIsNotFound", needsRecords, scheduleUnknown},
		{"MalformedRecordsAreContractViolationsAndWriteNothing", needsRecords, recordMalformed},
		{"AnyValidIDNamesASchedule", needsRecords, scheduleIDs},
		{"RecordsAreListedByID", needsRecords, recordsListed},
		{"EnvironmentsHaveSchedulesOfTheirOwn", needsOccurrences, schedulesApart},
		{"ChangingACommandOrAResultChangesNothing", needsOccurrences, scheduleCopies},
		{"AnEndedContextIsOperationCancelledAndWritesNothing", needsOccurrences, scheduleEndedContext},
	}, occurrenceCases()...)
}

func needsRecords(c lane.StorageCapabilities) bool { return c.KeepsSchedules }

func needsOccurrences(c lane.StorageCapabilities) bool {
	return c.KeepsSchedules && c.ClaimsScheduleOccurrences
}

func (b *bundle) scheduleKey(id runlane.ScheduleID) lane.ScheduleKey {
	return lane.ScheduleKey{Environment: b.env, ScheduleID: id}
}

func (b *bundle) tryPut(r runlane.ScheduleRecord) (*runlane.ScheduleRecord, error) {
	return b.storage.PutSchedule(b.ctx(), &lane.PutScheduleCommand{Environment: b.env, Record: r})
}

// schedule puts a record, which must succeed.
func (b *bundle) schedule(r runlane.ScheduleRecord) runlane.ScheduleRecord {
	b.t.Helper()
	return *must(b.tryPut(r))(b.t)
}

// registered is a new schedule that has never fired.
func (b *bundle) registered(id runlane.ScheduleID) runlane.ScheduleRecord {
	b.t.Helper()
	return b.schedule(runlane.ScheduleRecord{ID: id, DefinitionHash: "hash", RegisteredAt: noon})
}

// record reads a schedule that must exist.
func (b *bundle) record(id runlane.ScheduleID) runlane.ScheduleRecord {
	b.t.Helper()
	return *must(b.storage.GetSchedule(b.ctx(), b.scheduleKey(id)))(b.t)
}

func recordRoundTrip(t *testing.T, b *bundle) {
	elsewhere := time.FixedZone("elsewhere", 5*60*60)
	fine := 456 * time.Microsecond // cut off at the millisecond
	put := runlane.ScheduleRecord{
		ID:             "nightly",
		DefinitionHash: strings.Repeat("0af", 21),
		RegisteredAt:   noon.Add(fine).In(elsewhere),
		LastEvaluated:  noon.Add(3*time.Hour + fine).In(elsewhere),
		LastFire:       noon.Add(2*time.Hour + fine).In(elsewhere),
		LastRunID:      "run_last",
		PendingFire:    noon.Add(time.Hour + fine).In(elsewhere),
		Paused:         true,
		PauseReason:    "the \"partner\" is down\n – until Monday",
		ManualRunIDs:   []runlane.RunID{"run_by_hand", "run_once_more"},
	}
	want := put
	want.RegisteredAt, want.LastEvaluated = noon, noon.Add(3*time.Hour)
	want.LastFire, want.PendingFire, want.Version = noon.Add(2*time.Hour), noon.Add(time.Hour), 1
	equal(t, "record returned", want, b.schedule(put))
	equal(t, "record read", want, b.record("nightly"))

	// What is left out is gone.
	bare := runlane.ScheduleRecord{ID: "nightly", RegisteredAt: noon, LastFire: want.LastFire, Version: 1}
	want = bare
	want.Version = 2
	equal(t, "record returned, resumed", want, b.schedule(bare))
	equal(t, "record read, resumed", want, b.record("nightly"))

	fresh := b.registered("fresh")
	equal(
		t,
		"a record that never fired",
		runlane.ScheduleRecord{ID: "fresh", DefinitionHash: "hash", RegisteredAt: noon, Version: 1},
		fresh,
	)
	if got := b.record("fresh"); !got.LastFire.IsZero() || !got.LastEvaluated.IsZero() || !got.PendingFire.IsZero() {
		t.Fatalf("times that were never set are %v", got)
	}
}

func recordVersioned(t *testing.T, b *bundle) {
	put := func(version int64, reason string) error {
		_, err := b.tryPut(runlane.ScheduleRecord{
			ID:           "nightly",
			RegisteredAt: noon,
			Paused:       true,
			PauseReason:  reason,
			Version:      version,
		})
		return err
	}
	wantConflict(t, put(1, "of a record that is not there"), runlane.ConflictScheduleOccurrence, "")
	_, err := b.storage.GetSchedule(b.ctx(), b.scheduleKey("nightly"))
	wantError(t, err, runlane.ErrScheduleNotFound)
	for version := range int64(3) {
		if err := put(version, fmt.Sprint("change ", version)); err != nil {
			t.Fatalf("put at version %d: %v", version, err)
		}
		for _, wrong := range []int64{0, version, version + 2} {
			wantConflict(t, put(wrong, "stale"), runlane.ConflictScheduleOccurrence, "")
		}
		got := b.record("nightly")
		equal(t, "version", version+1, got.Version)
		equal(t, "reason", fmt.Sprint("change ", version), got.PauseReason)
	}
}

func recordRace(t *testing.T, b *bundle) {
	for version := range int64(2) { // of a creation, then of a change
		won, lost := race(callers, func(i int) (*runlane.ScheduleRecord, error) {
			return b.tryPut(runlane.ScheduleRecord{
				ID:           "nightly",
				RegisteredAt: noon,
				PauseReason:  fmt.Sprint("by ", i),
				Version:      version,
			})
		})
		for _, err := range lost {
			wantConflict(t, err, runlane.ConflictScheduleOccurrence, "")
		}
		if len(won) != 1 {
			t.Fatalf("%d callers changed version %d", len(won), version)
		}
		equal(t, "record after the race", *won[0], b.record("nightly"))
	}
}

func recordLastFire(t *testing.T, b *bundle) {
	fired := b.schedule(runlane.ScheduleRecord{ID: "nightly", RegisteredAt: noon, LastFire: noon, LastRunID: "run_1"})
	for _, back := range []time.Time{noon.Add(-time.Millisecond), {}} {
		moved := fired
		moved.LastFire = back
		_, err := b.tryPut(moved)
		wantError(t, err, runlane.ErrContractViolation)
	}
	equal(t, "record after refused puts", fired, b.record("nightly"))
	fired.Paused = true
	fired = b.schedule(fired) // as it was
	fired.LastFire = noon.Add(time.Millisecond)
	b.schedule(fired)
}

func scheduleUnknown(t *testing.T, b *bundle) {
	_, err := b.storage.GetSchedule(b.ctx(), b.scheduleKey("unknown"))
	wantError(t, err, runlane.ErrScheduleNotFound)
	if b.h.Capabilities.ClaimsScheduleOccurrences {
		_, err = b.storage.ClaimScheduleOccurrence(b.ctx(), b.claimOf("unknown", noon, noon))
		wantError(t, err, runlane.ErrScheduleNotFound)
		wantError(t, b.complete("unknown", noon, "a token", "run_1"), runlane.ErrScheduleNotFound)
		if got := b.occurrences("unknown", false); len(got) != 0 {
			t.Fatalf("occurrences of an unknown schedule: %v", got)
		}
	}
}

func recordMalformed(t *testing.T, b *bundle) {
	before := b.registered("nightly")
	for name, record := range map[string]runlane.ScheduleRecord{
		"no id":               {RegisteredAt: noon},
		"an id with a colon":  {ID: "a:b", RegisteredAt: noon},
		"an id too long":      {ID: runlane.ScheduleID(strings.Repeat("x", runlane.MaxIDBytes+1)), RegisteredAt: noon},
		"a negative version":  {ID: "nightly", RegisteredAt: noon, Version: -1},
		"an unprintable name": {ID: "a\nb", RegisteredAt: noon},
	} {
		if _, err := b.tryPut(record); runlane.CodeOf(err) != runlane.ErrContractViolation {
			t.Errorf("%s: %v, want %q", name, err, runlane.ErrContractViolation)
		}
	}
	equal(t, "schedules", []runlane.ScheduleRecord{before}, b.schedules(&lane.PageQuery{Environment: b.env}))
	_, err := b.storage.GetSchedule(b.ctx(), b.scheduleKey("a:b"))
	wantError(t, err, runlane.ErrValidationFailed)
}

// oddIDs are valid, and close to each other.
var oddIDs = []runlane.ScheduleID{
	"a",
	"a b",
	"a  b",
	"ab",
	"a#b",
	"a/b",
	"a%3Ab",
	"a|b",
	`a"b\`,
	"A",
	"0",
	"Ä-日本-🕰",
	"schedule",
	"sched",
	"~",
	"!",
	runlane.ScheduleID(strings.Repeat("x", runlane.MaxIDBytes)),
	runlane.ScheduleID(strings.Repeat("x", runlane.MaxIDBytes-1)),
}

func scheduleIDs(t *testing.T, b *bundle) {
	want := map[runlane.ScheduleID]runlane.ScheduleRecord{}
	for i, id := range oddIDs {
		want[id] = b.schedule(runlane.ScheduleRecord{ID: id, RegisteredAt: noon, PauseReason: fmt.Sprint("of ", i)})
	}
	for i, id := range oddIDs {
		equal(t, "record of "+string(id), want[id], b.record(id))
		if b.h.Capabilities.ClaimsScheduleOccurrences {
			fire := noon.Add(time.Minute)
			run := runlane.RunID(fmt.Sprint("run_", i))
			b.completed(id, fire, run)
			b.wantOccurrences(id, []runlane.Occurrence{{ScheduleID: id, FireTime: fire, RunID: run}})
		}
	}
}

// schedules reads the list to its end.
func (b *bundle) schedules(q *lane.PageQuery) []runlane.ScheduleRecord {
	b.t.Helper()
	return collect(b.t, q, func() (*runlane.Page[runlane.ScheduleRecord], error) {
		return b.storage.ListSchedules(b.ctx(), q)
	})
}

func recordsListed(t *testing.T, b *bundle) {
	var want []runlane.ScheduleRecord
	byID := map[runlane.ScheduleID]runlane.ScheduleRecord{}
	for i, id := range oddIDs {
		byID[id] = b.schedule(runlane.ScheduleRecord{
			ID:           id,
			RegisteredAt: noon.Add(time.Duration(i) * time.Minute),
			Paused:       i%2 == 0,
		})
	}
	for _, id := range sorted(oddIDs) { // byte by byte
		want = append(want, byID[id])
	}
	for _, limit := range []int{0, 1, 5, len(oddIDs), runlane.MaxPageLimit} {
		b.eventually(func() string {
			return difference(want, b.schedules(&lane.PageQuery{Environment: b.env, Limit: limit}))
		})
	}
	for _, limit := range []int{-1, runlane.MaxPageLimit + 1} {
		_, err := b.storage.ListSchedules(b.ctx(), &lane.PageQuery{Environment: b.env, Limit: limit})
		wantError(t, err, runlane.ErrValidationFailed)
	}
	first := must(b.storage.ListSchedules(b.ctx(), &lane.PageQuery{Environment: b.env, Limit: 1}))(t)
	for name, q := range map[string]*lane.PageQuery{
		"of another environment": {Environment: b.env + "-elsewhere", After: first.Next},
		"of nothing":             {Environment: b.env, After: "no cursor"},
	} {
		if _, err := b.storage.ListSchedules(b.ctx(), q); runlane.CodeOf(err) != runlane.ErrValidationFailed {
			t.Errorf("cursor %s: %v, want %q", name, err, runlane.ErrValidationFailed)
		}
	}
}

func schedulesApart(t *testing.T, b *bundle) {
	b.registered("nightly")
	b.completed("nightly", noon.Add(time.Minute), "run_here")
	here := b.record("nightly")
	elsewhere := lane.ScheduleKey{Environment: b.env + "-elsewhere", ScheduleID: "nightly"}
	_, err := b.storage.GetSchedule(b.ctx(), elsewhere)
	wantError(t, err, runlane.ErrScheduleNotFound)
	claim := b.claimOf("nightly", noon.Add(time.Minute), noon.Add(time.Minute))
	claim.ScheduleKey = elsewhere
	_, err = b.storage.ClaimScheduleOccurrence(b.ctx(), claim)
	wantError(t, err, runlane.ErrScheduleNotFound)

	there := must(b.storage.PutSchedule(b.ctx(), &lane.PutScheduleCommand{
		Environment: elsewhere.Environment,
		Record:      runlane.ScheduleRecord{ID: "nightly", RegisteredAt: noon.Add(time.Second)},
	}))(t)
	equal(t, "record here", here, b.record("nightly"))
	equal(
		t,
		"schedules there",
		[]runlane.ScheduleRecord{*there},
		b.schedules(&lane.PageQuery{Environment: elsewhere.Environment}),
	)
	occurrences := &lane.OccurrenceQuery{
		PageQuery:  lane.PageQuery{Environment: elsewhere.Environment},
		ScheduleID: "nightly",
	}
	if page := must(b.storage.ListScheduleOccurrences(b.ctx(), occurrences))(t); len(page.Items) != 0 {
		t.Fatalf("occurrences there: %v", page.Items)
	}
	// The same occurrence, there: neither the last fire nor the claim here are in its way, and a token of here is worth
	// nothing.
	got := must(b.storage.ClaimScheduleOccurrence(b.ctx(), claim))(t)
	equal(t, "outcome there", lane.Acquired, got.Outcome)
	second := b.claimed("nightly", noon.Add(2*time.Minute))
	completion := b.completion("nightly", noon.Add(time.Minute), second, "run_there")
	completion.ScheduleKey = elsewhere
	wantConflict(t, b.storage.CompleteScheduleOccurrence(b.ctx(), completion), runlane.ConflictScheduleOccurrence, "")
	equal(t, "record here, afterwards", here, b.record("nightly"))
}

func scheduleCopies(t *testing.T, b *bundle) {
	put := &lane.PutScheduleCommand{
		Environment: b.env,
		Record:      runlane.ScheduleRecord{ID: "nightly", RegisteredAt: noon},
	}
	kept := *put
	returned := must(b.storage.PutSchedule(b.ctx(), put))(t)
	equal(t, "PutSchedule changed its command", kept, *put)
	want := *returned
	scribble := func(r *runlane.ScheduleRecord) {
		r.PauseReason, r.LastFire, r.Version = "scribbled", noon.Add(time.Hour), 99
	}
	scribble(&put.Record)
	scribble(returned)
	equal(t, "stored, after the put's command and result were changed", want, b.record("nightly"))
	scribble(must(b.storage.GetSchedule(b.ctx(), b.scheduleKey("nightly")))(t))
	scribble(&must(b.storage.ListSchedules(b.ctx(), &lane.PageQuery{Environment: b.env}))(t).Items[0])
	equal(t, "stored, after results of reads were changed", want, b.record("nightly"))

	fire := noon.Add(time.Minute)
	completion := b.completion("nightly", fire, b.claimed("nightly", fire), "run_1")
	if err := b.storage.CompleteScheduleOccurrence(b.ctx(), completion); err != nil {
		t.Fatal(err)
	}
	equal(t, "CompleteScheduleOccurrence changed its command", []runlane.RunID{"run_1"}, completion.RunIDs)
	completion.RunIDs[0] = "scribbled"
	q := &lane.OccurrenceQuery{PageQuery: lane.PageQuery{Environment: b.env}, ScheduleID: "nightly"}
	must(b.storage.ListScheduleOccurrences(b.ctx(), q))(t).Items[0].RunID = "scribbled"
	b.wantOccurrences("nightly", []runlane.Occurrence{{ScheduleID: "nightly", FireTime: fire, RunID: "run_1"}})
	equal(t, "last run", runlane.RunID("run_1"), b.record("nightly").LastRunID)
	completion.RunIDs[0] = "run_1"
	if err := b.storage.CompleteScheduleOccurrence(b.ctx(), completion); err != nil {
		t.Fatalf("the same completion again: %v", err)
	}
}

func scheduleEndedContext(t *testing.T, b *bundle) {
	before := b.registered("nightly")
	fire := noon.Add(time.Minute)
	token := b.claimed("nightly", fire)
	ctx, cancel := context.WithCancel(b.ctx())
	cancel()
	first := func(_ any, err error) error { return err }
	page := lane.PageQuery{Environment: b.env}
	later := b.claimOf("nightly", fire.Add(time.Minute), fire)
	for name, err := range map[string]error{
		"put": first(b.storage.PutSchedule(ctx, &lane.PutScheduleCommand{
			Environment: b.env,
			Record:      before,
		})),
		"get":      first(b.storage.GetSchedule(ctx, b.scheduleKey("nightly"))),
		"list":     first(b.storage.ListSchedules(ctx, &page)),
		"claim":    first(b.storage.ClaimScheduleOccurrence(ctx, later)),
		"complete": b.storage.CompleteScheduleOccurrence(ctx, b.completion("nightly", fire, token, "run_1")),
		"list occurrences": first(b.storage.ListScheduleOccurrences(ctx, &lane.OccurrenceQuery{
			PageQuery:  page,
			ScheduleID: "nightly",
		})),
	} {
		if runlane.CodeOf(err) != runlane.ErrOperationCancelled {
			t.Errorf("%s: %v, want %q", name, err, runlane.ErrOperationCancelled)
		}
	}
	equal(t, "record after refused commands", before, b.record("nightly"))
	equal(
		t,
		"claim after a refused one",
		lane.Acquired,
		must(b.storage.ClaimScheduleOccurrence(b.ctx(), later))(t).Outcome,
	)
}
