package lanefault

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Storage is a storage whose calls go wrong as the plan says: with runlane.ErrStorageUnavailable, its Meta
// "outcome" being "unknown" or "not committed". Tasks, progress, feed, counts and checks do not go wrong, and neither do
// the abilities that lane.As finds behind it.
func Storage(s lane.Storage, plan *Plan) lane.Storage {
	return &Around{Storage: s, Call: func(ctx context.Context, method string, _ any, call func() (any, error)) (any, error) {
		return faulty(ctx, plan, method, runlane.ErrStorageUnavailable, call)
	}}
}

// Around is a storage each of whose calls, but for its life cycle, passes through a function.
type Around struct {
	lane.Storage

	// Call makes a call of a method with its argument, or does not. nil is the answer of a call that only succeeds or fails.
	Call func(ctx context.Context, method string, argument any, call func() (any, error)) (any, error)
}

// Unwrap lets lane.As find what the storage can do besides.
func (s *Around) Unwrap() lane.Storage { return s.Storage }

// around makes a call that answers.
func around[A, T any](
	ctx context.Context, s *Around, method string, argument A, call func(lane.Storage, context.Context, A) (T, error),
) (T, error) {
	answer, err := s.Call(ctx, method, argument, func() (any, error) { return call(s.Storage, ctx, argument) })
	got, _ := answer.(T) // none where the call was not made
	return got, err
}

// aroundDo makes a call that only succeeds or fails.
func aroundDo[A any](
	ctx context.Context, s *Around, method string, argument A, call func(lane.Storage, context.Context, A) error,
) error {
	_, err := s.Call(ctx, method, argument, func() (any, error) { return nil, call(s.Storage, ctx, argument) })
	return err
}

// AppendRunEvents implements [lane.Storage].
func (s *Around) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	return around(ctx, s, "AppendRunEvents", c, lane.Storage.AppendRunEvents)
}

// GetRun implements [lane.Storage].
func (s *Around) GetRun(ctx context.Context, key lane.RunKey) (*runlane.Run, error) {
	return around(ctx, s, "GetRun", key, lane.Storage.GetRun)
}

// GetRuns implements [lane.Storage].
func (s *Around) GetRuns(ctx context.Context, q *lane.RunsQuery) ([]*runlane.Run, error) {
	return around(ctx, s, "GetRuns", q, lane.Storage.GetRuns)
}

// GetRunByIdempotencyKey implements [lane.Storage].
func (s *Around) GetRunByIdempotencyKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	return around(ctx, s, "GetRunByIdempotencyKey", key, lane.Storage.GetRunByIdempotencyKey)
}

// GetRunBySingletonKey implements [lane.Storage].
func (s *Around) GetRunBySingletonKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	return around(ctx, s, "GetRunBySingletonKey", key, lane.Storage.GetRunBySingletonKey)
}

// ResetIdempotencyKey implements [lane.Storage].
func (s *Around) ResetIdempotencyKey(ctx context.Context, key lane.OwnerKey) error {
	return aroundDo(ctx, s, "ResetIdempotencyKey", key, lane.Storage.ResetIdempotencyKey)
}

// InspectRun implements [lane.Storage].
func (s *Around) InspectRun(ctx context.Context, q *lane.InspectQuery) (*lane.Inspection, error) {
	return around(ctx, s, "InspectRun", q, lane.Storage.InspectRun)
}

// ListRuns implements [lane.Storage].
func (s *Around) ListRuns(ctx context.Context, q *lane.RunQuery) (*runlane.Page[runlane.RunSummary], error) {
	return around(ctx, s, "ListRuns", q, lane.Storage.ListRuns)
}

// ListRunEvents implements [lane.Storage].
func (s *Around) ListRunEvents(ctx context.Context, q *lane.EventQuery) (*runlane.Page[runlane.EventRecord], error) {
	return around(ctx, s, "ListRunEvents", q, lane.Storage.ListRunEvents)
}

// ListRunnableRuns implements [lane.Storage].
func (s *Around) ListRunnableRuns(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return around(ctx, s, "ListRunnableRuns", q, lane.Storage.ListRunnableRuns)
}

// ListRunsNeedingDispatch implements [lane.Storage].
func (s *Around) ListRunsNeedingDispatch(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return around(ctx, s, "ListRunsNeedingDispatch", q, lane.Storage.ListRunsNeedingDispatch)
}

// ListRunsNeedingDelivery implements [lane.Storage].
func (s *Around) ListRunsNeedingDelivery(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return around(ctx, s, "ListRunsNeedingDelivery", q, lane.Storage.ListRunsNeedingDelivery)
}

