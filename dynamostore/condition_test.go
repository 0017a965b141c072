package dynamostore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// Conditions that stand beside others: each test makes the state in which only this one holds. docs/internals/layout.md, Commit.

// elsewhere is a second process on the same table.
func (w *world) elsewhere() *Store {
	return New(w.store.db.Client, w.store.db.Name, &Options{Now: func() time.Time { return w.now }})
}

// rewrite changes an item behind the store's back.
func (w *world) rewrite(key item.Item, expression string, values item.Item) {
	w.Helper()
	_, err := w.store.db.Client.UpdateItem(w.Context(), &dynamodb.UpdateItemInput{
		TableName: &w.store.db.Name, Key: key, UpdateExpression: &expression, ExpressionAttributeNames: item.Names(expression),
		ExpressionAttributeValues: values,
	})
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) standing(pk, sk string) item.Item {
	w.Helper()
	raw, err := w.store.db.Get(w.Context(), "read", pk, sk)
	if err != nil {
		w.Fatal(err)
	}
	return raw
}

// outcome is a success of the run, appended by its owner.
func (w *world) outcome() *lane.AppendCommand {
	return &lane.AppendCommand{
		Transition: w.transition(&runlane.RunSucceeded{Attempt: w.run.Counters.Attempts}), LeaseToken: w.run.Lease.Token,
	}
}

// A heartbeat leaves the marker where it is, and its log item is gone here: nothing but the sequence stops a late commit.
func TestCondition_SequenceIsCheckedInTheWrite(t *testing.T) {
	w := newWorld(t).create(eager, 0, nil).claim(time.Minute, true)
	late := w.outcome()
	beat := &lane.HeartbeatCommand{Transition: w.transition(&runlane.RunLeaseHeartbeat{Lease: w.run.Lease})}
	if _, err := w.elsewhere().HeartbeatRunLease(t.Context(), beat); err != nil {
		t.Fatal(err)
	}
	_, err := w.store.db.Client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
		TableName: &w.store.db.Name, Key: item.Key(rows.RunPK(w.key()), rows.LogSK(late.ExpectedSequence+1)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.AppendRunEvents(t.Context(), late); !errors.Is(err, runlane.ConflictEventSequence) {
		t.Errorf("%v", err)
	}
}

func TestCondition_HistoryIsNeverOverwritten(t *testing.T) {
	w := newWorld(t).create(eager, 0, nil).claim(time.Minute, true)
	late := w.outcome()
	sk := rows.LogSK(late.ExpectedSequence + 1)
	w.rewrite(item.Key(rows.RunPK(w.key()), sk), "SET #ci = :ci", item.Item{":ci": item.Text("another's")})
	if _, err := w.store.AppendRunEvents(t.Context(), late); !errors.Is(err, runlane.ConflictEventSequence) {
		t.Errorf("%v", err)
	}
	if got := item.TextOf(w.standing(rows.RunPK(w.key()), sk)["ci"]); got != "another's" || w.item().State() != runlane.StatusRunning {
		t.Errorf("commit %q stands there", got)
	}
}

func TestCondition_PayloadIsNeverOverwritten(t *testing.T) {
	w := newWorld(t)
	w.run = &runlane.Run{ID: "run_1"}
	w.rewrite(item.Key(rows.RunPK(w.key()), "payload"), "SET #ci = :ci", item.Item{":ci": item.Text("another's")})
	payload := []byte(`"` + randomText(5000) + `"`)
	c := &lane.AppendCommand{Outbox: eager(w.now), Transition: w.transition(
		&runlane.RunCreated{TaskID: "a.task", Queue: "default", Payload: payload, Source: runlane.Source{Type: runlane.SourceTrigger}}, w.request(w.now))}
	if _, err := w.store.AppendRunEvents(t.Context(), c); err == nil {
		t.Error("the run was made")
	}
	if got := item.TextOf(w.standing(rows.RunPK(w.key()), "payload")["ci"]); got != "another's" {
		t.Error("the payload that stood there was overwritten")
	}
}

// randomText does not compress.
func randomText(n int) (s string) {
	for len(s) < n {
		s += randomID()
	}
	return s
}

func TestCondition_LeaseTokenIsCheckedInTheWrite(t *testing.T) {
	w := newWorld(t).create(eager, 0, nil).claim(time.Minute, true)
	late := w.outcome()
	w.rewrite(item.Key(rows.RunPK(w.key()), rows.RunSK), "SET #lt = :lt", item.Item{":lt": item.Text("another's")})
	if _, err := w.store.AppendRunEvents(t.Context(), late); !errors.Is(err, runlane.ConflictLeaseOwnership) {
		t.Errorf("%v", err)
	}
}

// An inspection moves the marker of a queued run between the read of a claim and its commit. The claim judges the marker as it is then.
func TestCondition_ACommitDependsOnTheMarkerItRead(t *testing.T) {
	t.Parallel()
	for name, moved := range map[string]rows.Marker{
		"another kind at the same moment": {Kind: rows.Unpublished, At: rows.ToMillis(testTime)},
		"the same kind at another moment": {Kind: rows.Deliverable, At: rows.ToMillis(testTime.Add(time.Hour))},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).create(eager, 0, nil)
			if err := w.elsewhere().moveMarker(t.Context(), w.item(), moved); err != nil {
				t.Fatal(err)
			}
			stale := w.item()
			stale.DueP, stale.DueA = w.dueKey(rows.Marker{Kind: rows.Deliverable, At: rows.ToMillis(testTime)})
			if err := stale.Marshal(); err != nil {
				t.Fatal(err)
			}
			w.store.snapshots.put(stale.PK, stale)
			w.claim(time.Minute, true)
			if got := w.marker(); got != "l+1m0s" {
				t.Errorf("the marker of the claimed run is %s", got)
			}
		})
	}
}

