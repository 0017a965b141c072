package lane

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
)

func unsupported(method string) error {
	return &runlane.Error{
		Code: runlane.ErrCapabilityUnsupported, Message: "this adapter does not support " + method,
		Hint: "look at its capabilities, or use another lane",
	}
}

// UnimplementedStorage is for embedding: every method returns runlane.ErrCapabilityUnsupported, except that Start and
// Close do nothing, CheckOutput and CheckPayload accept everything, and no capability is promised.
type UnimplementedStorage struct{}

var _ Storage = UnimplementedStorage{}

// Capabilities promises nothing.
func (UnimplementedStorage) Capabilities() StorageCapabilities { return StorageCapabilities{} }

// Start does nothing.
func (UnimplementedStorage) Start(context.Context) error { return nil }

// Close does nothing.
func (UnimplementedStorage) Close(context.Context) error { return nil }

// AppendRunEvents is unsupported.
func (UnimplementedStorage) AppendRunEvents(context.Context, *AppendCommand) (*Commit, error) {
	return nil, unsupported("AppendRunEvents")
}

// GetRun is unsupported.
func (UnimplementedStorage) GetRun(context.Context, RunKey) (*runlane.Run, error) {
	return nil, unsupported("GetRun")
}

// GetRuns is unsupported.
func (UnimplementedStorage) GetRuns(context.Context, *RunsQuery) ([]*runlane.Run, error) {
	return nil, unsupported("GetRuns")
}

// GetRunByIdempotencyKey is unsupported.
func (UnimplementedStorage) GetRunByIdempotencyKey(context.Context, OwnerKey) (*runlane.Run, error) {
	return nil, unsupported("GetRunByIdempotencyKey")
}

// GetRunBySingletonKey is unsupported.
func (UnimplementedStorage) GetRunBySingletonKey(context.Context, OwnerKey) (*runlane.Run, error) {
	return nil, unsupported("GetRunBySingletonKey")
}

// ResetIdempotencyKey is unsupported.
func (UnimplementedStorage) ResetIdempotencyKey(context.Context, OwnerKey) error {
	return unsupported("ResetIdempotencyKey")
}

// InspectRun is unsupported.
func (UnimplementedStorage) InspectRun(context.Context, *InspectQuery) (*Inspection, error) {
	return nil, unsupported("InspectRun")
}

// ListRuns is unsupported.
func (UnimplementedStorage) ListRuns(context.Context, *RunQuery) (*runlane.Page[runlane.RunSummary], error) {
	return nil, unsupported("ListRuns")
}

// ListRunEvents is unsupported.
func (UnimplementedStorage) ListRunEvents(context.Context, *EventQuery) (*runlane.Page[runlane.EventRecord], error) {
	return nil, unsupported("ListRunEvents")
}

// ListRunnableRuns is unsupported.
func (UnimplementedStorage) ListRunnableRuns(context.Context, *DueQuery) (*runlane.Page[RunRef], error) {
	return nil, unsupported("ListRunnableRuns")
}

// ListRunsNeedingDispatch is unsupported.
func (UnimplementedStorage) ListRunsNeedingDispatch(context.Context, *DueQuery) (*runlane.Page[RunRef], error) {
	return nil, unsupported("ListRunsNeedingDispatch")
}

// ListRunsNeedingDelivery is unsupported.
func (UnimplementedStorage) ListRunsNeedingDelivery(context.Context, *DueQuery) (*runlane.Page[RunRef], error) {
	return nil, unsupported("ListRunsNeedingDelivery")
}

// ListRunsNeedingRedelivery is unsupported.
func (UnimplementedStorage) ListRunsNeedingRedelivery(context.Context, *DueQuery) (*runlane.Page[RunRef], error) {
	return nil, unsupported("ListRunsNeedingRedelivery")
}

// ListRunsNeedingCancellationFinalization is unsupported.
func (UnimplementedStorage) ListRunsNeedingCancellationFinalization(
	context.Context, *DueQuery,
) (*runlane.Page[RunRef], error) {
	return nil, unsupported("ListRunsNeedingCancellationFinalization")
}

// ReserveRunDispatch is unsupported.
func (UnimplementedStorage) ReserveRunDispatch(context.Context, *ReserveCommand) (*Acquisition, error) {
	return nil, unsupported("ReserveRunDispatch")
}

// ReleaseRunDispatch is unsupported.
func (UnimplementedStorage) ReleaseRunDispatch(context.Context, *ReleaseDispatchCommand) (bool, error) {
	return false, unsupported("ReleaseRunDispatch")
}

// ClaimRunLease is unsupported.
func (UnimplementedStorage) ClaimRunLease(context.Context, *ClaimCommand) (*Acquisition, error) {
	return nil, unsupported("ClaimRunLease")
}

// TakeTicket is unsupported.
func (UnimplementedStorage) TakeTicket(context.Context, *TicketCommand) (time.Time, bool, error) {
	return time.Time{}, false, unsupported("TakeTicket")
}

