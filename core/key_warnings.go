package core

import (
	"context"
	"log/slog"

	"github.com/runlane/runlane-go"
)

// warnOfIdleKeys warns once, when the runtime opens, of concurrency keys in queues without a limit.
func (rt *Runtime) warnOfIdleKeys(ctx context.Context) {
	for _, h := range rt.handlers {
		if !h.Task.Keys.Concurrency || rt.policy(h.Task.Queue.Name).Bounded() {
			continue
		}
		rt.logger.LogAttrs(ctx, slog.LevelWarn, "concurrency key without effect: the queue has no limit",
			slog.String(attrTask, string(h.Task.ID)), slog.String(attrQueue, string(h.Task.Queue.Name)),
			slog.String("hint", "give the queue a Concurrency, or the task no ConcurrencyKey"))
	}
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
