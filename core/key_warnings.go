package core

import (
	"context"
	"log/slog"

	"github.com/runlane/runlane-go"
)

// warnOfIdleKeys warns of concurrency keys in queues without a limit that are known when the runtime opens.
func (rt *Runtime) warnOfIdleKeys(ctx context.Context) {
	for _, h := range rt.handlers {
		if h.Task.Keys.Concurrency {
			rt.warnOfIdleKey(ctx, h.Task.ID, rt.policy(h.Task.Queue.Name))
		}
	}
	for _, s := range rt.schedules.All() {
		if s.Prepared.ConcurrencyKey != "" {
			rt.warnOfIdleKey(ctx, s.Call.Task.ID, s.Call.Task.Queue)
		}
	}
}

// warnOfIdleKey warns once a task and queue of a concurrency key that has no effect. It has one where the queue has a
// limit, or where its wakeups have groups.
func (rt *Runtime) warnOfIdleKey(ctx context.Context, task runlane.TaskID, queue runlane.Queue) {
	if queue.Bounded() || rt.ordered(queue.Name) || rt.lane.Transport.Fair(queue.Name) {
		return
	}
	type warned struct {
		task  runlane.TaskID
		queue runlane.QueueName
	}
	if _, before := rt.keysWarned.LoadOrStore(warned{task, queue.Name}, true); before {
		return
	}
	rt.logger.LogAttrs(ctx, slog.LevelWarn, "concurrency key without effect: the queue has no limit",
		slog.String(attrTask, string(task)), slog.String(attrQueue, string(queue.Name)),
		slog.String("hint", "give the queue a Concurrency, or the run no ConcurrencyKey"))
}

// warnOfEmptyKeys warns of a task whose function returned no key that keeps a run from being made twice, once a task:
// "" means no key, and is as likely a field that was not filled in.
func (rt *Runtime) warnOfEmptyKeys(p *plan) {
	keys := p.task.Keys
	var key string
	switch {
	case p.node != nil || p.call != "": // their ids make them one run
		return
	case keys.Idempotency && p.idempotencyKey == "":
		key = "idempotency key"
	case keys.Singleton && p.singletonKey == "":
		key = "singleton key"
	default:
		return
	}
	type warned struct {
		task runlane.TaskID
		key  string
	}
	if _, before := rt.keysWarned.LoadOrStore(warned{p.task.ID, key}, true); before {
		return
	}
	rt.logger.LogAttrs(context.Background(), slog.LevelWarn, "a task computed an empty key: its run has none",
		slog.String(attrTask, string(p.task.ID)), slog.String("key", key),
		slog.String("hint", "fill in the field of the payload that the key function reads"))
}
