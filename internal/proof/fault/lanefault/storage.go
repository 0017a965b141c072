package lanefault

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Storage is a storage whose calls go wrong as the plan says: with runlane.ErrStorageUnavailable, its Meta
// "outcome" being "unknown" or "not committed". lane.As finds the abilities of the storage behind it, which do not go
// wrong.
func Storage(s lane.Storage, plan *Plan) lane.Storage {
	return &faultyStorage{Storage: s, plan: plan}
}

type faultyStorage struct {
	lane.Storage
	plan *Plan
}

// Unwrap lets lane.As find what the storage can do besides.
func (s *faultyStorage) Unwrap() lane.Storage { return s.Storage }

// storageCall makes a call that answers.
func storageCall[T any](ctx context.Context, s *faultyStorage, method string, call func() (T, error)) (T, error) {
	return faulty(ctx, s.plan, method, runlane.ErrStorageUnavailable, call)
}

// storageDo makes a call that only succeeds or fails.
func storageDo(ctx context.Context, s *faultyStorage, method string, call func() error) error {
	_, err := storageCall(ctx, s, method, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

func (s *faultyStorage) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	return storageCall(ctx, s, "AppendRunEvents", func() (*lane.Commit, error) {
		return s.Storage.AppendRunEvents(ctx, c)
	})
}

func (s *faultyStorage) GetRun(ctx context.Context, key lane.RunKey) (*runlane.Run, error) {
	return storageCall(ctx, s, "GetRun", func() (*runlane.Run, error) {
		return s.Storage.GetRun(ctx, key)
	})
}

func (s *faultyStorage) GetRuns(ctx context.Context, q *lane.RunsQuery) ([]*runlane.Run, error) {
	return storageCall(ctx, s, "GetRuns", func() ([]*runlane.Run, error) {
		return s.Storage.GetRuns(ctx, q)
	})
}

func (s *faultyStorage) GetRunByIdempotencyKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	return storageCall(ctx, s, "GetRunByIdempotencyKey", func() (*runlane.Run, error) {
		return s.Storage.GetRunByIdempotencyKey(ctx, key)
	})
}

func (s *faultyStorage) GetRunBySingletonKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	return storageCall(ctx, s, "GetRunBySingletonKey", func() (*runlane.Run, error) {
		return s.Storage.GetRunBySingletonKey(ctx, key)
	})
}

func (s *faultyStorage) ResetIdempotencyKey(ctx context.Context, key lane.OwnerKey) error {
	return storageDo(ctx, s, "ResetIdempotencyKey", func() error { return s.Storage.ResetIdempotencyKey(ctx, key) })
}

func (s *faultyStorage) InspectRun(ctx context.Context, q *lane.InspectQuery) (*lane.Inspection, error) {
	return storageCall(ctx, s, "InspectRun", func() (*lane.Inspection, error) {
		return s.Storage.InspectRun(ctx, q)
	})
}

func (s *faultyStorage) ListRuns(ctx context.Context, q *lane.RunQuery) (*runlane.Page[runlane.RunSummary], error) {
	return storageCall(ctx, s, "ListRuns", func() (*runlane.Page[runlane.RunSummary], error) {
		return s.Storage.ListRuns(ctx, q)
	})
}

func (s *faultyStorage) ListRunEvents(
	ctx context.Context, q *lane.EventQuery,
) (*runlane.Page[runlane.EventRecord], error) {
	return storageCall(ctx, s, "ListRunEvents", func() (*runlane.Page[runlane.EventRecord], error) {
		return s.Storage.ListRunEvents(ctx, q)
	})
}

func (s *faultyStorage) ListRunnableRuns(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return storageCall(ctx, s, "ListRunnableRuns", func() (*runlane.Page[lane.RunRef], error) {
		return s.Storage.ListRunnableRuns(ctx, q)
	})
}

func (s *faultyStorage) ListRunsNeedingDispatch(
	ctx context.Context, q *lane.DueQuery,
) (*runlane.Page[lane.RunRef], error) {
	return storageCall(ctx, s, "ListRunsNeedingDispatch", func() (*runlane.Page[lane.RunRef], error) {
		return s.Storage.ListRunsNeedingDispatch(ctx, q)
	})
}

func (s *faultyStorage) ListRunsNeedingDelivery(
	ctx context.Context, q *lane.DueQuery,
) (*runlane.Page[lane.RunRef], error) {
	return storageCall(ctx, s, "ListRunsNeedingDelivery", func() (*runlane.Page[lane.RunRef], error) {
		return s.Storage.ListRunsNeedingDelivery(ctx, q)
	})
}

func (s *faultyStorage) ListRunsNeedingRedelivery(
	ctx context.Context, q *lane.DueQuery,
) (*runlane.Page[lane.RunRef], error) {
	return storageCall(ctx, s, "ListRunsNeedingRedelivery", func() (*runlane.Page[lane.RunRef], error) {
		return s.Storage.ListRunsNeedingRedelivery(ctx, q)
	})
}

