package core

import (
	"context"
	"log/slog"

	"github.com/runlane/runlane-go"
)

// warnOfIdleKeys warns about concurrency keys in unlimited queues, as far as known when the runtime opens.
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

// warnOfIdleKey warns once for each task and queue about a concurrency key without effect. A key has an effect if the
// queue has a limit, or its wakeups have groups.
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

// warnOfEmptyKeys warns once for each task that a key function returned "", so that nothing prevents duplicate runs. ""
// means no key, but may as well be a field that was not filled in.
func (rt *Runtime) warnOfEmptyKeys(p *plan) {
	keys := p.task.Keys
	var key string
	switch {
	case p.node != nil || p.parentCall != "": // the derived run id prevents duplicates
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
