package dynamostore

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/lane"
)

// world drives one run through a store on DynamoDB Local, at its own instants.
type world struct {
	testing.TB
	store *Store
	now   time.Time
	run   *runlane.Run
	again runlane.RunID        // the id of new runs; "": each has a new one
	queue runlane.Queue        // the policy in force
	group string               // the concurrency key of new runs
	rows  []lane.OutboxMessage // of the last commit or claim
	meter *meter               // of the last step

	called  *world           // the run that this one has called
	started *lane.FlowRecord // the flow that was started
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return openWorld(t)
}

func openWorld(t testing.TB) *world {
	t.Helper()
	client := awstest.DynamoDB(t)
	w := &world{TB: t, now: testTime, meter: &meter{}, queue: runlane.DefaultQueue}
	w.store = New(client, awstest.Table(t, client), &Options{Now: func() time.Time { return w.now }, RequestTimeout: awstest.RequestTimeout})
	if _, err := w.store.shardCounts(t.Context(), "test"); err != nil { // so that no step pays for it
		t.Fatal(err)
	}
	if _, err := w.store.GetPauses(t.Context(), lane.PausesQuery{Environment: "test"}); err != nil {
		t.Fatal(err)
	}
	return w
}

// step counts what is done under its context from zero.
func (w *world) step() context.Context {
	w.meter = &meter{}
	return withMeter(w.Context(), w.meter)
}

func (w *world) pass(d time.Duration) *world { w.now = w.now.Add(d); return w }

func (w *world) key() lane.RunKey { return lane.RunKey{Environment: "test", RunID: w.run.ID} }

func (w *world) event(body runlane.EventBody) runlane.Event {
	return runlane.Event{RunID: w.run.ID, Environment: "test", OccurredAt: w.now, Actor: runlane.SystemActor, Body: body}
}

func (w *world) request(at time.Time) runlane.EventBody {
	return &runlane.RunDeliveryRequested{Delivery: runlane.Delivery{
		Environment: "test", RunID: w.run.ID, Queue: "default", AvailableAt: at, RequestedAt: w.now,
	}}
}

func (w *world) transition(bodies ...runlane.EventBody) lane.Transition {
	w.Helper()
	t := lane.Transition{Queue: w.queue}
	current := w.run
	if _, creates := bodies[0].(*runlane.RunCreated); creates {
		current = nil
	} else {
		t.ExpectedSequence = current.EventSequence
	}
	for _, body := range bodies {
		t.Events = append(t.Events, w.event(body))
	}
	var err error
	if t.Projected, err = core.ProjectRunEvents(current, t.ExpectedSequence, t.Events...); err != nil {
		w.Fatal(err)
	}
	return t
}

var (
	eager = func(now time.Time) lane.InitialOutbox {
		return lane.InitialOutbox{ClaimUntil: now.Add(30 * time.Second)}
	}
	deferred = func(time.Time) lane.InitialOutbox { return lane.InitialOutbox{} }
)

var runNumber atomic.Int64 // all ids are of one length, so that sizes are

func (w *world) create(initial func(time.Time) lane.InitialOutbox, at time.Duration, created *runlane.RunCreated) *world {
	w.Helper()
	w.run = &runlane.Run{ID: runlane.RunID(fmt.Sprintf("run_01ARZ3NDEKTSV4RRFFQ69G%04d", runNumber.Add(1)))}
	if w.again != "" {
		w.run.ID = w.again
	}
	if created == nil {
		created = &runlane.RunCreated{Payload: []byte(`{}`)}
	}
	created.TaskID, created.Queue = "bench.noop", "default"
	if created.Source.Type == "" {
		created.Source.Type = runlane.SourceTrigger
	}
	c := &lane.AppendCommand{Outbox: initial(w.now)}
	if at > 0 {
		created.RunAt = w.now.Add(at)
		c.Transition = w.transition(created, w.request(created.RunAt))
	} else {
		c.Transition = w.transition(created, w.request(w.now))
	}
	return w.append(c)
}

func (w *world) append(c *lane.AppendCommand) *world {
	w.Helper()
	commit, err := w.store.AppendRunEvents(w.step(), c)
	if err != nil {
		w.Fatal(err)
	}
	w.run, w.rows = commit.Run, commit.Outbox
	return w
}

func (w *world) ack() *world {
	w.Helper()
	err := w.store.MarkOutboxMessagesPublished(w.step(), &lane.MarkPublishedCommand{Environment: "test", At: w.now, Messages: refsOf(w.rows)})
	if err != nil {
		w.Fatal(err)
	}
	return w
}

func refsOf(rows []lane.OutboxMessage) []lane.OutboxRef {
	var refs []lane.OutboxRef
	for _, row := range rows {
		refs = append(refs, row.OutboxRef)
	}
	return refs
}

func (w *world) fail(next time.Duration) *world {
	w.Helper()
	err := w.store.MarkOutboxMessagesFailed(w.step(), &lane.MarkFailedCommand{Environment: "test", At: w.now, Messages: []lane.OutboxFailure{{
		OutboxRef: w.rows[0].OutboxRef, Attempts: 1, Failure: runlane.Failure{Code: runlane.ErrTransportPublishFailed}, NextAvailableAt: w.now.Add(next),
	}}})
	if err != nil {
		w.Fatal(err)
	}
	return w
}

