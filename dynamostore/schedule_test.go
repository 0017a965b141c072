package dynamostore

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

var nightly = lane.ScheduleKey{Environment: "test", ScheduleID: "nightly"}

func (w *world) put(r runlane.ScheduleRecord) *runlane.ScheduleRecord {
	w.Helper()
	record, err := w.store.PutSchedule(w.step(), &lane.PutScheduleCommand{Environment: "test", Record: r})
	if err != nil {
		w.Fatal(err)
	}
	return record
}

// registered is a world whose schedule has never fired.
func (w *world) registered() *world {
	w.Helper()
	w.put(runlane.ScheduleRecord{ID: nightly.ScheduleID, DefinitionHash: "hash", RegisteredAt: w.now})
	return w
}

func (w *world) record() *runlane.ScheduleRecord {
	w.Helper()
	record, err := w.store.GetSchedule(w.Context(), nightly)
	if err != nil {
		w.Fatal(err)
	}
	return record
}

// occurrence claims a fire time now; the token is "" when it was lost.
func (w *world) occurrence(fire time.Time) (token string) {
	w.Helper()
	claim, err := w.store.ClaimScheduleOccurrence(w.step(), &lane.ClaimOccurrenceCommand{
		ScheduleKey: nightly, OccurrenceID: "occ_1", FireTime: fire, At: w.now, ClaimUntil: w.now.Add(30 * time.Second),
	})
	if err != nil {
		w.Fatal(err)
	}
	return claim.Token
}

func (w *world) completeOccurrence(fire time.Time, token string, run runlane.RunID) error {
	return w.store.CompleteScheduleOccurrence(w.step(), &lane.CompleteOccurrenceCommand{
		ScheduleKey: nightly, OccurrenceID: "occ_1", FireTime: fire, Token: token, RunIDs: []runlane.RunID{run},
	})
}

func (w *world) raw(pk, sk string) item.Item {
	w.Helper()
	raw, err := w.store.db.Get(w.Context(), "test", pk, sk)
	if err != nil {
		w.Fatal(err)
	}
	return raw
}

// docs/internals/layout.md, Budget: a scheduled run costs 5 units above a simple one, one for the claim and four for completing it and moving
// the last fire in one transaction.
func TestSchedule_Budget(t *testing.T) {
	w := newWorld(t)
	used := func(what string, want Usage) {
		t.Helper()
		if got := w.meter.Stats(); got.Usage != want {
			t.Errorf("%s used %+v, want %+v: %v", what, got.Usage, want, got.Operations)
		}
	}
	w.registered()
	used("registration", Usage{Requests: 1, WriteUnits: 1})
	early, late := w.now.Add(time.Minute), w.now.Add(2*time.Minute)
	overtaken := w.occurrence(early)
	used("claim", Usage{Requests: 2, WriteUnits: 1, ReadUnits: 1})
	if w.occurrence(early) != "" {
		t.Error("claimed twice")
	}
	used("lost claim", Usage{Requests: 2, WriteUnits: 1, ReadUnits: 1})
	if err := w.completeOccurrence(late, w.occurrence(late), "run_2"); err != nil {
		t.Fatal(err)
	}
	used("completion and last fire", Usage{Requests: 2, WriteUnits: 4, ReadUnits: 2})
	if err := w.completeOccurrence(early, overtaken, "run_1"); err != nil {
		t.Fatal(err)
	}
	used("completion that moves nothing", Usage{Requests: 2, WriteUnits: 1, ReadUnits: 2})
	if err := w.completeOccurrence(early, overtaken, "run_1"); err != nil {
		t.Fatal(err)
	}
	used("completion repeated", Usage{Requests: 1, ReadUnits: 2})
	if w.occurrence(early) != "" {
		t.Error("claimed at the last fire")
	}
	used("claim not after the last fire", Usage{Requests: 1, ReadUnits: 1})
	record := w.record()
	record.Paused = true
	w.put(*record)
	used("pause", Usage{Requests: 1, WriteUnits: 1})
}

// A schedule that fires once, or once a year, outlives its occurrence: what TTL removed does not fire again. (Once after 40 days,
// with the last fire's instant still the latest that is due.)
func TestHazard16_ExpiredOccurrence_IsNotClaimedAgain(t *testing.T) {
	w := newWorld(t).registered()
	fire := w.now
	if err := w.completeOccurrence(fire, w.occurrence(fire), "run_1"); err != nil {
		t.Fatal(err)
	}
	list := func() []runlane.Occurrence {
		page, err := w.store.ListScheduleOccurrences(t.Context(), &lane.OccurrenceQuery{
			PageQuery: lane.PageQuery{Environment: "test"}, ScheduleID: nightly.ScheduleID,
		})
		if err != nil {
			t.Fatal(err)
		}
		return page.Items
	}
	w.pass(40 * 24 * time.Hour) // the claim's 30 s are still missing
	if got := list(); len(got) != 1 {
		t.Errorf("within its time: %v", got)
	}
	w.pass(30 * time.Second)
	if got := list(); len(got) != 0 {
		t.Errorf("expired, and not removed yet: %v", got)
	}
	if w.occurrence(fire) != "" {
		t.Error("expired, and not removed yet: claimed again")
	}
	_, err := w.store.db.Client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: &w.store.db.Name, Key: item.Key(rows.OccurrencePK(nightly), rows.OccurrenceSK(rows.ToMillis(fire))),
	})
	if err != nil {
		t.Fatal(err)
	}
	if w.occurrence(fire) != "" {
		t.Error("removed: claimed again")
	}
}

