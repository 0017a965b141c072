package dynamostore

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
)

// Another process comes between what a completion read and what it writes.
func TestCompletion_Interleaved(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		between  func(w *world, fire time.Time)
		conflict bool
		check    func(w *world, r *runlane.ScheduleRecord, fire time.Time)
	}{
		"with a takeover: it is refused and nothing moves": {
			func(w *world, fire time.Time) {
				if w.pass(time.Hour).occurrence(fire) == "" {
					w.Error("not taken over")
				}
			}, true,
			func(w *world, r *runlane.ScheduleRecord, _ time.Time) {
				if !r.LastFire.IsZero() || r.Version != 1 {
					w.Errorf("%+v", r)
				}
			},
		},
		"with a pause: both are kept": {
			func(w *world, _ time.Time) {
				r := w.record()
				r.Paused, r.PauseReason = true, "a while"
				w.put(*r)
			}, false,
			func(w *world, r *runlane.ScheduleRecord, fire time.Time) {
				if !r.LastFire.Equal(fire) || r.LastRunID != "run_1" || !r.Paused || r.PauseReason != "a while" || r.Version != 3 {
					w.Errorf("%+v", r)
				}
			},
		},
		"with a later completion: the later fire stays the last": {
			func(w *world, fire time.Time) {
				later := fire.Add(time.Minute)
				if err := w.completeOccurrence(later, w.occurrence(later), "run_2"); err != nil {
					w.Error(err)
				}
			}, false,
			func(w *world, r *runlane.ScheduleRecord, fire time.Time) {
				if !r.LastFire.Equal(fire.Add(time.Minute)) || r.LastRunID != "run_2" || r.Version != 2 {
					w.Errorf("%+v", r)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).registered()
			fire := w.now
			token := w.occurrence(fire)
			other := w.another()
			w.store.db.Client = interrupted(w.store.db.Client, func() { row.between(other, fire) })
			err := w.completeOccurrence(fire, token, "run_1")
			if refused := errors.Is(err, runlane.ConflictScheduleOccurrence); refused != row.conflict || !refused && err != nil {
				t.Errorf("conflict %t: %v", refused, err)
			}
			row.check(w, w.record(), fire)
			occurrence, err := rows.UnmarshalOccurrence(w.raw(rows.OccurrencePK(nightly), rows.OccurrenceSK(rows.ToMillis(fire))))
			if err != nil || occurrence.Completed() == row.conflict || !row.conflict && !slices.Equal(occurrence.Runs, []runlane.RunID{"run_1"}) {
				t.Errorf("%+v %v", occurrence, err)
			}
		})
	}
}

// A completion that has nothing to move is a plain write, and gives way all the same.
func TestCompletion_OfAnOvertakenOccurrence_Interleaved(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		between func(other *world, fire time.Time, token string)
		runs    []runlane.RunID
	}{
		"with a takeover by a process that read the record before": {func(other *world, fire time.Time, _ string) {
			key := item.Key(rows.OccurrencePK(nightly), rows.OccurrenceSK(rows.ToMillis(fire)))
			if _, ok, err := other.store.db.Update(other.Context(), "test", &item.Update{
				Key: key, Expression: "SET #ct = :ct", Condition: item.Condition{Text: "attribute_exists(#pk)"}, Values: item.Item{":ct": item.Text("theirs")},
			}); !ok {
				other.Error(err)
			}
		}, nil},
		"with another result under the same token": {func(other *world, fire time.Time, token string) {
			if err := other.completeOccurrence(fire, token, "run_other"); err != nil {
				other.Error(err)
			}
		}, []runlane.RunID{"run_other"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).registered()
			fire, later := w.now, w.now.Add(time.Minute)
			token, other := w.occurrence(fire), w.another()
			if err := w.completeOccurrence(later, w.occurrence(later), "run_later"); err != nil {
				t.Fatal(err)
			}
			w.store.db.Client = interrupted(w.store.db.Client, func() { row.between(other, fire, token) })
			if err := w.completeOccurrence(fire, token, "run_1"); !errors.Is(err, runlane.ConflictScheduleOccurrence) {
				t.Errorf("%v", err)
			}
			occurrence, err := rows.UnmarshalOccurrence(w.raw(rows.OccurrencePK(nightly), rows.OccurrenceSK(rows.ToMillis(fire))))
			if err != nil || !slices.Equal(occurrence.Runs, row.runs) || w.record().LastRunID != "run_later" {
				t.Errorf("%+v %v", occurrence, err)
			}
		})
	}
}