func (s *faultyStorage) ListRunsNeedingCancellationFinalization(
	ctx context.Context, q *lane.DueQuery,
) (*runlane.Page[lane.RunRef], error) {
	return storageCall(ctx, s, "ListRunsNeedingCancellationFinalization", func() (*runlane.Page[lane.RunRef], error) {
		return s.Storage.ListRunsNeedingCancellationFinalization(ctx, q)
	})
}

func (s *faultyStorage) ReserveRunDispatch(ctx context.Context, c *lane.ReserveCommand) (*lane.Acquisition, error) {
	return storageCall(ctx, s, "ReserveRunDispatch", func() (*lane.Acquisition, error) {
		return s.Storage.ReserveRunDispatch(ctx, c)
	})
}

func (s *faultyStorage) ReleaseRunDispatch(ctx context.Context, c *lane.ReleaseDispatchCommand) (bool, error) {
	return storageCall(ctx, s, "ReleaseRunDispatch", func() (bool, error) {
		return s.Storage.ReleaseRunDispatch(ctx, c)
	})
}

func (s *faultyStorage) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	return storageCall(ctx, s, "ClaimRunLease", func() (*lane.Acquisition, error) {
		return s.Storage.ClaimRunLease(ctx, c)
	})
}

func (s *faultyStorage) HeartbeatRunLease(ctx context.Context, c *lane.HeartbeatCommand) (*lane.Commit, error) {
	return storageCall(ctx, s, "HeartbeatRunLease", func() (*lane.Commit, error) {
		return s.Storage.HeartbeatRunLease(ctx, c)
	})
}

func (s *faultyStorage) ReleaseRunLease(ctx context.Context, c *lane.ReleaseCommand) error {
	return storageDo(ctx, s, "ReleaseRunLease", func() error { return s.Storage.ReleaseRunLease(ctx, c) })
}

func (s *faultyStorage) ReadMail(ctx context.Context, q *lane.MailQuery) (*lane.Mail, error) {
	return storageCall(ctx, s, "ReadMail", func() (*lane.Mail, error) {
		return s.Storage.ReadMail(ctx, q)
	})
}

func (s *faultyStorage) SendSignal(ctx context.Context, c *lane.SignalCommand) (*lane.Commit, error) {
	return storageCall(ctx, s, "SendSignal", func() (*lane.Commit, error) {
		return s.Storage.SendSignal(ctx, c)
	})
}

func (s *faultyStorage) BeginCall(ctx context.Context, c *lane.CallCommand) (*lane.RunCall, error) {
	return storageCall(ctx, s, "BeginCall", func() (*lane.RunCall, error) {
		return s.Storage.BeginCall(ctx, c)
	})
}

func (s *faultyStorage) ReadCalls(ctx context.Context, q *lane.CallQuery) (*lane.CallsRead, error) {
	return storageCall(ctx, s, "ReadCalls", func() (*lane.CallsRead, error) {
		return s.Storage.ReadCalls(ctx, q)
	})
}

func (s *faultyStorage) ListRunsToTell(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return storageCall(ctx, s, "ListRunsToTell", func() (*runlane.Page[lane.RunRef], error) {
		return s.Storage.ListRunsToTell(ctx, q)
	})
}

func (s *faultyStorage) TellEnd(ctx context.Context, c *lane.TellCommand) (*lane.Commit, error) {
	return storageCall(ctx, s, "TellEnd", func() (*lane.Commit, error) {
		return s.Storage.TellEnd(ctx, c)
	})
}

func (s *faultyStorage) PutFlow(ctx context.Context, c *lane.FlowCommand) (*lane.FlowRecord, error) {
	return storageCall(ctx, s, "PutFlow", func() (*lane.FlowRecord, error) {
		return s.Storage.PutFlow(ctx, c)
	})
}

func (s *faultyStorage) GetFlow(ctx context.Context, q *lane.FlowRead) (*lane.FlowRecord, error) {
	return storageCall(ctx, s, "GetFlow", func() (*lane.FlowRecord, error) {
		return s.Storage.GetFlow(ctx, q)
	})
}

func (s *faultyStorage) ListFlows(ctx context.Context, q *lane.FlowQuery) (*runlane.Page[lane.FlowRecord], error) {
	return storageCall(ctx, s, "ListFlows", func() (*runlane.Page[lane.FlowRecord], error) {
		return s.Storage.ListFlows(ctx, q)
	})
}

func (s *faultyStorage) KeepRecord(ctx context.Context, c *lane.KeepCommand) (*lane.StepRecord, error) {
	return storageCall(ctx, s, "KeepRecord", func() (*lane.StepRecord, error) {
		return s.Storage.KeepRecord(ctx, c)
	})
}