// HeartbeatRunLease is unsupported.
func (UnimplementedStorage) HeartbeatRunLease(context.Context, *HeartbeatCommand) (*Commit, error) {
	return nil, unsupported("HeartbeatRunLease")
}

// ReleaseRunLease is unsupported.
func (UnimplementedStorage) ReleaseRunLease(context.Context, *ReleaseCommand) error {
	return unsupported("ReleaseRunLease")
}

// KeepRecord is unsupported.
func (UnimplementedStorage) KeepRecord(context.Context, *KeepCommand) (*StepRecord, error) {
	return nil, unsupported("KeepRecord")
}

// ListRecords is unsupported.
func (UnimplementedStorage) ListRecords(context.Context, *RecordQuery) (*runlane.Page[StepRecord], error) {
	return nil, unsupported("ListRecords")
}

// ReadMail is unsupported.
func (UnimplementedStorage) ReadMail(context.Context, *MailQuery) (*Mail, error) {
	return nil, unsupported("ReadMail")
}

// SendSignal is unsupported.
func (UnimplementedStorage) SendSignal(context.Context, *SignalCommand) (*Commit, error) {
	return nil, unsupported("SendSignal")
}

// BeginCall is unsupported.
func (UnimplementedStorage) BeginCall(context.Context, *CallCommand) (*RunCall, error) {
	return nil, unsupported("BeginCall")
}

// ReadCalls is unsupported.
func (UnimplementedStorage) ReadCalls(context.Context, *CallQuery) (*CallsRead, error) {
	return nil, unsupported("ReadCalls")
}

// ListRunsToNotify is unsupported.
func (UnimplementedStorage) ListRunsToNotify(context.Context, *DueQuery) (*runlane.Page[RunRef], error) {
	return nil, unsupported("ListRunsToNotify")
}

// NotifyEnd is unsupported.
func (UnimplementedStorage) NotifyEnd(context.Context, *NotifyCommand) (*Commit, error) {
	return nil, unsupported("NotifyEnd")
}

// PutFlow is unsupported.
func (UnimplementedStorage) PutFlow(context.Context, *FlowCommand) (*FlowRecord, error) {
	return nil, unsupported("PutFlow")
}

// GetFlow is unsupported.
func (UnimplementedStorage) GetFlow(context.Context, *FlowRead) (*FlowRecord, error) {
	return nil, unsupported("GetFlow")
}

// ListFlows is unsupported.
func (UnimplementedStorage) ListFlows(context.Context, *FlowQuery) (*runlane.Page[FlowRecord], error) {
	return nil, unsupported("ListFlows")
}

// PutSchedule is unsupported.
func (UnimplementedStorage) PutSchedule(context.Context, *PutScheduleCommand) (*runlane.ScheduleRecord, error) {
	return nil, unsupported("PutSchedule")
}

// GetSchedule is unsupported.
func (UnimplementedStorage) GetSchedule(context.Context, ScheduleKey) (*runlane.ScheduleRecord, error) {
	return nil, unsupported("GetSchedule")
}

// ListSchedules is unsupported.
func (UnimplementedStorage) ListSchedules(context.Context, *PageQuery) (*runlane.Page[runlane.ScheduleRecord], error) {
	return nil, unsupported("ListSchedules")
}

// ClaimScheduleOccurrence is unsupported.
func (UnimplementedStorage) ClaimScheduleOccurrence(
	context.Context, *ClaimOccurrenceCommand,
) (*OccurrenceClaim, error) {
	return nil, unsupported("ClaimScheduleOccurrence")
}

// CompleteScheduleOccurrence is unsupported.
func (UnimplementedStorage) CompleteScheduleOccurrence(context.Context, *CompleteOccurrenceCommand) error {
	return unsupported("CompleteScheduleOccurrence")
}

// ListScheduleOccurrences is unsupported.
func (UnimplementedStorage) ListScheduleOccurrences(
	context.Context, *OccurrenceQuery,
) (*runlane.Page[runlane.Occurrence], error) {
	return nil, unsupported("ListScheduleOccurrences")
}

// ClaimOutboxMessages is unsupported.
func (UnimplementedStorage) ClaimOutboxMessages(context.Context, *ClaimOutboxCommand) ([]OutboxMessage, error) {
	return nil, unsupported("ClaimOutboxMessages")
}

// MarkOutboxMessagesPublished is unsupported.
func (UnimplementedStorage) MarkOutboxMessagesPublished(context.Context, *MarkPublishedCommand) error {
	return unsupported("MarkOutboxMessagesPublished")
}

// MarkOutboxMessagesFailed is unsupported.
func (UnimplementedStorage) MarkOutboxMessagesFailed(context.Context, *MarkFailedCommand) error {
	return unsupported("MarkOutboxMessagesFailed")
}

// MarkOutboxMessagesDeadLettered is unsupported.
func (UnimplementedStorage) MarkOutboxMessagesDeadLettered(context.Context, *MarkDeadLetteredCommand) error {
	return unsupported("MarkOutboxMessagesDeadLettered")
}