func (w *world) bury() *world {
	w.Helper()
	err := w.store.MarkOutboxMessagesDeadLettered(w.step(), &lane.MarkDeadLetteredCommand{Environment: "test", At: w.now, Messages: []lane.OutboxFailure{{
		OutboxRef: w.rows[0].OutboxRef, Attempts: 10, Failure: runlane.Failure{Code: runlane.ErrTransportPublishFailed},
	}}})
	if err != nil {
		w.Fatal(err)
	}
	return w
}

func (w *world) flush() *world {
	w.Helper()
	rows, err := w.store.ClaimOutboxMessages(w.step(), &lane.ClaimOutboxCommand{Environment: "test", At: w.now, ClaimUntil: w.now.Add(30 * time.Second)})
	if err != nil || len(rows) != 1 {
		w.Fatalf("claimed %d rows: %v", len(rows), err)
	}
	w.rows = rows
	return w
}

func (w *world) claim(lease time.Duration, byWakeup bool) *world {
	w.Helper()
	t := w.transition(
		&runlane.RunLeaseClaimed{Lease: runlane.Lease{Token: fmt.Sprintf("%026d", w.run.EventSequence), WorkerID: "host-1-worker", ExpiresAt: w.now.Add(lease)}},
		&runlane.RunStarted{Attempt: w.run.Counters.Attempts + 1})
	got, err := w.store.ClaimRunLease(w.step(), &lane.ClaimCommand{Transition: t, At: w.now, ByWakeup: byWakeup})
	if err != nil || got.Outcome != lane.Acquired {
		w.Fatalf("%+v %v", got, err)
	}
	w.run, w.rows = got.Commit.Run, nil
	return w
}

func (w *world) heartbeat(lease time.Duration) *world {
	w.Helper()
	next := w.run.Lease
	next.ExpiresAt = w.now.Add(lease)
	commit, err := w.store.HeartbeatRunLease(w.step(), &lane.HeartbeatCommand{Transition: w.transition(&runlane.RunLeaseHeartbeat{Lease: next})})
	if err != nil {
		w.Fatal(err)
	}
	w.run = commit.Run
	return w
}

// end appends an outcome as the owner.
func (w *world) end(body runlane.EventBody) *world {
	w.Helper()
	return w.append(&lane.AppendCommand{Transition: w.transition(body), LeaseToken: w.run.Lease.Token})
}

// other appends as anybody.
func (w *world) other(bodies ...runlane.EventBody) *world {
	w.Helper()
	return w.append(&lane.AppendCommand{Transition: w.transition(bodies...), Outbox: eager(w.now)})
}

func (w *world) succeed() *world {
	return w.end(&runlane.RunSucceeded{Attempt: w.run.Counters.Attempts})
}

// inspect is what every stage of a tick reads at this instant, with the tick's patience.
func (w *world) inspect() *world {
	w.Helper()
	q := &lane.DueQuery{PageQuery: lane.PageQuery{Environment: "test"}, At: w.now, Patience: lane.Patience{Queued: time.Minute, ShortWait: 30 * time.Second}}
	ctx := w.step()
	for _, list := range []func(context.Context, *lane.DueQuery) (*runlane.Page[lane.RunRef], error){
		w.store.ListRunsNeedingCancellationFinalization, w.store.ListRunsNeedingDelivery, w.store.ListRunsNeedingRedelivery,
	} {
		if _, err := list(ctx, q); err != nil {
			w.Fatal(err)
		}
	}
	return w
}

// item is the run item as it is stored.
func (w *world) item() *rows.Run {
	w.Helper()
	r, err := w.store.readRun(w.Context(), w.key())
	if err != nil || r == nil {
		w.Fatalf("%v %v", r, err)
	}
	return r
}

// marker is the run's place in the index due relative to now, like "q+0s"; "done" for a finished run.
func (w *world) marker() string {
	w.Helper()
	r := w.item()
	if r.DueP == "" {
		if r.DoneP != "" {
			return "done"
		}
		return "none"
	}
	m, _, ok := r.Due().Parse()
	if !ok || (r.DoneP != "") != (m.Kind == rows.Ended) {
		w.Fatalf("bad index attributes %+v %q", r.Due(), r.DoneP)
	}
	return string(m.Kind) + sign(m.At.Time().Sub(w.now))
}

func sign(d time.Duration) string {
	if d < 0 {
		return d.String()
	}
	return "+" + d.String()
}

func (w *world) requeue() *world {
	w.Helper()
	letters, err := w.store.ListDeadLetters(w.Context(), &lane.DeadLetterQuery{PageQuery: lane.PageQuery{Environment: "test"}})
	if err != nil || len(letters.Items) != 1 || letters.Items[0].OutboxID != w.rows[0].ID {
		w.Fatalf("%+v %v", letters, err)
	}
	n, err := w.store.RequeueDeadLetters(w.step(), &lane.RequeueCommand{Environment: "test", IDs: []string{w.rows[0].ID}, At: w.now})
	if err != nil || n != 1 {
		w.Fatal(n, err)
	}
	return w
}

// checked demands that no invariant is broken, in the whole environment.
func (w *world) checked() {
	w.Helper()
	q := &lane.PageQuery{Environment: "test", Limit: runlane.MaxPageLimit}
	for {
		page, err := w.store.Check(w.Context(), q)
		if err != nil {
			w.Fatal(err)
		}
		for _, v := range page.Items {
			w.Errorf("%s: %s: %s", v.RunID, v.Rule, v.Detail)
		}
		if q.After = page.Next; page.Next == "" {
			return
		}
	}
}
