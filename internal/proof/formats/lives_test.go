package formats_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// Runs that were stopped in every state. What is recorded depends on nothing but this file, world_test.go and the code: there is no
// clock but the world's, and nothing happens at once.

func (w *world) live() {
	w.partlyPruned() // first, while it is the only finished run
	w.scheduled()
	w.reservedTooLong()
	w.leasedTooLong()
	w.pass(10 * time.Minute)
	w.wakeups()
	w.owned()
	w.waiting()
	w.ended()
	w.keyed()
	w.bulky()
	w.slots()
	w.lookedFor()
	w.claimedRows()
	w.triggeredByHand()
	w.resumed()
	w.debounced()
	w.suspended()
}

func payload(text string) json.RawMessage { return json.RawMessage(text) }

// noise is JSON that does not compress.
func noise(size int) json.RawMessage {
	source := rand.New(rand.NewPCG(1, 2)) // the same in every recording
	b := make([]byte, size*3/4)
	for i := range b {
		b[i] = byte(source.UintN(256))
	}
	return payload(`"` + base64.StdEncoding.EncodeToString(b) + `"`)
}

// partlyPruned is a run whose pruning died behind its owner and its payload.
func (w *world) partlyPruned() {
	w.Helper()
	w.trigger(report.With(noise(3000)), "run_pruned", &runlane.TriggerOptions{IdempotencyKey: "pruned", IdempotencyTTL: time.Second})
	w.deliver("run_pruned", nil)
	w.pass(time.Hour)
	w.api.deletes = 2
	if _, err := w.rt.Runs().Prune(w.Context(), &core.PruneOptions{OlderThan: time.Minute}); err == nil {
		w.Fatal("pruning did not die")
	}
	w.api.deletes = -1
}

// scheduled are schedules at work: their records, completed and skipped occurrences, and two that a tick left behind.
func (w *world) scheduled() {
	w.Helper()
	w.tick()
	if err := w.rt.Schedules().Pause(w.Context(), "paused", &core.ChangeOptions{Reason: "month's end"}); err != nil {
		w.Fatal(err)
	}
	w.pass(time.Hour)
	w.tick()
	w.pass(time.Hour)
	w.dying = "halfway"
	if _, err := w.rt.Tick(w.Context(), &core.TickOptions{Deadline: w.now().Add(time.Minute)}); err == nil {
		w.Fatal("the tick did not die")
	}
	w.dying = ""
	w.pass(time.Hour - time.Minute)
	fire := w.now().Truncate(time.Hour).Add(time.Hour)
	claim, err := w.store.ClaimScheduleOccurrence(w.Context(), &lane.ClaimOccurrenceCommand{
		ScheduleKey: lane.ScheduleKey{Environment: environment, ScheduleID: "claimed"}, OccurrenceID: "occ_claimed", FireTime: fire,
		At: fire, ClaimUntil: fire.Add(time.Minute),
	})
	if err != nil || claim.Outcome != lane.Acquired {
		w.Fatalf("%+v, %v", claim, err)
	}
	if _, err := w.rt.Schedules().TriggerNow(w.Context(), "hourly", &core.ChangeOptions{Reason: "by hand"}); err != nil {
		w.Fatal(err)
	}
	w.pass(time.Second)
}

// triggeredByHand is a run that the record of its schedule names, since occurrences wait for it.
func (w *world) triggeredByHand() {
	w.Helper()
	if _, err := w.rt.Schedules().TriggerNow(w.Context(), "pending", nil); err != nil {
		w.Fatal(err)
	}
}

// wakeups stand in every state of the outbox.
func (w *world) wakeups() {
	w.Helper()
	w.trigger(report.With(payload(`{"n":1}`)), "run_queued", &runlane.TriggerOptions{
		Meta: map[string]string{"tenant": "a"}, TraceCarrier: map[string]string{"traceparent": "00-01-02-01"},
		Actor: runlane.Actor{Type: runlane.ActorOperator, ID: "somebody"},
	})
	w.trigger(report.With(payload(`null`)), "run_plain", nil)
	w.trigger(shipping.With(payload(`{}`)), "run_ordered", &runlane.TriggerOptions{ConcurrencyKey: "parcel: ä"})
	w.trigger(report.With(payload(`{}`)), "run_deferred", &runlane.TriggerOptions{Deferred: true})
	w.trigger(report.With(payload(`{}`)), "run_scheduled", &runlane.TriggerOptions{Delay: time.Hour})
	w.trigger(report.With(payload(`{}`)), "run_scheduled_soon", &runlane.TriggerOptions{Delay: 5 * time.Minute})
	for id, r := range map[runlane.RunID]refusal{
		"run_refused": refusedOnce, "run_outage": outage, "run_dead": refusedEver, "run_revived": refusedEver, "run_requeued": refusedEver,
	} {
		w.mailbox.refuse(id, r)
	}
	for _, id := range []runlane.RunID{"run_refused", "run_outage", "run_dead", "run_revived", "run_requeued"} {
		w.trigger(report.With(payload(`{}`)), id, nil)
	}
	n, err := w.store.RequeueDeadLetters(w.Context(), &lane.RequeueCommand{
		Environment: environment, IDs: []string{w.outboxID("run_revived")}, At: w.now(),
	})
	if err != nil || n != 1 {
		w.Fatal(n, err)
	}
	w.mailbox.refuse("run_requeued", accepted)
	if err := w.rt.DeadLetters().Requeue(w.Context(), "run_requeued", &core.ChangeOptions{Reason: "repaired"}); err != nil {
		w.Fatal(err)
	}
	w.pass(time.Second)
}