// dueKey are the index attributes of a marker of the run.
func (w *world) dueKey(m rows.Marker) (partition, sort string) {
	w.Helper()
	shards, err := w.store.shardCounts(w.Context(), "test")
	if err != nil {
		w.Fatal(err)
	}
	key := w.item().DueKey(m, shards)
	return key.Partition, key.Sort
}

// A process that moves a marker on what it has read gives way to one that moved it meanwhile.
func TestCondition_AMoveDependsOnTheMarkerItRead(t *testing.T) {
	t.Parallel()
	for name, moved := range map[string]rows.Marker{
		"another kind at the same moment": {Kind: rows.Unpublished, At: rows.ToMillis(testTime)},
		"the same kind at another moment": {Kind: rows.Deliverable, At: rows.ToMillis(testTime.Add(time.Hour))},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).create(eager, 0, nil)
			stale := w.item()
			if err := w.elsewhere().moveMarker(t.Context(), w.item(), moved); err != nil {
				t.Fatal(err)
			}
			want := w.marker()
			if err := w.store.moveMarker(t.Context(), stale, rows.Marker{Kind: rows.Parked, At: rows.ToMillis(testTime.Add(time.Minute))}); err != nil {
				t.Fatal(err)
			}
			if got := w.marker(); got != want {
				t.Errorf("the marker is %s, want it left at %s", got, want)
			}
		})
	}
}

// Two take over the same expired claim: status and all are the same for both, but for the token.
func TestCondition_AnExpiredClaimIsTakenOverOnce(t *testing.T) {
	w := newWorld(t).create(eager, 0, nil).pass(time.Minute)
	claim := &lane.ClaimOutboxCommand{Environment: "test", IDs: []string{w.rows[0].ID}, At: w.now, ClaimUntil: w.now.Add(30 * time.Second)}
	var first []lane.OutboxMessage
	slow := New(interrupted(w.store.db.Client, func() {
		var err error
		if first, err = w.store.ClaimOutboxMessages(t.Context(), claim); err != nil {
			t.Error(err)
		}
	}), w.store.db.Name, nil)
	second, err := slow.ClaimOutboxMessages(t.Context(), claim)
	if err != nil || len(first) != 1 || len(second) != 0 {
		t.Errorf("the first got %d rows, the second %d: %v", len(first), len(second), err)
	}
}

