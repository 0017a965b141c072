package lives

import (
	"context"
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// door is a process's way to the storage. What goes through it may be the last that the process does; on memory
// storage, which has no
// requests that could go wrong, calls go wrong here. Optional abilities stay behind it: no life needs them.
type door struct {
	lane.Storage

	p *process
}

// Start does nothing: the storage is everybody's.
func (d *door) Start(context.Context) error { return nil }

// Close does nothing.
func (d *door) Close(context.Context) error { return nil }

// touches names the run of a write, and remembers to look at it.
func (d *door) touches(run *runlane.Run) string {
	d.p.life.book.touch(run.ID)
	return string(run.ID)
}

// listed names what a call is about by the first of several.
func listed[T ~string](ids []T) string {
	if len(ids) == 0 {
		return ""
	}
	return fmt.Sprint(ids[0], len(ids))
}

func rows(refs []lane.OutboxRef) string {
	if len(refs) == 0 {
		return ""
	}
	return fmt.Sprint(refs[0].ID, len(refs))
}

func failures(list []lane.OutboxFailure) string {
	if len(list) == 0 {
		return ""
	}
	return fmt.Sprint(list[0].ID, len(list))
}

// reach makes one call of a process, unless the process or the call meets something.
func reach[T any](d *door, method, about string, do func() (T, error)) (T, error) {
	var none T
	p := d.p
	if p.dies(deathBefore, method, about) {
		return none, errDead()
	}
	if p.meets(failedCall, method, about) {
		return none, unavailable(method, "not committed")
	}
	got, err := do()
	if p.dies(deathAfter, method, about) {
		return none, errDead()
	}
	switch {
	case err == nil && p.meets(unheard, method, about):
		return none, unavailable(method, "unknown")
	case method == "ClaimOutboxMessages", method == "PruneRuns": // a second one would do more
	case err == nil && p.meets(repeated, method, about):
		_, _ = do() // the caller hears the first answer
	}
	return got, err
}

// reachDo makes a call that only succeeds or fails.
func reachDo(d *door, method, about string, do func() error) error {
	_, err := reach(d, method, about, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

func unavailable(method, what string) *runlane.Error {
	return &runlane.Error{
		Code:      runlane.ErrStorageUnavailable,
		Message:   method + " went wrong",
		Retryable: true,
		Meta:      map[string]string{"outcome": what},
	}
}

func (d *door) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	return reach(d, "AppendRunEvents", d.touches(c.Projected), func() (*lane.Commit, error) {
		commit, err := d.Storage.AppendRunEvents(ctx, c)
		if err == nil && c.Creates() { // it is there from now on, also for those who do not hear of it
			d.p.life.book.answers(c.Projected.ID)
		}
		return commit, err
	})
}

func (d *door) GetRun(ctx context.Context, key lane.RunKey) (*runlane.Run, error) {
	return reach(d, "GetRun", string(key.RunID), func() (*runlane.Run, error) {
		return d.Storage.GetRun(ctx, key)
	})
}

func (d *door) GetRuns(ctx context.Context, q *lane.RunsQuery) ([]*runlane.Run, error) {
	return reach(d, "GetRuns", listed(q.IDs), func() ([]*runlane.Run, error) {
		return d.Storage.GetRuns(ctx, q)
	})
}

func (d *door) GetRunByIdempotencyKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	return reach(d, "GetRunByIdempotencyKey", key.Key, func() (*runlane.Run, error) {
		return d.Storage.GetRunByIdempotencyKey(ctx, key)
	})
}

func (d *door) GetRunBySingletonKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	return reach(d, "GetRunBySingletonKey", key.Key, func() (*runlane.Run, error) {
		return d.Storage.GetRunBySingletonKey(ctx, key)
	})
}

func (d *door) ResetIdempotencyKey(ctx context.Context, key lane.OwnerKey) error {
	return reachDo(d, "ResetIdempotencyKey", key.Key, func() error { return d.Storage.ResetIdempotencyKey(ctx, key) })
}

func (d *door) InspectRun(ctx context.Context, q *lane.InspectQuery) (*lane.Inspection, error) {
	return reach(d, "InspectRun", string(q.RunID), func() (*lane.Inspection, error) {
		return d.Storage.InspectRun(ctx, q)
	})
}

func (d *door) ListRuns(ctx context.Context, q *lane.RunQuery) (*runlane.Page[runlane.RunSummary], error) {
	return reach(d, "ListRuns", "", func() (*runlane.Page[runlane.RunSummary], error) {
		return d.Storage.ListRuns(ctx, q)
	})
}

func (d *door) ListRunEvents(ctx context.Context, q *lane.EventQuery) (*runlane.Page[runlane.EventRecord], error) {
	return reach(d, "ListRunEvents", string(q.RunID), func() (*runlane.Page[runlane.EventRecord], error) {
		return d.Storage.ListRunEvents(ctx, q)
	})
}

func (d *door) ListRunnableRuns(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return reach(d, "ListRunnableRuns", "", func() (*runlane.Page[lane.RunRef], error) {
		return d.Storage.ListRunnableRuns(ctx, q)
	})
}

