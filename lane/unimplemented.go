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

// UnimplementedStorage is embedded by storages: every method they leave out answers runlane.ErrCapabilityUnsupported;
// Start and Close do nothing; CheckOutput and CheckPayload refuse nothing; no capability is promised.
type UnimplementedStorage struct{}

var _ Storage = UnimplementedStorage{}

// Capabilities promises nothing.
func (UnimplementedStorage) Capabilities() StorageCapabilities { return StorageCapabilities{} }

// Start does nothing.
func (UnimplementedStorage) Start(context.Context) error { return nil }

// Close does nothing.
func (UnimplementedStorage) Close(context.Context) error { return nil }

// AppendRunEvents answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) AppendRunEvents(context.Context, *AppendCommand) (*Commit, error) {
	return nil, unsupported("AppendRunEvents")
}

// GetRun answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) GetRun(context.Context, RunKey) (*runlane.Run, error) {
	return nil, unsupported("GetRun")
}

// GetRuns answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) GetRuns(context.Context, *RunsQuery) ([]*runlane.Run, error) {
	return nil, unsupported("GetRuns")
}

// GetRunByIdempotencyKey answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) GetRunByIdempotencyKey(context.Context, OwnerKey) (*runlane.Run, error) {
	return nil, unsupported("GetRunByIdempotencyKey")
}

// GetRunBySingletonKey answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) GetRunBySingletonKey(context.Context, OwnerKey) (*runlane.Run, error) {
	return nil, unsupported("GetRunBySingletonKey")
}

// ResetIdempotencyKey answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) ResetIdempotencyKey(context.Context, OwnerKey) error {
	return unsupported("ResetIdempotencyKey")
}

// InspectRun answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) InspectRun(context.Context, *InspectQuery) (*Inspection, error) {
	return nil, unsupported("InspectRun")
}

// ListRuns answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) ListRuns(context.Context, *RunQuery) (*runlane.Page[runlane.RunSummary], error) {
	return nil, unsupported("ListRuns")
}

// ListRunEvents answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) ListRunEvents(context.Context, *EventQuery) (*runlane.Page[runlane.EventRecord], error) {
	return nil, unsupported("ListRunEvents")
}

// ListRunnableRuns answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) ListRunnableRuns(context.Context, *DueQuery) (*runlane.Page[RunRef], error) {
	return nil, unsupported("ListRunnableRuns")
}

// ListRunsNeedingDispatch answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) ListRunsNeedingDispatch(context.Context, *DueQuery) (*runlane.Page[RunRef], error) {
	return nil, unsupported("ListRunsNeedingDispatch")
}

// ListRunsNeedingDelivery answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) ListRunsNeedingDelivery(context.Context, *DueQuery) (*runlane.Page[RunRef], error) {
	return nil, unsupported("ListRunsNeedingDelivery")
}

// ListRunsNeedingRedelivery answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) ListRunsNeedingRedelivery(context.Context, *DueQuery) (*runlane.Page[RunRef], error) {
	return nil, unsupported("ListRunsNeedingRedelivery")
}

// ListRunsNeedingCancellationFinalization answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) ListRunsNeedingCancellationFinalization(
	context.Context, *DueQuery,
) (*runlane.Page[RunRef], error) {
	return nil, unsupported("ListRunsNeedingCancellationFinalization")
}

// ReserveRunDispatch answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) ReserveRunDispatch(context.Context, *ReserveCommand) (*Acquisition, error) {
	return nil, unsupported("ReserveRunDispatch")
}

// ReleaseRunDispatch answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) ReleaseRunDispatch(context.Context, *ReleaseDispatchCommand) (bool, error) {
	return false, unsupported("ReleaseRunDispatch")
}

// ClaimRunLease answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) ClaimRunLease(context.Context, *ClaimCommand) (*Acquisition, error) {
	return nil, unsupported("ClaimRunLease")
}

// HeartbeatRunLease answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) HeartbeatRunLease(context.Context, *HeartbeatCommand) (*Commit, error) {
	return nil, unsupported("HeartbeatRunLease")
}

// ReleaseRunLease answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) ReleaseRunLease(context.Context, *ReleaseCommand) error {
	return unsupported("ReleaseRunLease")
}

// KeepRecord answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) KeepRecord(context.Context, *KeepCommand) (*StepRecord, error) {
	return nil, unsupported("KeepRecord")
}

// ListRecords answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) ListRecords(context.Context, *RecordQuery) (*runlane.Page[StepRecord], error) {
	return nil, unsupported("ListRecords")
}

// ReadMail answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) ReadMail(context.Context, *MailQuery) (*Mail, error) {
	return nil, unsupported("ReadMail")
}

// SendSignal answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) SendSignal(context.Context, *SignalCommand) (*Commit, error) {
	return nil, unsupported("SendSignal")
}

// BeginCall answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) BeginCall(context.Context, *CallCommand) (*RunCall, error) {
	return nil, unsupported("BeginCall")
}

// ReadCalls answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) ReadCalls(context.Context, *CallQuery) (*CallsRead, error) {
	return nil, unsupported("ReadCalls")
}

// ListRunsToTell answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) ListRunsToTell(context.Context, *DueQuery) (*runlane.Page[RunRef], error) {
	return nil, unsupported("ListRunsToTell")
}

// TellEnd answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) TellEnd(context.Context, *TellCommand) (*Commit, error) {
	return nil, unsupported("TellEnd")
}

// PutFlow answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) PutFlow(context.Context, *FlowCommand) (*FlowRecord, error) {
	return nil, unsupported("PutFlow")
}

// GetFlow answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) GetFlow(context.Context, *FlowRead) (*FlowRecord, error) {
	return nil, unsupported("GetFlow")
}