// A publisher that read a failed row is late: another one claimed it, and failed once more. The row is due when that one said.
func TestClaimOutboxMessages_RowFailedAgainMeanwhile_IsNotClaimedBeforeItsTime(t *testing.T) {
	w := newWorld(t).create(eager, 0, nil).fail(time.Second).pass(time.Second)
	slow := interrupted(w.store.db.Client, func() { w.flush().fail(time.Hour) })
	id := w.item().DeliveryID()
	rows, err := New(slow, w.store.db.Name, nil).ClaimOutboxMessages(t.Context(), &lane.ClaimOutboxCommand{
		Environment: "test", IDs: []string{id}, At: w.now, ClaimUntil: w.now.Add(time.Minute),
	})
	if err != nil || len(rows) != 0 {
		t.Fatalf("claimed %d rows an hour before their time: %v", len(rows), err)
	}
}

// Between a reset's read and its delete the key went to another run: that one keeps it.
func TestCondition_AResetClearsOnlyTheOwnerItJudged(t *testing.T) {
	w := newWorld(t)
	key := lane.OwnerKey{Environment: "test", TaskID: "bench.noop", Key: "key"}
	w.create(eager, 0, &runlane.RunCreated{IdempotencyKey: "key", Retention: runlane.KeyRetention{TTL: time.Hour}, Payload: []byte(`{}`)})
	w.claim(time.Minute, true).succeed()
	client := interrupted(w.store.db.Client, func() {
		w.rewrite(item.Key(rows.IdempotencyPK(key), rows.OwnerSK), "SET #ru = :ru, #ci = :ci", item.Item{":ru": item.Text("another"), ":ci": item.Text("another's")})
	})
	err := New(client, w.store.db.Name, &Options{Now: func() time.Time { return w.now }}).ResetIdempotencyKey(t.Context(), key)
	if !errors.Is(err, runlane.ConflictIdempotencyKey) || item.TextOf(w.standing(rows.IdempotencyPK(key), rows.OwnerSK)["ru"]) != "another" {
		t.Errorf("%v", err)
	}
}

// A slot is taken, or taken over, only as it was read. docs/internals/layout.md, Slots.
func TestCondition_ASlotIsTakenOnlyAsItWasRead(t *testing.T) {
	t.Parallel()
	until := rows.ToMillis(testTime)
	for name, c := range map[string]struct{ read, now rows.SlotItem }{
		"the reservation is another run's by now":     {rows.SlotItem{Run: "run_1", Until: until}, rows.SlotItem{Run: "run_2", Until: until}},
		"the reservation was renewed":                 {rows.SlotItem{Run: "run_1", Until: until}, rows.SlotItem{Run: "run_1", Until: until + 1}},
		"the held slot became a reservation again":    {rows.SlotItem{Run: "run_1"}, rows.SlotItem{Run: "run_1", Until: until}},
		"the held slot is another run's by now":       {rows.SlotItem{Run: "run_1"}, rows.SlotItem{Run: "run_2"}},
		"the reservation is held by its claim by now": {rows.SlotItem{Run: "run_1", Until: until}, rows.SlotItem{Run: "run_1"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, slot := range []*rows.SlotItem{&c.read, &c.now} {
				slot.PK, slot.SK = "test:slot:default:0", rows.SlotSK(0)
			}
			now, err := rows.Marshal(c.now)
			if err != nil {
				t.Fatal(err)
			}
			w.plant(now)
			mine := rows.SlotItem{PK: c.read.PK, SK: c.read.SK, Run: "run_3"}
			members, err := (&rows.SlotChange{Put: &mine, Before: &c.read}).Writes()
			if err != nil {
				t.Fatal(err)
			}
			_, err = w.store.db.Client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
				TransactItems: []types.TransactWriteItem{members[0].Part(&w.store.db.Name)},
			})
			if _, ok := errors.AsType[*types.TransactionCanceledException](err); !ok {
				t.Errorf("%v", err)
			}
		})
	}
}

// Between the read of the slot and its deletion the run's worker claims it.
func TestCondition_ASlotIsGivenBackOnlyAsItWasRead(t *testing.T) {
	w := newWorld(t).bounded(1)
	w = w.must(w.enter(reservation))
	client := interrupted(w.store.db.Client, func() {
		w.rewrite(item.Key(w.item().HeldSlot().PK, w.item().HeldSlot().SK), "REMOVE #un", nil)
	})
	if w.giveBack(New(client, w.store.db.Name, nil)) || w.standing(w.item().HeldSlot().PK, w.item().HeldSlot().SK) == nil {
		t.Error("a claimed slot was given back")
	}
}