// ListRunsNeedingRedelivery implements [lane.Storage].
func (s *Around) ListRunsNeedingRedelivery(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return around(ctx, s, "ListRunsNeedingRedelivery", q, lane.Storage.ListRunsNeedingRedelivery)
}

// ListRunsNeedingCancellationFinalization implements [lane.Storage].
func (s *Around) ListRunsNeedingCancellationFinalization(
	ctx context.Context, q *lane.DueQuery,
) (*runlane.Page[lane.RunRef], error) {
	return around(ctx, s, "ListRunsNeedingCancellationFinalization", q, lane.Storage.ListRunsNeedingCancellationFinalization)
}

// ReserveRunDispatch implements [lane.Storage].
func (s *Around) ReserveRunDispatch(ctx context.Context, c *lane.ReserveCommand) (*lane.Acquisition, error) {
	return around(ctx, s, "ReserveRunDispatch", c, lane.Storage.ReserveRunDispatch)
}

// ReleaseRunDispatch implements [lane.Storage].
func (s *Around) ReleaseRunDispatch(ctx context.Context, c *lane.ReleaseDispatchCommand) (bool, error) {
	return around(ctx, s, "ReleaseRunDispatch", c, lane.Storage.ReleaseRunDispatch)
}

// ClaimRunLease implements [lane.Storage].
func (s *Around) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	return around(ctx, s, "ClaimRunLease", c, lane.Storage.ClaimRunLease)
}

// HeartbeatRunLease implements [lane.Storage].
func (s *Around) HeartbeatRunLease(ctx context.Context, c *lane.HeartbeatCommand) (*lane.Commit, error) {
	return around(ctx, s, "HeartbeatRunLease", c, lane.Storage.HeartbeatRunLease)
}

// ReleaseRunLease implements [lane.Storage].
func (s *Around) ReleaseRunLease(ctx context.Context, c *lane.ReleaseCommand) error {
	return aroundDo(ctx, s, "ReleaseRunLease", c, lane.Storage.ReleaseRunLease)
}

// ReadMail implements [lane.Storage].
func (s *Around) ReadMail(ctx context.Context, q *lane.MailQuery) (*lane.Mail, error) {
	return around(ctx, s, "ReadMail", q, lane.Storage.ReadMail)
}

// SendSignal implements [lane.Storage].
func (s *Around) SendSignal(ctx context.Context, c *lane.SignalCommand) (*lane.Commit, error) {
	return around(ctx, s, "SendSignal", c, lane.Storage.SendSignal)
}

// BeginCall implements [lane.Storage].
func (s *Around) BeginCall(ctx context.Context, c *lane.CallCommand) (*lane.RunCall, error) {
	return around(ctx, s, "BeginCall", c, lane.Storage.BeginCall)
}

// ReadCalls implements [lane.Storage].
func (s *Around) ReadCalls(ctx context.Context, q *lane.CallQuery) (*lane.CallsRead, error) {
	return around(ctx, s, "ReadCalls", q, lane.Storage.ReadCalls)
}

// ListRunsToNotify implements [lane.Storage].
func (s *Around) ListRunsToNotify(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return around(ctx, s, "ListRunsToNotify", q, lane.Storage.ListRunsToNotify)
}

// NotifyEnd implements [lane.Storage].
func (s *Around) NotifyEnd(ctx context.Context, c *lane.NotifyCommand) (*lane.Commit, error) {
	return around(ctx, s, "NotifyEnd", c, lane.Storage.NotifyEnd)
}

// PutFlow implements [lane.Storage].
func (s *Around) PutFlow(ctx context.Context, c *lane.FlowCommand) (*lane.FlowRecord, error) {
	return around(ctx, s, "PutFlow", c, lane.Storage.PutFlow)
}

// GetFlow implements [lane.Storage].
func (s *Around) GetFlow(ctx context.Context, q *lane.FlowRead) (*lane.FlowRecord, error) {
	return around(ctx, s, "GetFlow", q, lane.Storage.GetFlow)
}

// ListFlows implements [lane.Storage].
func (s *Around) ListFlows(ctx context.Context, q *lane.FlowQuery) (*runlane.Page[lane.FlowRecord], error) {
	return around(ctx, s, "ListFlows", q, lane.Storage.ListFlows)
}

// KeepRecord implements [lane.Storage].
func (s *Around) KeepRecord(ctx context.Context, c *lane.KeepCommand) (*lane.StepRecord, error) {
	return around(ctx, s, "KeepRecord", c, lane.Storage.KeepRecord)
}

