package core

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// executor describes who could execute a waiting run. The zero value has no remark.
type executor struct {
	missing    bool          // no known program has a handler
	elsewhere  bool          // no known task belongs to the run's queue
	timeout    time.Duration // of the task
	invocation time.Duration // the longest invocation of the queue's functions; 0: not known
	met        int           // highest task version that continued the run; 0: none or not known
	own        int           // task version here, or stored by ticks; -1: not known
}

// executorOf finds a handler for an active run without a worker, and a task of its queue: here, else among the tasks
// stored by ticks. Facts that cannot be read stay unknown.
func (rt *Runtime) executorOf(ctx context.Context, run *runlane.Run) (x executor) {
	if !run.Status.Active() || run.Lease.Token != "" {
		return executor{}
	}
	h, here := rt.handlers[run.TaskID]
	x.own = -1
	if here {
		x.timeout, x.own = h.Task.Timeout, h.Task.Version
	}
	x.met = rt.metVersion(ctx, run)
	if served := slices.Contains(rt.handlerQueues(), run.Queue); rt.keepsTasks() && (!here || !served) {
		stored, err := rt.storedTasks(ctx)
		if err == nil {
			maps.DeleteFunc(stored, func(_ runlane.TaskID, r lane.TaskRecord) bool {
				return TaskState{TaskRecord: r}.Gone(rt.now())
			})
			record, known := stored[run.TaskID]
			if !here {
				if x.missing, x.timeout = !known, record.Timeout; known {
					x.own = record.Version
				}
			}
			for _, other := range stored {
				served = served || other.Queue.Name == run.Queue
			}
			x.elsewhere = !served && !x.missing
		}
	}
	if reader, ok := lane.As[invocationReader](rt.lane.Transport); ok && x.timeout > 0 {
		x.invocation, _ = reader.InvocationTime(ctx, run.Queue)
	}
	return x
}

// metVersion returns the highest task version that continued the run. Only released runs have one.
func (rt *Runtime) metVersion(ctx context.Context, run *runlane.Run) int {
	if run.Counters.Releases == 0 || !rt.storage().Capabilities().SuspendsRuns {
		return 0
	}
	records, err := rt.records(ctx, run)
	if err != nil {
		return 0
	}
	met := 0
	for i := range records {
		if records[i].Kind != runlane.StepKindVersion {
			continue
		}
		version, err := strconv.Atoi(strings.TrimPrefix(records[i].Name, versionPrefix))
		if err == nil {
			met = max(met, version)
		}
	}
	return met
}

// versionText explains that only a newer version of the task may continue the run.
func (x executor) versionText() string {
	if x.met == 0 || x.own >= x.met {
		return ""
	}
	text := fmt.Sprintf(
		" Version %d of its task has continued it, so only that version or a later one may:",
		x.met,
	)
	if x.own < 0 {
		return text + " none is known here."
	}
	return fmt.Sprintf("%s the one here is version %d. Deploy version %d, or cancel the run.", text, x.own, x.met)
}

func (x executor) text(run *runlane.Run) string {
	switch held := x.versionText(); {
	case x.missing:
		return fmt.Sprintf(
			" No handler for its task %q is known: this process has none, and no program that has one ticks here. "+
				"Deploy one, or cancel the run.",
			run.TaskID,
		) + held
	case held != "":
		return held
	case x.elsewhere:
		return fmt.Sprintf(
			" No known task belongs to its queue %q. A worker receives from the queues of its handlers "+
				"or of WorkOptions.Queues, a function from the queues mapped to it: check that one does, or cancel "+
				"the run.",
			run.Queue,
		)
	case x.invocation > 0 && x.timeout > LongestTimeout(x.invocation):
		return fmt.Sprintf(
			" Its task has a timeout of %s, and the functions of its queue run for %s, with %s for a handler: none of "+
				"them can execute it. Shorten the timeout, lengthen the functions' "+
				"(BridgeTimeout, or the added function's parameter), or execute it in a long-lived worker.",
			runlane.FormatDuration(x.timeout),
			runlane.FormatDuration(x.invocation),
			runlane.FormatDuration(LongestTimeout(x.invocation)),
		)
	default:
		return ""
	}
}

// invocationReader is a transport's optional knowledge of its functions.
type invocationReader interface {
	// InvocationTime is the longest invocation for a queue's wakeups, 0 if not known.
	InvocationTime(ctx context.Context, queue runlane.QueueName) (time.Duration, error)
}