// plant writes an item that the test has made.
func (w *world) plant(it item.Item) {
	w.Helper()
	_, err := w.store.db.Client.TransactWriteItems(w.Context(), &dynamodb.TransactWriteItemsInput{
		TransactItems: []types.TransactWriteItem{{Put: &types.Put{TableName: &w.store.db.Name, Item: it}}},
	})
	if err != nil {
		w.Fatal(err)
	}
}

// The run was pruned and its id given to another meanwhile: that one stays.
func TestCondition_PruningRemovesOnlyTheRunItRead(t *testing.T) {
	t.Parallel()
	for name, stale := range map[string]func(*rows.Run){
		"another sequence": func(r *rows.Run) { r.Sequence-- },
		"another end":      func(r *rows.Run) { r.DoneA = "0000000000001:" + string(r.Key().RunID) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).create(eager, 0, nil).claim(time.Minute, true).succeed()
			read := w.item()
			stale(read)
			if gone, err := w.store.pruneRun(t.Context(), read, nil); err != nil || gone {
				t.Errorf("gone %t, %v", gone, err)
			}
			if w.standing(rows.RunPK(w.key()), rows.RunSK) == nil {
				t.Error("the run is gone")
			}
		})
	}
}

// Between the read of the run's parts and its removal another run of that id ended, in the same millisecond: it stays.
func TestCondition_PruningRemovesOnlyTheSequenceItRead(t *testing.T) {
	w := newWorld(t).create(eager, 0, nil).claim(time.Minute, true).succeed()
	client := interrupted(w.store.db.Client, func() {
		w.rewrite(item.Key(rows.RunPK(w.key()), rows.RunSK), "SET #sq = :sq", item.Item{":sq": item.Num(w.run.EventSequence + 1)})
	})
	gone, err := New(client, w.store.db.Name, nil).pruneRun(t.Context(), w.item(), nil)
	if err != nil || gone || w.standing(rows.RunPK(w.key()), rows.RunSK) == nil {
		t.Errorf("gone %t, %v", gone, err)
	}
}

// Between the read of the log and its removal another run of that id wrote there: what it wrote stays.
func TestCondition_PruningRemovesOnlyTheLogItRead(t *testing.T) {
	w := newWorld(t).create(eager, 0, nil).claim(time.Minute, true).succeed()
	last := rows.LogSK(w.run.EventSequence)
	client := interrupted(w.store.db.Client, func() {
		w.rewrite(item.Key(rows.RunPK(w.key()), last), "SET #ci = :ci", item.Item{":ci": item.Text("another's")})
	})
	gone, err := New(client, w.store.db.Name, nil).pruneRun(t.Context(), w.item(), nil)
	if err != nil || gone || w.standing(rows.RunPK(w.key()), last) == nil || w.standing(rows.RunPK(w.key()), rows.RunSK) == nil {
		t.Errorf("gone %t, %v", gone, err)
	}
}

// sending is a signal to the run as the mail has it.
func (w *world) sending(mail *lane.Mail, id string) *lane.SignalCommand {
	return &lane.SignalCommand{
		RunKey:    w.key(),
		CreatedAt: mail.Run.CreatedAt,
		Count:     mail.Count,
		Signal:    lane.Signal{Name: "approved", ID: id, Number: mail.Count + 1, SentAt: w.now, Body: []byte("1")},
	}
}

func (w *world) mail() *lane.Mail {
	w.Helper()
	mail, err := w.store.ReadMail(w.Context(), &lane.MailQuery{RunKey: w.key()})
	if err != nil {
		w.Fatal(err)
	}
	return mail
}

// The store remembers the run with as many signals as it read; another process has sent one since.
func TestCondition_ASignalDependsOnTheCountThatWasRead(t *testing.T) {
	w := newWorld(t).create(eager, 0, nil)
	for n := range 2 { // with none there, and with one
		mail := w.mail()
		mine, others := w.sending(mail, fmt.Sprint("mine ", n)), w.sending(mail, fmt.Sprint("theirs ", n))
		if _, err := w.elsewhere().SendSignal(t.Context(), others); err != nil {
			t.Fatal(err)
		}
		if _, err := w.store.SendSignal(t.Context(), mine); !errors.Is(err, runlane.ConflictWait) {
			t.Errorf("signal %d: %v", n, err)
		}
	}
	if count := w.mail().Count; count != 2 {
		t.Errorf("%d signals are counted", count)
	}
}