// Two callers read a record and write: the one who claims an occurrence that was completed in between gets nothing.
func TestOccurrenceClaim_MeetsACompletion(t *testing.T) {
	w := newWorld(t).registered()
	fire := w.now
	other := w.another()
	w.store.db.Client = interrupted(w.store.db.Client, func() {
		if err := other.completeOccurrence(fire, other.occurrence(fire), "run_1"); err != nil {
			t.Error(err)
		}
	})
	if w.pass(time.Hour).occurrence(fire) != "" {
		t.Error("a completed occurrence was claimed")
	}
}

// Answers that are lost, and requests that meet other transactions, change nothing about what callers are told.
func TestSchedule_LostAnswersAndConflicts(t *testing.T) {
	t.Parallel()
	conflict := &types.TransactionConflictException{}
	met := func(item, other string) answer { return answer{false, cancelled(item, other)} }
	for name, answers := range map[string][]answer{
		"sound":                      nil,
		"put lost":                   {{true, errLostAnswer}, {true, nil}, {true, nil}, {true, nil}},
		"put not carried out":        {{false, errServer}},
		"put conflicts":              {{false, conflict}},
		"claim lost twice":           {{true, nil}, {true, errLostAnswer}, {true, errServer}},
		"claim conflicts":            {{true, nil}, {false, conflict}},
		"completion lost":            {{true, nil}, {true, nil}, {true, errLostAnswer}},
		"completion lost for good":   {{true, nil}, {true, nil}, {true, errLostAnswer}, {true, errServer}, {true, errLostAnswer}, {true, errLostAnswer}},
		"completion conflicts":       {{true, nil}, {true, nil}, met("TransactionConflict", "None"), met("None", "TransactionConflict")},
		"completion throttled":       {{true, nil}, {true, nil}, met("ThrottlingError", "None")},
		"completion beside conflict": {{true, nil}, {true, nil}, met("ConditionalCheckFailed", "TransactionConflict")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.store.db.Client = answering(w.store.db.Client, answers...)
			if w.registered(); w.record().Version != 1 {
				t.Errorf("version %d", w.record().Version)
			}
			fire := w.now
			token := w.occurrence(fire)
			if token == "" {
				t.Fatal("our own claim counts as another's")
			}
			if err := w.completeOccurrence(fire, token, "run_1"); err != nil {
				t.Fatal(err)
			}
			if r := w.record(); !r.LastFire.Equal(fire) || r.LastRunID != "run_1" || r.Version != 2 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// The answer to a completion is lost, its request token is forgotten, and the repetition fails on its conditions: the occurrence
// tells that the commit was ours, although the record has moved on since.
func TestCompletion_OwnEarlierCommit_IsSuccess(t *testing.T) {
	w := newWorld(t).registered()
	fire := w.now
	token := w.occurrence(fire)
	other := w.another()
	sent := 0
	w.store.db.Client = writing(w.store.db.Client, func(in any) answer {
		if sent++; sent == 1 {
			return answer{true, errLostAnswer}
		}
		r := other.record()
		r.Paused = true
		other.put(*r)
		in.(*dynamodb.TransactWriteItemsInput).ClientRequestToken = nil
		return answer{commit: true}
	})
	if err := w.completeOccurrence(fire, token, "run_1"); err != nil {
		t.Fatal(err)
	}
	if r := other.record(); sent != 2 || !r.LastFire.Equal(fire) || !r.Paused || r.Version != 3 {
		t.Errorf("sent %d times, record %+v", sent, r)
	}
}