func (d *door) ListRunsNeedingDispatch(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return reach(d, "ListRunsNeedingDispatch", "", func() (*runlane.Page[lane.RunRef], error) {
		return d.Storage.ListRunsNeedingDispatch(ctx, q)
	})
}

func (d *door) ListRunsNeedingDelivery(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return reach(d, "ListRunsNeedingDelivery", "", func() (*runlane.Page[lane.RunRef], error) {
		return d.Storage.ListRunsNeedingDelivery(ctx, q)
	})
}

func (d *door) ListRunsNeedingRedelivery(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return reach(d, "ListRunsNeedingRedelivery", "", func() (*runlane.Page[lane.RunRef], error) {
		return d.Storage.ListRunsNeedingRedelivery(ctx, q)
	})
}

func (d *door) ListRunsNeedingCancellationFinalization(
	ctx context.Context, q *lane.DueQuery,
) (*runlane.Page[lane.RunRef], error) {
	return reach(d, "ListRunsNeedingCancellationFinalization", "", func() (*runlane.Page[lane.RunRef], error) {
		return d.Storage.ListRunsNeedingCancellationFinalization(ctx, q)
	})
}

func (d *door) ReserveRunDispatch(ctx context.Context, c *lane.ReserveCommand) (*lane.Acquisition, error) {
	return reach(d, "ReserveRunDispatch", d.touches(c.Projected), func() (*lane.Acquisition, error) {
		return d.Storage.ReserveRunDispatch(ctx, c)
	})
}

func (d *door) ReleaseRunDispatch(ctx context.Context, c *lane.ReleaseDispatchCommand) (bool, error) {
	return reach(d, "ReleaseRunDispatch", string(c.RunID), func() (bool, error) {
		return d.Storage.ReleaseRunDispatch(ctx, c)
	})
}

func (d *door) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	return reach(d, "ClaimRunLease", d.touches(c.Projected), func() (*lane.Acquisition, error) {
		return d.Storage.ClaimRunLease(ctx, c)
	})
}

func (d *door) HeartbeatRunLease(ctx context.Context, c *lane.HeartbeatCommand) (*lane.Commit, error) {
	return reach(d, "HeartbeatRunLease", d.touches(c.Projected), func() (*lane.Commit, error) {
		return d.Storage.HeartbeatRunLease(ctx, c)
	})
}

func (d *door) ReleaseRunLease(ctx context.Context, c *lane.ReleaseCommand) error {
	return reachDo(d, "ReleaseRunLease", string(c.RunID), func() error { return d.Storage.ReleaseRunLease(ctx, c) })
}

func (d *door) ReadMail(ctx context.Context, q *lane.MailQuery) (*lane.Mail, error) {
	return reach(d, "ReadMail", string(q.RunID), func() (*lane.Mail, error) {
		return d.Storage.ReadMail(ctx, q)
	})
}

func (d *door) SendSignal(ctx context.Context, c *lane.SignalCommand) (*lane.Commit, error) {
	return reach(d, "SendSignal", string(c.RunID), func() (*lane.Commit, error) {
		return d.Storage.SendSignal(ctx, c)
	})
}

func (d *door) BeginCall(ctx context.Context, c *lane.CallCommand) (*lane.RunCall, error) {
	return reach(d, "BeginCall", string(c.RunID), func() (*lane.RunCall, error) {
		return d.Storage.BeginCall(ctx, c)
	})
}

func (d *door) ReadCalls(ctx context.Context, q *lane.CallQuery) (*lane.CallsRead, error) {
	return reach(d, "ReadCalls", string(q.RunID), func() (*lane.CallsRead, error) {
		return d.Storage.ReadCalls(ctx, q)
	})
}

func (d *door) ListRunsToTell(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return reach(d, "ListRunsToTell", "", func() (*runlane.Page[lane.RunRef], error) {
		return d.Storage.ListRunsToTell(ctx, q)
	})
}

func (d *door) TellEnd(ctx context.Context, c *lane.TellCommand) (*lane.Commit, error) {
	return reach(d, "TellEnd", string(c.RunID), func() (*lane.Commit, error) {
		return d.Storage.TellEnd(ctx, c)
	})
}

func (d *door) PutFlow(ctx context.Context, c *lane.FlowCommand) (*lane.FlowRecord, error) {
	return reach(d, "PutFlow", string(c.Flow.ID), func() (*lane.FlowRecord, error) {
		return d.Storage.PutFlow(ctx, c)
	})
}

func (d *door) GetFlow(ctx context.Context, q *lane.FlowRead) (*lane.FlowRecord, error) {
	return reach(d, "GetFlow", string(q.FlowID), func() (*lane.FlowRecord, error) {
		return d.Storage.GetFlow(ctx, q)
	})
}

func (d *door) ListFlows(ctx context.Context, q *lane.FlowQuery) (*runlane.Page[lane.FlowRecord], error) {
	return reach(d, "ListFlows", "", func() (*runlane.Page[lane.FlowRecord], error) {
		return d.Storage.ListFlows(ctx, q)
	})
}