// leasedTooLong are runs whose leases are over when the recording ends.
func (w *world) leasedTooLong() {
	w.Helper()
	w.trigger(report.With(payload(`{}`)), "run_abandoned", nil)
	w.claim("run_abandoned", time.Minute, runlane.DefaultQueue)
	w.trigger(report.With(payload(`{}`)), "run_stopping", nil)
	w.claim("run_stopping", time.Minute, runlane.DefaultQueue)
	if _, err := w.rt.Runs().Cancel(w.Context(), "run_stopping", &core.ChangeOptions{Reason: "too slow"}); err != nil {
		w.Fatal(err)
	}
	w.pass(time.Second)
}

// owned are runs under a live lease: with heartbeats, a note, a request to stop.
func (w *world) owned() {
	w.Helper()
	w.trigger(report.With(payload(`{}`)), "run_leased", nil)
	run := w.claim("run_leased", time.Hour, runlane.DefaultQueue)
	lease := run.Lease
	lease.ExpiresAt = w.now().Add(2 * time.Hour)
	if _, err := w.store.HeartbeatRunLease(w.Context(), &lane.HeartbeatCommand{
		Transition: w.transition(run, runlane.DefaultQueue, &runlane.RunLeaseHeartbeat{Lease: lease}),
	}); err != nil {
		w.Fatal(err)
	}
	w.pass(time.Second)
	w.trigger(report.With(payload(`{}`)), "run_noted", nil)
	run = w.claim("run_noted", time.Hour, runlane.DefaultQueue)
	if err := w.store.PutProgress(w.Context(), w.key(run.ID), run.Lease.Token, runlane.Progress{Attempt: 1, Note: "half", At: w.now()}); err != nil {
		w.Fatal(err)
	}
	w.remembers(run)
	w.pass(time.Second)
	w.trigger(report.With(payload(`{}`)), "run_asked_to_stop", nil)
	w.claim("run_asked_to_stop", time.Hour, runlane.DefaultQueue)
	if _, err := w.rt.Runs().Cancel(w.Context(), "run_asked_to_stop", nil); err != nil {
		w.Fatal(err)
	}
	w.pass(time.Second)
}

// remembers gives a run records of each form.
func (w *world) remembers(run *runlane.Run) {
	w.Helper()
	for _, r := range []lane.StepRecord{
		{Name: "charge", Kind: runlane.StepKindStep, StartedAt: w.now(), Type: "shop.Receipt", Result: payload(`{"id":"ch_1"}`)},
		{Name: "pages", Kind: runlane.StepKindStep, Type: "string", Result: payload(`"` + strings.Repeat("page ", 1000) + `"`)},
		{Name: "mail: ä/1", Kind: runlane.StepKindStep},
		{Name: "rows", Kind: runlane.StepKindCheckpoint, Type: "int", Result: payload(`1000`)},
	} {
		r.Attempt, r.At = 1, w.now()
		if _, err := w.store.KeepRecord(w.Context(), &lane.KeepCommand{
			RunKey: w.key(run.ID), CreatedAt: run.CreatedAt, Record: r, Replace: r.Kind == runlane.StepKindCheckpoint,
		}); err != nil {
			w.Fatal(err)
		}
	}
}

func failure(message string, meta map[string]string) error {
	return &runlane.Error{Code: "import_failed", Message: message, Meta: meta}
}

