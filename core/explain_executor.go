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

// executor is what is known about who could execute a waiting run. The zero value means that there is nothing to
// report.
type executor struct {
	missing    bool          // no program is known that has a handler
	elsewhere  bool          // no task is known that belongs to the run's queue
	timeout    time.Duration // of the task
	invocation time.Duration // its queue is made for functions that take at most this long; 0: not known
	met        int           // the highest version of the task that went on with it; 0: none, or not known
	own        int           // the version of the task here, or the one that ticks store; -1: not known
}

// executorOf finds a handler of an active run that no worker executes, and a task of its queue: here, otherwise among
// the tasks that ticks have stored. What cannot be read is unknown: the run is explained all the same.
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

// metVersion is the highest version of its task that has gone on with a run. One that no attempt has released is held
// by none.
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

// held tells of a run that only a newer version of its task goes on with.
func (x executor) held() string {
	if x.met == 0 || x.own >= x.met {
		return ""
	}
	said := fmt.Sprintf(
		" Version %d of its task has gone on with it, and only that one or a later one does now:",
		x.met,
	)
	if x.own < 0 {
		return said + " none is known here."
	}
	return fmt.Sprintf("%s the one here is version %d. Deploy version %d, or cancel the run.", said, x.own, x.met)
}

func (x executor) text(run *runlane.Run) string {
	switch held := x.held(); {
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
			" No task that is known belongs to its queue %q. A worker receives from the queues of its handlers "+
				"unless it is told others (WorkOptions.Queues), a function from those that it is mapped to: check "+
				"that one does, or cancel the run.",
			run.Queue,
		)
	case x.invocation > 0 && x.timeout > LongestTimeout(x.invocation):
		return fmt.Sprintf(
			" Its task has a timeout of %s, and the functions that its queue is made for take %s, of which a handler "+
				"has %s: none of them ever executes it. Shorten the timeout, lengthen the functions' "+
				"(BridgeTimeout, or the added function's parameter), or execute it in a long-lived worker.",
			runlane.FormatDuration(x.timeout),
			runlane.FormatDuration(x.invocation),
			runlane.FormatDuration(LongestTimeout(x.invocation)),
		)
	default:
		return ""
	}
}

// invocationReader is the optional ability to tell how long an invocation may take that executes a queue's wakeups, for
// queues that functions read. Explanations compare tasks with it.
type invocationReader interface {
	// InvocationTime is 0 where the queue does not tell.
	InvocationTime(ctx context.Context, queue runlane.QueueName) (time.Duration, error)
}