// ListFlows answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) ListFlows(context.Context, *FlowQuery) (*runlane.Page[FlowRecord], error) {
	return nil, unsupported("ListFlows")
}

// PutSchedule answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) PutSchedule(context.Context, *PutScheduleCommand) (*runlane.ScheduleRecord, error) {
	return nil, unsupported("PutSchedule")
}

// GetSchedule answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) GetSchedule(context.Context, ScheduleKey) (*runlane.ScheduleRecord, error) {
	return nil, unsupported("GetSchedule")
}

// ListSchedules answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) ListSchedules(context.Context, *PageQuery) (*runlane.Page[runlane.ScheduleRecord], error) {
	return nil, unsupported("ListSchedules")
}

// ClaimScheduleOccurrence answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) ClaimScheduleOccurrence(
	context.Context, *ClaimOccurrenceCommand,
) (*OccurrenceClaim, error) {
	return nil, unsupported("ClaimScheduleOccurrence")
}

// CompleteScheduleOccurrence answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) CompleteScheduleOccurrence(context.Context, *CompleteOccurrenceCommand) error {
	return unsupported("CompleteScheduleOccurrence")
}

// ListScheduleOccurrences answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) ListScheduleOccurrences(
	context.Context, *OccurrenceQuery,
) (*runlane.Page[runlane.Occurrence], error) {
	return nil, unsupported("ListScheduleOccurrences")
}

// ClaimOutboxMessages answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) ClaimOutboxMessages(context.Context, *ClaimOutboxCommand) ([]OutboxMessage, error) {
	return nil, unsupported("ClaimOutboxMessages")
}

// MarkOutboxMessagesPublished answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) MarkOutboxMessagesPublished(context.Context, *MarkPublishedCommand) error {
	return unsupported("MarkOutboxMessagesPublished")
}

// MarkOutboxMessagesFailed answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) MarkOutboxMessagesFailed(context.Context, *MarkFailedCommand) error {
	return unsupported("MarkOutboxMessagesFailed")
}

// MarkOutboxMessagesDeadLettered answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) MarkOutboxMessagesDeadLettered(context.Context, *MarkDeadLetteredCommand) error {
	return unsupported("MarkOutboxMessagesDeadLettered")
}

// ListDeadLetters answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) ListDeadLetters(
	context.Context, *DeadLetterQuery,
) (*runlane.Page[runlane.DeadLetter], error) {
	return nil, unsupported("ListDeadLetters")
}

// RequeueDeadLetters answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) RequeueDeadLetters(context.Context, *RequeueCommand) (int, error) {
	return 0, unsupported("RequeueDeadLetters")
}

// PruneRuns answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) PruneRuns(context.Context, *PruneCommand) (*PruneProgress, error) {
	return nil, unsupported("PruneRuns")
}

// PutTask answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) PutTask(context.Context, *PutTaskCommand) error {
	return unsupported("PutTask")
}

// ListTasks answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) ListTasks(context.Context, *PageQuery) (*runlane.Page[TaskRecord], error) {
	return nil, unsupported("ListTasks")
}

// PutProgress answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) PutProgress(context.Context, RunKey, string, runlane.Progress) error {
	return unsupported("PutProgress")
}

// GetProgress answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) GetProgress(context.Context, RunKey) (runlane.Progress, error) {
	return runlane.Progress{}, unsupported("GetProgress")
}

// BeginFeed answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) BeginFeed(context.Context) (FeedPosition, error) {
	return FeedPosition{}, unsupported("BeginFeed")
}

// ReadFeed answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) ReadFeed(context.Context, *FeedQuery) (*FeedPage, error) {
	return nil, unsupported("ReadFeed")
}

// CheckOutput refuses nothing.
func (UnimplementedStorage) CheckOutput(runlane.RunID, []byte) error { return nil }

// CheckPayload refuses nothing.
func (UnimplementedStorage) CheckPayload(runlane.RunID, []byte) error { return nil }

// CountRuns answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) CountRuns(context.Context, *CountQuery) (*RunCounts, error) {
	return nil, unsupported("CountRuns")
}

// Check answers runlane.ErrCapabilityUnsupported.
func (UnimplementedStorage) Check(context.Context, *PageQuery) (*runlane.Page[Violation], error) {
	return nil, unsupported("Check")
}

// UnimplementedTransport is embedded by transports: PublishWakeups, SendWakeups and Depth answer
// runlane.ErrCapabilityUnsupported; Start and Close do nothing; no capability is promised; any queue is accepted, has a
// binding of its own, and neither delays nor orders.
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

// PublishWakeups answers runlane.ErrCapabilityUnsupported.
func (UnimplementedTransport) PublishWakeups(context.Context, *PublishCommand) ([]PublishOutcome, error) {
	return nil, unsupported("PublishWakeups")
}

// MaxDelay is 0: no queue can delay.
func (UnimplementedTransport) MaxDelay(runlane.QueueName) time.Duration { return 0 }

// SendWakeups answers runlane.ErrCapabilityUnsupported.
func (UnimplementedTransport) SendWakeups(context.Context, []DelayedWakeup) ([]PublishOutcome, error) {
	return nil, unsupported("SendWakeups")
}

// Carrier is the binding of the queue's name.
func (UnimplementedTransport) Carrier(queue runlane.QueueName) (runlane.QueueName, bool) {
	return queue, true
}

// Ordered is false.
func (UnimplementedTransport) Ordered(runlane.QueueName) bool { return false }

// Fair is false.
func (UnimplementedTransport) Fair(runlane.QueueName) bool { return false }

// Depth answers runlane.ErrCapabilityUnsupported.
func (UnimplementedTransport) Depth(context.Context, runlane.QueueName) (visible, inFlight int, err error) {
	return 0, 0, unsupported("Depth")
}