// waiting are runs between two attempts.
func (w *world) waiting() {
	w.Helper()
	ends := func(err error) func(context.Context, *runlane.Attempt) error {
		return func(context.Context, *runlane.Attempt) error { return err }
	}
	w.trigger(report.With(payload(`{}`)), "run_retrying", nil)
	w.deliver("run_retrying", ends(failure("no such file", nil)))
	w.trigger(report.With(payload(`{}`)), "run_retrying_soon", nil)
	w.deliver("run_retrying_soon", ends(runlane.RetryAfter(5*time.Minute, failure("busy", nil))))
	w.trigger(report.With(payload(`{}`)), "run_retrying_long", nil)
	w.deliver("run_retrying_long", ends(failure(strings.Repeat("why? ", 60), map[string]string{"line": "7"})))
	w.trigger(report.With(payload(`{}`)), "run_released", nil)
	w.deliver("run_released", ends(&runlane.ReleaseError{Delay: time.Hour, Reason: "not before noon", Meta: map[string]string{"noon": "12:00"}}))
}

// debounced is a run that waits for the last of its triggers, of which there were two.
func (w *world) debounced() {
	w.Helper()
	o := &runlane.TriggerOptions{Debounce: runlane.Debounce{Key: "k", Window: time.Hour}}
	w.trigger(report.With(payload(`{}`)), "run_debounced", o)
	if _, err := w.rt.Trigger(w.Context(), report.With(payload(`{"n":2}`)), o); err != nil {
		w.Fatal(err)
	}
}

// resumed is a run whose wait an operator ended.
func (w *world) resumed() {
	w.Helper()
	w.trigger(report.With(payload(`{}`)), "run_resumed", nil)
	w.deliver("run_resumed", func(context.Context, *runlane.Attempt) error { return runlane.Release(time.Hour, "not before noon") })
	if _, err := w.rt.Runs().Resume(w.Context(), "run_resumed", &core.ChangeOptions{Reason: "it is noon"}); err != nil {
		w.Fatal(err)
	}
	w.pass(time.Second)
}

// suspended runs wait for something, one until its time is over.
func (w *world) suspended() {
	w.Helper()
	w.trigger(report.With(payload(`{}`)), "run_blocked", nil)
	w.deliver("run_blocked", func(context.Context, *runlane.Attempt) error { return runlane.Block("raise the quota") })
	w.trigger(report.With(payload(`{}`)), "run_asking", nil)
	w.deliver("run_asking", func(_ context.Context, a *runlane.Attempt) error {
		return &runlane.ReleaseError{Reason: "not approved", Waiting: &runlane.Waiting{
			For:   []runlane.WaitingFor{runlane.WaitingSignal, runlane.WaitingInput, runlane.WaitingTime},
			Names: []string{"approved", "withdrawn"}, All: true, Until: a.Run.StartedAt.Add(72 * time.Hour), Prompt: "Approve?",
		}}
	})
	w.pass(time.Second)
}

// ended are finished runs, and what was made from them.
func (w *world) ended() {
	w.Helper()
	w.trigger(report.With(payload(`{}`)), "run_succeeded", nil)
	w.deliver("run_succeeded", nil)
	w.trigger(report.With(payload(`{}`)), "run_parent", &runlane.TriggerOptions{Meta: map[string]string{"tenant": "a"}})
	w.deliver("run_parent", func(ctx context.Context, a *runlane.Attempt) error {
		if _, err := a.Trigger(ctx, report.With(payload(`{"of":"parent"}`)), &runlane.TriggerOptions{RunID: "run_child"}); err != nil {
			return err
		}
		return a.SetOutput(map[string]int{"children": 1})
	})
	w.trigger(report.With(payload(`{}`)), "run_failed", nil)
	w.deliver("run_failed", func(context.Context, *runlane.Attempt) error {
		return runlane.Permanent(failure(strings.Repeat("never ", 50), map[string]string{"card": "declined"}))
	})
	w.trigger(report.With(payload(`{}`)), "run_cancelled", nil)
	if _, err := w.rt.Runs().Cancel(w.Context(), "run_cancelled", &core.ChangeOptions{Reason: "a mistake"}); err != nil {
		w.Fatal(err)
	}
	w.pass(time.Second)
	if _, err := w.rt.Runs().Rerun(w.Context(), "run_succeeded", &core.ChangeOptions{Reason: "once more"}); err != nil {
		w.Fatal(err)
	}
	w.pass(time.Second)
	if _, err := w.rt.Runs().Retry(w.Context(), "run_failed", nil); err != nil {
		w.Fatal(err)
	}
	w.pass(time.Second)
}

// keyed are runs that hold keys, or held them.
func (w *world) keyed() {
	w.Helper()
	w.trigger(report.With(payload(`{}`)), "run_keyed", &runlane.TriggerOptions{
		IdempotencyKey: "order 1", IdempotencyTTL: 24 * time.Hour, SingletonKey: "only: 1", ConcurrencyKey: "tenant a",
	})
	w.trigger(report.With(payload(`{}`)), "run_key_kept", &runlane.TriggerOptions{IdempotencyKey: "order 2", SingletonKey: "only: 2"})
	w.deliver("run_key_kept", nil)
	w.trigger(greeting.With(payload(`{}`)), "run_key_while_active", &runlane.TriggerOptions{IdempotencyKey: "order 3"})
	w.trigger(greeting.With(payload(`{}`)), "run_key_freed", &runlane.TriggerOptions{IdempotencyKey: "order 4"})
	w.deliver("run_key_freed", nil)
}

