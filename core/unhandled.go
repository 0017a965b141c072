package core

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// warnUnhandled logs once the tasks of other programs that share the worker's bindings and have no handler here: this
// process gets their wakeups and hands them back. It is silent if the catalog cannot be read.
func (w *worker) warnUnhandled(ctx context.Context) {
	if w.receiver == nil {
		return // polling asks only for runs of its tasks
	}
	tasks, err := w.rt.Tasks().List(ctx)
	if err != nil {
		return
	}
	transport := w.rt.lane.Transport
	read := map[runlane.QueueName]bool{}
	for _, queue := range w.options.Queues {
		if binding, ok := lane.CarrierOf(transport, queue); ok {
			read[binding] = true
		}
	}
	var lacking []string
	for _, task := range tasks {
		binding, ok := lane.CarrierOf(transport, task.Queue.Name)
		_, here := w.rt.handlers[task.ID]
		if ok && !here && read[binding] && !task.Gone(w.rt.world.Now()) {
			lacking = append(lacking, string(task.ID))
		}
	}
	if len(lacking) == 0 {
		return
	}
	slices.Sort(lacking)
	w.rt.logger.LogAttrs(
		ctx, slog.LevelWarn,
		"tasks that ran lately have no handler here: if you removed them, leave it, it is forgotten after two days; else "+
			"this worker hands their wakeups back: give it the handlers, or the tasks a queue with a separate binding",
		slog.String("tasks", strings.Join(lacking, ", ")),
		slog.String(attrWorkerID, w.options.WorkerID),
	)
}