// Completing and moving the last fire is one commit: a completion that was carried out has moved the last fire, and one that was
// refused has moved nothing.
func TestHazard16_CompletionAndLastFire_AreOneCommit(t *testing.T) {
	w := newWorld(t).registered()
	fire := w.now
	token := w.occurrence(fire)
	sound := w.store.db.Client
	w.store.db.Client = answering(sound, slices.Repeat([]answer{{false, errLostAnswer}}, ddb.MaxUnknownTries)...)
	err := w.completeOccurrence(fire, token, "run_1")
	if e, ok := errors.AsType[*runlane.Error](err); !ok || e.Code != runlane.ErrStorageUnavailable || e.Meta["outcome"] != "unknown" {
		t.Fatalf("%v", err)
	}
	w.store.db.Client = sound
	if r := w.record(); !r.LastFire.IsZero() || r.Version != 1 {
		t.Errorf("nothing was carried out, and the record is %+v", r)
	}
	if err := w.completeOccurrence(fire, token, "run_1"); err != nil {
		t.Fatal(err)
	}
	if r := w.record(); !r.LastFire.Equal(fire) || r.LastRunID != "run_1" || r.Version != 2 {
		t.Errorf("after the completion the record is %+v", r)
	}
}

// What a newer version keeps on a record stays through puts and completions.
func TestSchedule_UnknownAttributesStay(t *testing.T) {
	w := newWorld(t).registered()
	_, err := w.store.db.Client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &w.store.db.Name, Key: item.Key("test:schedule", "nightly"), UpdateExpression: aws.String("SET zz = :zz"),
		ExpressionAttributeValues: item.Item{":zz": item.Text("newer")},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := w.record()
	r.Paused = true
	w.put(*r)
	if err := w.completeOccurrence(w.now, w.occurrence(w.now), "run_1"); err != nil {
		t.Fatal(err)
	}
	if raw := w.raw("test:schedule", "nightly"); item.TextOf(raw["zz"]) != "newer" || item.Number(raw["sq"]) != 3 {
		t.Errorf("%v", raw)
	}
}

// Claims that were never completed are passed over, 1,000 a page at most, and starve nothing behind them.
func TestListScheduleOccurrences_ManyClaims_BoundsThePage(t *testing.T) {
	w := newWorld(t).registered()
	fire := w.now
	if err := w.completeOccurrence(fire, w.occurrence(fire), "run_1"); err != nil {
		t.Fatal(err)
	}
	client := w.store.db.Client.(*dynamodb.Client)
	var writes []types.WriteRequest
	for i := range maxListRows + 5 {
		raw, err := rows.Marshal(rows.Occurrence{
			PK: rows.OccurrencePK(nightly), SK: rows.OccurrenceSK(rows.ToMillis(fire) + rows.Millis(i) + 1), Status: rows.OccurrenceClaimed, Token: "x",
			ClaimUntil: rows.ToMillis(fire), Expires: w.now.Add(time.Hour).Unix(),
		})
		if err != nil {
			t.Fatal(err)
		}
		writes = append(writes, types.WriteRequest{PutRequest: &types.PutRequest{Item: raw}})
	}
	for batch := range slices.Chunk(writes, 25) {
		out, err := client.BatchWriteItem(t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{w.store.db.Name: batch}})
		if err != nil || len(out.UnprocessedItems) != 0 {
			t.Fatal(out, err)
		}
	}
	q := &lane.OccurrenceQuery{PageQuery: lane.PageQuery{Environment: "test"}, ScheduleID: nightly.ScheduleID}
	page, err := w.store.ListScheduleOccurrences(t.Context(), q)
	if err != nil || len(page.Items) != 0 || page.Next == "" {
		t.Fatalf("%+v %v", page, err)
	}
	q.After = page.Next
	page, err = w.store.ListScheduleOccurrences(t.Context(), q)
	if err != nil || len(page.Items) != 1 || page.Next != "" || !page.Items[0].FireTime.Equal(fire) {
		t.Fatalf("%+v %v", page, err)
	}
}