// The store remembers the run; it was pruned and its id given to another meanwhile, which has as many signals, none.
func TestCondition_ASignalReachesOnlyTheRunItRead(t *testing.T) {
	w := newWorld(t).create(eager, 0, nil)
	mine := w.sending(w.mail(), "1")
	next := item.Num(int64(rows.ToMillis(w.run.CreatedAt.Add(time.Second))))
	w.rewrite(item.Key(rows.RunPK(w.key()), rows.RunSK), "SET #ca = :ca", item.Item{":ca": next})
	_, err := w.store.SendSignal(t.Context(), mine)
	if !errors.Is(err, runlane.ConflictWait) {
		t.Errorf("%v", err)
	}
	if w.standing(rows.RunPK(w.key()), rows.InboxSpan("approved")+"1") != nil {
		t.Error("the signal stands beside another run")
	}
}

// The store remembers the run without a call; another process of its owner has begun one since. The end of the run finds it, so
// that those that are called are told of a cancellation.
func TestCondition_AnEndDependsOnTheCallsThatWereRead(t *testing.T) {
	w := newWorld(t).create(eager, 0, nil).claim(time.Minute, true)
	cancel := &lane.AppendCommand{
		Transition: w.transition(&runlane.RunCancellationRequested{}, &runlane.RunCancelled{}), LeaseToken: w.run.Lease.Token,
	}
	if _, err := w.elsewhere().BeginCall(t.Context(), w.calling("pages", 1)); err != nil {
		t.Fatal(err)
	}
	commit, err := w.store.AppendRunEvents(t.Context(), cancel)
	if err != nil || !commit.NotificationPending || !w.item().NotificationPending() {
		t.Errorf("the end leaves nothing to be told: %+v, %v", commit, err)
	}
}

// The store remembers the run under the lease of who calls; another has taken it over meanwhile.
func TestCondition_ACallBeginsUnderTheLeaseItRead(t *testing.T) {
	w := newWorld(t).create(eager, 0, nil).claim(time.Minute, true)
	w.rewrite(item.Key(rows.RunPK(w.key()), rows.RunSK), "SET #lt = :lt", item.Item{":lt": item.Text("another's")})
	if _, err := w.store.BeginCall(t.Context(), w.calling("pages", 1)); !errors.Is(err, runlane.ConflictLeaseOwnership) {
		t.Errorf("%v", err)
	}
}

// Between the read of an ended run and the write, another process tells the end, or the id goes to another run, which has
// ended, too.
func TestCondition_AnEndIsToldOnlyAsItWasRead(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{"another run of the id": "SET #ca = :n", "its end was told": "REMOVE #da, #dp"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).create(eager, 0, nil).claim(time.Minute, true).call(1)
			ended := w.ended()
			client := interrupted(w.store.db.Client, func() {
				values := item.Item{":n": item.Num(1)}
				if change[0] == 'R' {
					values = nil
				}
				w.rewrite(item.Key(rows.RunPK(ended.key()), rows.RunSK), change, values)
			})
			_, err := New(client, w.store.db.Name, nil).NotifyEnd(t.Context(), &lane.NotifyCommand{RunKey: ended.key(), CreatedAt: ended.run.CreatedAt})
			if !errors.Is(err, runlane.ConflictWait) {
				t.Errorf("%v", err)
			}
		})
	}
}

// Between the read of a flow and its removal it changes, or it is removed and its id goes to another one at the same version.
func TestCondition_AFlowIsRemovedOnlyAsItWasRead(t *testing.T) {
	w := newWorld(t)
	f := w.startFlow("flow")
	client := interrupted(w.store.db.Client, func() {
		w.rewrite(rows.FlowHead(lane.FlowKey{Environment: "test", FlowID: "flow"}), "SET #ci = :ci", item.Item{":ci": item.Text("another's")})
	})
	_, err := New(client, w.store.db.Name, nil).PutFlow(t.Context(), &lane.FlowCommand{Environment: "test", Flow: *f, Remove: true})
	if !errors.Is(err, runlane.ConflictFlow) {
		t.Errorf("%v", err)
	}
}