func (d *door) KeepRecord(ctx context.Context, c *lane.KeepCommand) (*lane.StepRecord, error) {
	return reach(d, "KeepRecord", string(c.RunID), func() (*lane.StepRecord, error) {
		return d.Storage.KeepRecord(ctx, c)
	})
}

func (d *door) ListRecords(ctx context.Context, q *lane.RecordQuery) (*runlane.Page[lane.StepRecord], error) {
	return reach(d, "ListRecords", string(q.RunID), func() (*runlane.Page[lane.StepRecord], error) {
		return d.Storage.ListRecords(ctx, q)
	})
}

func (d *door) PutSchedule(ctx context.Context, c *lane.PutScheduleCommand) (*runlane.ScheduleRecord, error) {
	return reach(d, "PutSchedule", string(c.Record.ID), func() (*runlane.ScheduleRecord, error) {
		return d.Storage.PutSchedule(ctx, c)
	})
}

func (d *door) GetSchedule(ctx context.Context, key lane.ScheduleKey) (*runlane.ScheduleRecord, error) {
	return reach(d, "GetSchedule", string(key.ScheduleID), func() (*runlane.ScheduleRecord, error) {
		return d.Storage.GetSchedule(ctx, key)
	})
}

func (d *door) ListSchedules(ctx context.Context, q *lane.PageQuery) (*runlane.Page[runlane.ScheduleRecord], error) {
	return reach(d, "ListSchedules", "", func() (*runlane.Page[runlane.ScheduleRecord], error) {
		return d.Storage.ListSchedules(ctx, q)
	})
}

func (d *door) ClaimScheduleOccurrence(
	ctx context.Context, c *lane.ClaimOccurrenceCommand,
) (*lane.OccurrenceClaim, error) {
	return reach(d, "ClaimScheduleOccurrence", c.FireTime.String(), func() (*lane.OccurrenceClaim, error) {
		return d.Storage.ClaimScheduleOccurrence(ctx, c)
	})
}

func (d *door) CompleteScheduleOccurrence(ctx context.Context, c *lane.CompleteOccurrenceCommand) error {
	return reachDo(
		d,
		"CompleteScheduleOccurrence",
		c.FireTime.String(),
		func() error { return d.Storage.CompleteScheduleOccurrence(ctx, c) },
	)
}

func (d *door) ListScheduleOccurrences(
	ctx context.Context, q *lane.OccurrenceQuery,
) (*runlane.Page[runlane.Occurrence], error) {
	return reach(d, "ListScheduleOccurrences", "", func() (*runlane.Page[runlane.Occurrence], error) {
		return d.Storage.ListScheduleOccurrences(ctx, q)
	})
}

func (d *door) ClaimOutboxMessages(ctx context.Context, c *lane.ClaimOutboxCommand) ([]lane.OutboxMessage, error) {
	return reach(d, "ClaimOutboxMessages", listed(c.IDs), func() ([]lane.OutboxMessage, error) {
		return d.Storage.ClaimOutboxMessages(ctx, c)
	})
}

func (d *door) MarkOutboxMessagesPublished(ctx context.Context, c *lane.MarkPublishedCommand) error {
	return reachDo(
		d,
		"MarkOutboxMessagesPublished",
		rows(c.Messages),
		func() error { return d.Storage.MarkOutboxMessagesPublished(ctx, c) },
	)
}

func (d *door) MarkOutboxMessagesFailed(ctx context.Context, c *lane.MarkFailedCommand) error {
	return reachDo(
		d,
		"MarkOutboxMessagesFailed",
		failures(c.Messages),
		func() error { return d.Storage.MarkOutboxMessagesFailed(ctx, c) },
	)
}

func (d *door) MarkOutboxMessagesDeadLettered(ctx context.Context, c *lane.MarkDeadLetteredCommand) error {
	return reachDo(
		d,
		"MarkOutboxMessagesDeadLettered",
		failures(c.Messages),
		func() error { return d.Storage.MarkOutboxMessagesDeadLettered(ctx, c) },
	)
}

func (d *door) ListDeadLetters(
	ctx context.Context, q *lane.DeadLetterQuery,
) (*runlane.Page[runlane.DeadLetter], error) {
	return reach(d, "ListDeadLetters", "", func() (*runlane.Page[runlane.DeadLetter], error) {
		return d.Storage.ListDeadLetters(ctx, q)
	})
}

func (d *door) RequeueDeadLetters(ctx context.Context, c *lane.RequeueCommand) (int, error) {
	return reach(d, "RequeueDeadLetters", listed(c.IDs), func() (int, error) {
		return d.Storage.RequeueDeadLetters(ctx, c)
	})
}

func (d *door) PruneRuns(ctx context.Context, c *lane.PruneCommand) (*lane.PruneProgress, error) {
	return reach(d, "PruneRuns", "", func() (*lane.PruneProgress, error) {
		return d.Storage.PruneRuns(ctx, c)
	})
}