// bulky are payloads and outputs in each of their places.
func (w *world) bulky() {
	w.Helper()
	repeated := payload(`"` + strings.Repeat("0123456789", 500) + `"`)
	outputs := map[runlane.RunID]any{"run_separate": noise(1500), "run_separate_compressed": string(noise(1500)) + strings.Repeat("out ", 1000)}
	for _, p := range []struct {
		id      runlane.RunID
		payload json.RawMessage
	}{
		{"run_inline_compressed", repeated},
		{"run_separate", noise(1500)},
		{"run_separate_compressed", payload(`[` + string(noise(2000)) + `,` + string(repeated) + `]`)},
	} {
		w.trigger(report.With(p.payload), p.id, nil)
		w.deliver(p.id, func(_ context.Context, a *runlane.Attempt) error {
			if output, ok := outputs[p.id]; ok {
				return a.SetOutput(output)
			}
			return nil
		})
	}
	w.trigger(report.With(noise(2500)), "run_waiting_with_bulk", nil)
}

// reservedTooLong is a run whose reservation is over when the recording ends.
func (w *world) reservedTooLong() {
	w.Helper()
	w.trigger(importing.With(payload(`{}`)), "run_reservation_over", &runlane.TriggerOptions{ConcurrencyKey: "over"})
}

// slots are runs of a bounded queue.
func (w *world) slots() {
	w.Helper()
	held := &runlane.TriggerOptions{ConcurrencyKey: "held"}
	w.trigger(importing.With(payload(`{}`)), "run_slot_held", held)
	w.claim("run_slot_held", time.Hour, narrow)
	w.trigger(importing.With(payload(`{}`)), "run_slot_waiting", held)
	w.trigger(importing.With(payload(`{}`)), "run_slot_scheduled", &runlane.TriggerOptions{ConcurrencyKey: "held", Delay: time.Hour})
	given := &runlane.TriggerOptions{ConcurrencyKey: "given"}
	w.trigger(importing.With(payload(`{}`)), "run_slot_before", given)
	w.trigger(importing.With(payload(`{}`)), "run_slot_given", given)
	w.deliver("run_slot_before", nil)
	w.trigger(importing.With(payload(`{}`)), "run_slot_retrying", nil)
	w.deliver("run_slot_retrying", func(context.Context, *runlane.Attempt) error { return failure("again", nil) })
}

// lookedFor are runs whose slots were freed by a process that died before they were handed over, and the place where a scan for slots was
// ended by its bound.
func (w *world) lookedFor() {
	w.Helper()
	for _, key := range []string{"left", "right"} {
		o := &runlane.TriggerOptions{ConcurrencyKey: key}
		first := runlane.RunID("run_slot_" + key + "_first")
		w.trigger(importing.With(payload(`{}`)), first, o)
		w.trigger(importing.With(payload(`{}`)), runlane.RunID("run_slot_"+key+"_second"), o)
		_, err := w.store.AppendRunEvents(w.Context(), &lane.AppendCommand{
			Transition: w.transition(w.get(first), narrow, &runlane.RunCancelled{Reason: "by somebody who died"}),
		})
		if err != nil {
			w.Fatal(err)
		}
		w.pass(time.Second)
	}
	q := &lane.DueQuery{PageQuery: lane.PageQuery{Environment: environment, Limit: 1}, At: w.now(), Bounded: []runlane.Queue{narrow}}
	for {
		page, err := w.store.ListRunsNeedingDispatch(w.Context(), q)
		if err != nil {
			w.Fatal(err)
		}
		if q.After = page.Next; q.After == "" {
			return
		}
	}
}

// claimedRows are wakeups in the hands of publishers, one of whom is dead.
func (w *world) claimedRows() {
	w.Helper()
	for _, id := range []runlane.RunID{"run_publisher_dead", "run_publishing"} {
		w.trigger(report.With(payload(`{}`)), id, &runlane.TriggerOptions{Deferred: true})
		rows, err := w.store.ClaimOutboxMessages(w.Context(), &lane.ClaimOutboxCommand{
			Environment: environment, IDs: []string{w.outboxID(id)}, At: w.now(), ClaimUntil: w.now().Add(30 * time.Second),
		})
		if err != nil || len(rows) != 1 {
			w.Fatal(rows, err)
		}
		if id == "run_publisher_dead" {
			w.pass(40 * time.Second)
		}
	}
}
