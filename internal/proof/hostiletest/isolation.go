package hostiletest

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// Noon is what the clocks of AttackAcross say.
var Noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// environments are two runtimes on one storage, and on one transport, that differ in the name of their environment
// alone.
type environments struct {
	t        *testing.T
	ours     *core.Runtime
	theirs   *core.Runtime
	task     *runlane.Task[json.RawMessage]
	theirRun *runlane.Run
}

func share(t *testing.T, storage lane.Storage) *environments {
	t.Helper()
	e := &environments{t: t}
	e.task = runlane.NewTask("isolated", &runlane.TaskOptions[json.RawMessage]{
		IdempotencyKey: func(p json.RawMessage) string { return "key " + string(p) },
		SingletonKey:   func(p json.RawMessage) string { return "only " + string(p) },
	})
	transport := memlane.NewTransport(nil)
	open := func(name runlane.Environment) *core.Runtime {
		l, err := lane.New(storage, transport, nil)
		if err != nil {
			t.Fatal(err)
		}
		rt, err := core.Open(
			t.Context(),
			l,
			&core.Options{Environment: name, World: &core.World{Now: func() time.Time { return Noon }}},
		)
		if err != nil {
			t.Fatal(err)
		}
		return rt
	}
	e.ours, e.theirs = open("ours"), open("theirs")
	t.Cleanup(func() { _, _ = e.ours.Close(t.Context()), e.theirs.Close(t.Context()) })
	return e
}

func (e *environments) trigger(rt *core.Runtime, payload string, id runlane.RunID) *runlane.Run {
	e.t.Helper()
	result, err := rt.Trigger(e.t.Context(), e.task.With(json.RawMessage(payload)), &runlane.TriggerOptions{RunID: id})
	if err != nil || result.Outcome != runlane.TriggerCreated {
		e.t.Fatalf("%+v, %v", result, err)
	}
	return result.Run
}

// refused reports a call that the other environment's things should not have been accepted by.
func (e *environments) refused(what string, code runlane.ErrorCode, err error) {
	e.t.Helper()
	if !errors.Is(err, code) {
		e.t.Errorf("%s: %v, want %s", what, err, code)
	}
}

// AttackAcross needs a storage whose clock stands at [Noon]. A program that can only reach one environment's runtime
// reads, changes and stops nothing of another one, whatever ids, keys, cursors and
// messages of it they know.
func AttackAcross(t *testing.T, storage lane.Storage) {
	t.Helper()
	e := share(t, storage)
	ctx := t.Context()
	for _, payload := range []string{"1", "2", "3"} {
		e.theirRun = e.trigger(e.theirs, payload, runlane.RunID("run_"+payload))
	}
	id := e.theirRun.ID
	page, err := e.theirs.Runs().List(ctx, &core.ListOptions{Limit: 1})
	if err != nil || page.Next == "" {
		t.Fatal(page, err)
	}
	direct, err := storage.ListRuns(ctx, &lane.RunQuery{PageQuery: lane.PageQuery{Environment: "theirs", Limit: 1}})
	if err != nil || direct.Next == "" {
		t.Fatal(direct, err)
	}
	var event runlane.Cursor
	for record, err := range e.theirs.Runs().Events(ctx, id, nil) {
		if err != nil {
			t.Fatal(err)
		}
		event = core.EventCursor(&record)
	}

	_, err = e.ours.Runs().Get(ctx, id)
	e.refused("their run by its id", runlane.ErrRunNotFound, err)
	_, err = e.ours.Runs().Explain(ctx, id)
	e.refused("an explanation of their run", runlane.ErrRunNotFound, err)
	_, err = e.ours.Runs().Cancel(ctx, id, nil)
	e.refused("cancelling their run", runlane.ErrRunNotFound, err)
	_, err = e.ours.Runs().Rerun(ctx, id, nil)
	e.refused("repeating their run", runlane.ErrRunNotFound, err)
	_, err = e.ours.Runs().FindCurrent(ctx, "isolated", "key 3")
	e.refused("their idempotency key", runlane.ErrRunNotFound, err)
	_, err = e.ours.Runs().FindActive(ctx, "isolated", "only 3")
	e.refused("their singleton key", runlane.ErrRunNotFound, err)
	_, err = e.ours.ExecuteDelivery(ctx, lane.Wakeup{
		RunKey: lane.RunKey{Environment: "theirs", RunID: id}, Queue: "default", RequestedAt: Noon,
	}, nil)
	e.refused("a wakeup of theirs", runlane.ErrValidationFailed, err)
	_, err = e.ours.Runs().List(ctx, &core.ListOptions{Limit: 1, After: page.Next})
	e.refused("a cursor of their runs", runlane.ErrValidationFailed, err)
	_, err = e.ours.DeadLetters().List(ctx, &core.ListOptions{Limit: 1, After: page.Next})
	e.refused("a cursor of another list", runlane.ErrValidationFailed, err)
	_, err = storage.ListRuns(
		ctx,
		&lane.RunQuery{PageQuery: lane.PageQuery{Environment: "ours", Limit: 1, After: direct.Next}},
	)
	e.refused("a storage's cursor of theirs", runlane.ErrValidationFailed, err)
	for _, err := range e.ours.Runs().Events(ctx, id, &core.EventOptions{After: event}) {
		e.refused("a cursor of their events", runlane.ErrValidationFailed, err)
	}
	for _, err := range e.theirs.Runs().Events(ctx, "run_1", &core.EventOptions{After: event}) {
		e.refused("a cursor of another run's events", runlane.ErrValidationFailed, err)
	}

	// The same id and keys are free here, and what is done here changes nothing there.
	mine := e.trigger(e.ours, "3", id)
	if _, err := e.ours.Runs().Cancel(ctx, mine.ID, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := e.ours.Runs().CancelAll(ctx, &core.BulkOptions{AllRuns: true}); err != nil {
		t.Fatal(err)
	}
	after, err := e.theirs.Runs().Get(ctx, id)
	if err != nil || after.Status != runlane.StatusQueued || after.EventSequence != e.theirRun.EventSequence {
		t.Errorf("their run is %+v, %v", after, err)
	}
	listed, err := e.ours.Runs().List(ctx, nil)
	if err != nil || len(listed.Items) != 1 || listed.Items[0].ID != mine.ID {
		t.Errorf("our list has %+v, %v", listed, err)
	}
}