func (s *faultyStorage) ListRecords(
	ctx context.Context, q *lane.RecordQuery,
) (*runlane.Page[lane.StepRecord], error) {
	return storageCall(ctx, s, "ListRecords", func() (*runlane.Page[lane.StepRecord], error) {
		return s.Storage.ListRecords(ctx, q)
	})
}

func (s *faultyStorage) PutSchedule(ctx context.Context, c *lane.PutScheduleCommand) (*runlane.ScheduleRecord, error) {
	return storageCall(ctx, s, "PutSchedule", func() (*runlane.ScheduleRecord, error) {
		return s.Storage.PutSchedule(ctx, c)
	})
}

func (s *faultyStorage) GetSchedule(ctx context.Context, key lane.ScheduleKey) (*runlane.ScheduleRecord, error) {
	return storageCall(ctx, s, "GetSchedule", func() (*runlane.ScheduleRecord, error) {
		return s.Storage.GetSchedule(ctx, key)
	})
}

func (s *faultyStorage) ListSchedules(
	ctx context.Context, q *lane.PageQuery,
) (*runlane.Page[runlane.ScheduleRecord], error) {
	return storageCall(ctx, s, "ListSchedules", func() (*runlane.Page[runlane.ScheduleRecord], error) {
		return s.Storage.ListSchedules(ctx, q)
	})
}

func (s *faultyStorage) ClaimScheduleOccurrence(
	ctx context.Context, c *lane.ClaimOccurrenceCommand,
) (*lane.OccurrenceClaim, error) {
	return storageCall(ctx, s, "ClaimScheduleOccurrence", func() (*lane.OccurrenceClaim, error) {
		return s.Storage.ClaimScheduleOccurrence(ctx, c)
	})
}

func (s *faultyStorage) CompleteScheduleOccurrence(ctx context.Context, c *lane.CompleteOccurrenceCommand) error {
	return storageDo(ctx, s, "CompleteScheduleOccurrence", func() error {
		return s.Storage.CompleteScheduleOccurrence(ctx, c)
	})
}

func (s *faultyStorage) ListScheduleOccurrences(
	ctx context.Context, q *lane.OccurrenceQuery,
) (*runlane.Page[runlane.Occurrence], error) {
	return storageCall(ctx, s, "ListScheduleOccurrences", func() (*runlane.Page[runlane.Occurrence], error) {
		return s.Storage.ListScheduleOccurrences(ctx, q)
	})
}

func (s *faultyStorage) ClaimOutboxMessages(
	ctx context.Context, c *lane.ClaimOutboxCommand,
) ([]lane.OutboxMessage, error) {
	return storageCall(ctx, s, "ClaimOutboxMessages", func() ([]lane.OutboxMessage, error) {
		return s.Storage.ClaimOutboxMessages(ctx, c)
	})
}

func (s *faultyStorage) MarkOutboxMessagesPublished(ctx context.Context, c *lane.MarkPublishedCommand) error {
	return storageDo(ctx, s, "MarkOutboxMessagesPublished", func() error {
		return s.Storage.MarkOutboxMessagesPublished(ctx, c)
	})
}

func (s *faultyStorage) MarkOutboxMessagesFailed(ctx context.Context, c *lane.MarkFailedCommand) error {
	return storageDo(ctx, s, "MarkOutboxMessagesFailed", func() error {
		return s.Storage.MarkOutboxMessagesFailed(ctx, c)
	})
}

func (s *faultyStorage) MarkOutboxMessagesDeadLettered(ctx context.Context, c *lane.MarkDeadLetteredCommand) error {
	return storageDo(ctx, s, "MarkOutboxMessagesDeadLettered", func() error {
		return s.Storage.MarkOutboxMessagesDeadLettered(ctx, c)
	})
}

func (s *faultyStorage) ListDeadLetters(
	ctx context.Context, q *lane.DeadLetterQuery,
) (*runlane.Page[runlane.DeadLetter], error) {
	return storageCall(ctx, s, "ListDeadLetters", func() (*runlane.Page[runlane.DeadLetter], error) {
		return s.Storage.ListDeadLetters(ctx, q)
	})
}

func (s *faultyStorage) RequeueDeadLetters(ctx context.Context, c *lane.RequeueCommand) (int, error) {
	return storageCall(ctx, s, "RequeueDeadLetters", func() (int, error) {
		return s.Storage.RequeueDeadLetters(ctx, c)
	})
}

func (s *faultyStorage) PruneRuns(ctx context.Context, c *lane.PruneCommand) (*lane.PruneProgress, error) {
	return storageCall(ctx, s, "PruneRuns", func() (*lane.PruneProgress, error) {
		return s.Storage.PruneRuns(ctx, c)
	})
}