// ListRecords implements [lane.Storage].
func (s *Around) ListRecords(ctx context.Context, q *lane.RecordQuery) (*runlane.Page[lane.StepRecord], error) {
	return around(ctx, s, "ListRecords", q, lane.Storage.ListRecords)
}

// PutSchedule implements [lane.Storage].
func (s *Around) PutSchedule(ctx context.Context, c *lane.PutScheduleCommand) (*runlane.ScheduleRecord, error) {
	return around(ctx, s, "PutSchedule", c, lane.Storage.PutSchedule)
}

// GetSchedule implements [lane.Storage].
func (s *Around) GetSchedule(ctx context.Context, key lane.ScheduleKey) (*runlane.ScheduleRecord, error) {
	return around(ctx, s, "GetSchedule", key, lane.Storage.GetSchedule)
}

// ListSchedules implements [lane.Storage].
func (s *Around) ListSchedules(ctx context.Context, q *lane.PageQuery) (*runlane.Page[runlane.ScheduleRecord], error) {
	return around(ctx, s, "ListSchedules", q, lane.Storage.ListSchedules)
}

// ClaimScheduleOccurrence implements [lane.Storage].
func (s *Around) ClaimScheduleOccurrence(
	ctx context.Context, c *lane.ClaimOccurrenceCommand,
) (*lane.OccurrenceClaim, error) {
	return around(ctx, s, "ClaimScheduleOccurrence", c, lane.Storage.ClaimScheduleOccurrence)
}

// CompleteScheduleOccurrence implements [lane.Storage].
func (s *Around) CompleteScheduleOccurrence(ctx context.Context, c *lane.CompleteOccurrenceCommand) error {
	return aroundDo(ctx, s, "CompleteScheduleOccurrence", c, lane.Storage.CompleteScheduleOccurrence)
}

// ListScheduleOccurrences implements [lane.Storage].
func (s *Around) ListScheduleOccurrences(
	ctx context.Context, q *lane.OccurrenceQuery,
) (*runlane.Page[runlane.Occurrence], error) {
	return around(ctx, s, "ListScheduleOccurrences", q, lane.Storage.ListScheduleOccurrences)
}

// ClaimOutboxMessages implements [lane.Storage].
func (s *Around) ClaimOutboxMessages(ctx context.Context, c *lane.ClaimOutboxCommand) ([]lane.OutboxMessage, error) {
	return around(ctx, s, "ClaimOutboxMessages", c, lane.Storage.ClaimOutboxMessages)
}

// MarkOutboxMessagesPublished implements [lane.Storage].
func (s *Around) MarkOutboxMessagesPublished(ctx context.Context, c *lane.MarkPublishedCommand) error {
	return aroundDo(ctx, s, "MarkOutboxMessagesPublished", c, lane.Storage.MarkOutboxMessagesPublished)
}

// MarkOutboxMessagesFailed implements [lane.Storage].
func (s *Around) MarkOutboxMessagesFailed(ctx context.Context, c *lane.MarkFailedCommand) error {
	return aroundDo(ctx, s, "MarkOutboxMessagesFailed", c, lane.Storage.MarkOutboxMessagesFailed)
}

// MarkOutboxMessagesDeadLettered implements [lane.Storage].
func (s *Around) MarkOutboxMessagesDeadLettered(ctx context.Context, c *lane.MarkDeadLetteredCommand) error {
	return aroundDo(ctx, s, "MarkOutboxMessagesDeadLettered", c, lane.Storage.MarkOutboxMessagesDeadLettered)
}

// ListDeadLetters implements [lane.Storage].
func (s *Around) ListDeadLetters(
	ctx context.Context, q *lane.DeadLetterQuery,
) (*runlane.Page[runlane.DeadLetter], error) {
	return around(ctx, s, "ListDeadLetters", q, lane.Storage.ListDeadLetters)
}

// RequeueDeadLetters implements [lane.Storage].
func (s *Around) RequeueDeadLetters(ctx context.Context, c *lane.RequeueCommand) (int, error) {
	return around(ctx, s, "RequeueDeadLetters", c, lane.Storage.RequeueDeadLetters)
}

// PruneRuns implements [lane.Storage].
func (s *Around) PruneRuns(ctx context.Context, c *lane.PruneCommand) (*lane.PruneProgress, error) {
	return around(ctx, s, "PruneRuns", c, lane.Storage.PruneRuns)
}