// ListDeadLetters is unsupported.
func (UnimplementedStorage) ListDeadLetters(
	context.Context, *DeadLetterQuery,
) (*runlane.Page[runlane.DeadLetter], error) {
	return nil, unsupported("ListDeadLetters")
}

// RequeueDeadLetters is unsupported.
func (UnimplementedStorage) RequeueDeadLetters(context.Context, *RequeueCommand) (int, error) {
	return 0, unsupported("RequeueDeadLetters")
}

// PruneRuns is unsupported.
func (UnimplementedStorage) PruneRuns(context.Context, *PruneCommand) (*PruneProgress, error) {
	return nil, unsupported("PruneRuns")
}

// GetKeep is unsupported.
func (UnimplementedStorage) GetKeep(context.Context, runlane.Environment) (*KeepRecord, error) {
	return nil, unsupported("GetKeep")
}

// PutKeep is unsupported.
func (UnimplementedStorage) PutKeep(context.Context, *PutKeepCommand) error {
	return unsupported("PutKeep")
}

// PutTask is unsupported.
func (UnimplementedStorage) PutTask(context.Context, *PutTaskCommand) error {
	return unsupported("PutTask")
}

// ListTasks is unsupported.
func (UnimplementedStorage) ListTasks(context.Context, *PageQuery) (*runlane.Page[TaskRecord], error) {
	return nil, unsupported("ListTasks")
}

// GetPauses is unsupported.
func (UnimplementedStorage) GetPauses(context.Context, PausesQuery) (Pauses, error) {
	return Pauses{}, unsupported("GetPauses")
}

// PutPauses is unsupported.
func (UnimplementedStorage) PutPauses(context.Context, *PutPausesCommand) (int64, error) {
	return 0, unsupported("PutPauses")
}

// PutProgress is unsupported.
func (UnimplementedStorage) PutProgress(context.Context, RunKey, string, runlane.Progress) error {
	return unsupported("PutProgress")
}

// GetProgress is unsupported.
func (UnimplementedStorage) GetProgress(context.Context, RunKey) (runlane.Progress, error) {
	return runlane.Progress{}, unsupported("GetProgress")
}

// BeginFeed is unsupported.
func (UnimplementedStorage) BeginFeed(context.Context) (FeedPosition, error) {
	return FeedPosition{}, unsupported("BeginFeed")
}

// ReadFeed is unsupported.
func (UnimplementedStorage) ReadFeed(context.Context, *FeedQuery) (*FeedPage, error) {
	return nil, unsupported("ReadFeed")
}

// CheckOutput accepts everything.
func (UnimplementedStorage) CheckOutput(runlane.RunID, []byte) error { return nil }

// CheckPayload accepts everything.
func (UnimplementedStorage) CheckPayload(runlane.RunID, []byte) error { return nil }

// CountRuns is unsupported.
func (UnimplementedStorage) CountRuns(context.Context, *CountQuery) (*RunCounts, error) {
	return nil, unsupported("CountRuns")
}

// Check is unsupported.
func (UnimplementedStorage) Check(context.Context, *PageQuery) (*runlane.Page[Violation], error) {
	return nil, unsupported("Check")
}

// UnimplementedTransport is for embedding: PublishWakeups, SendWakeups and Depth return
// runlane.ErrCapabilityUnsupported; Start and Close do nothing; no capability is promised; any queue is accepted, has
// its own binding, and neither delays nor orders.
type UnimplementedTransport struct{}

var _ Transport = UnimplementedTransport{}

// Capabilities promises nothing.
func (UnimplementedTransport) Capabilities() TransportCapabilities { return TransportCapabilities{} }

// Start does nothing.
func (UnimplementedTransport) Start(context.Context, StartOptions) error { return nil }

// Close does nothing.
func (UnimplementedTransport) Close(context.Context) error { return nil }

// Queues cannot be listed.
func (UnimplementedTransport) Queues() []runlane.QueueName { return nil }

// PublishWakeups is unsupported.
func (UnimplementedTransport) PublishWakeups(context.Context, *PublishCommand) ([]PublishOutcome, error) {
	return nil, unsupported("PublishWakeups")
}

// MaxDelay is 0.
func (UnimplementedTransport) MaxDelay(runlane.QueueName) time.Duration { return 0 }

// SendWakeups is unsupported.
func (UnimplementedTransport) SendWakeups(context.Context, []DelayedWakeup) ([]PublishOutcome, error) {
	return nil, unsupported("SendWakeups")
}

// Carrier returns the queue's own name.
func (UnimplementedTransport) Carrier(queue runlane.QueueName) (runlane.QueueName, bool) {
	return queue, true
}

// Ordered is false.
func (UnimplementedTransport) Ordered(runlane.QueueName) bool { return false }

// Fair is false.
func (UnimplementedTransport) Fair(runlane.QueueName) bool { return false }

// Depth is unsupported.
func (UnimplementedTransport) Depth(context.Context, runlane.QueueName) (visible, inFlight int, err error) {
	return 0, 0, unsupported("Depth")
}
