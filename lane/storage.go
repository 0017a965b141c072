package lane

import (
	"context"

	"github.com/runlane/runlane-go"
)

// Storage is the durable truth. Embed [UnimplementedStorage]: methods that an adapter leaves out, also ones added to
// the contract later, then report runlane.ErrCapabilityUnsupported, and the matching flag of Capabilities is false. No
// method is ever a silent no-op.
//
// Every method takes a command by pointer and must neither keep nor change it; what it returns is the caller's own
// copy. A malformed command is runlane.ErrContractViolation and writes nothing; bad input of an operator (a cursor, a
// limit) is runlane.ErrValidationFailed. A backend outage is runlane.ErrStorageUnavailable with the driver's error as
// its cause; after a write whose answer was lost its Meta has "outcome" = "unknown". Storage checks and persists what
// core projected and never recomputes it. All methods are safe for concurrent use by any number of processes.
type Storage interface {
	// Capabilities are the adapter's promises. They never change during its life.
	Capabilities() StorageCapabilities
	// Start makes the storage ready, once, before any other call; a missing or wrong schema is reported here as
	// runlane.ErrConfigurationInvalid.
	Start(ctx context.Context) error
	// Close releases what Start took. No other call follows.
	Close(ctx context.Context) error

	// AppendRunEvents commits events, projection, owners, slot and outbox rows together, or nothing. The checks are, in
	// this order:
	//
	//	sequence         ConflictEventSequence
	//	lease token      ConflictLeaseOwnership
	//	look             ConflictWait, for a suspension: mail has come since, or the last end of a call
	//	everything else  for a creation also, the idempotency key before the singleton key:
	//	                 ConflictIdempotencyKey, with the owner in Error.RunID
	//	                 ConflictSingletonKey, with the owner in Error.RunID
	//	                 ConflictQueueCapacity, when it takes a slot: with a reservation, or for a run that
	//	                 is started at once. Of a reservation also where no slot could be looked
	//	                 for, or taken, in time: its run can wait without one
	//	                 ConflictFlow, when the flow of the run gets no further runs
	//
	// The events of the returned commit are exactly what ListRunEvents will return.
	AppendRunEvents(ctx context.Context, c *AppendCommand) (*Commit, error)

	// GetRun returns one run exactly as it is now, with payload and output. Absent: runlane.ErrRunNotFound.
	GetRun(ctx context.Context, key RunKey) (*runlane.Run, error)
	// GetRuns omits what is missing and keeps the caller's order and repeats.
	GetRuns(ctx context.Context, q *RunsQuery) ([]*runlane.Run, error)
	// GetRunByIdempotencyKey returns the active or retained run that owns the key, from the owner's record, never from
	// a list. It changes nothing: an expired owner is runlane.ErrRunNotFound and cleaned up elsewhere.
	GetRunByIdempotencyKey(ctx context.Context, key OwnerKey) (*runlane.Run, error)
	// GetRunBySingletonKey returns the active run that owns the key, else runlane.ErrRunNotFound.
	GetRunBySingletonKey(ctx context.Context, key OwnerKey) (*runlane.Run, error)
	// ResetIdempotencyKey clears a retained terminal owner. An active one is ConflictIdempotencyKey; none is
	// runlane.ErrRunNotFound.
	ResetIdempotencyKey(ctx context.Context, key OwnerKey) error

	// InspectRun returns what explaining a wait needs and the projection does not hold. Exact.
	InspectRun(ctx context.Context, q *InspectQuery) (*Inspection, error)
	// ListRuns pages summaries: active runs by when they next need attention, then finished ones newest first.
	// Eventually consistent. A run that does not change while the pages are read is on exactly one of them.
	ListRuns(ctx context.Context, q *RunQuery) (*runlane.Page[runlane.RunSummary], error)
	// ListRunEvents pages one run's history in sequence order, both directions. Exact.
	ListRunEvents(ctx context.Context, q *EventQuery) (*runlane.Page[runlane.EventRecord], error)

	// ListRunnableRuns returns what a worker may claim, see [RunnableAt]. This and the following scans return compact
	// references in due order, due exactly at the millisecond, eventually consistent. Neither a full page nor a row
	// that is skipped may keep other runs from being found.
	ListRunnableRuns(ctx context.Context, q *DueQuery) (*runlane.Page[RunRef], error)
	// ListRunsNeedingDispatch returns runs of q.Bounded that need a slot: queued without a live reservation, due and
	// waiting, or running with an expired lease. Full partitions are skipped.
	ListRunsNeedingDispatch(ctx context.Context, q *DueQuery) (*runlane.Page[RunRef], error)
	// ListRunsNeedingDelivery returns runs that need a fresh delivery request, see [DeliveryRecoveryAt]. It leaves
	// q.Bounded out. A due scheduled run whose latest outbox row is still unpublished comes with that row's id in
	// RunRef.OutboxID.
	ListRunsNeedingDelivery(ctx context.Context, q *DueQuery) (*runlane.Page[RunRef], error)
	// ListRunsNeedingRedelivery returns queued runs whose wakeup was published and not claimed: 10 minutes after the
	// first publication, then at doubling distance, at most 6 hours.
	ListRunsNeedingRedelivery(ctx context.Context, q *DueQuery) (*runlane.Page[RunRef], error)
	// ListRunsNeedingCancellationFinalization returns runs whose cancellation was requested and whose lease is over.
	ListRunsNeedingCancellationFinalization(ctx context.Context, q *DueQuery) (*runlane.Page[RunRef], error)

	// ReserveRunDispatch takes a slot, appends run.delivery_requested with the reservation and makes its outbox row, or
	// tells which race was lost.
	ReserveRunDispatch(ctx context.Context, c *ReserveCommand) (*Acquisition, error)
	// ReleaseRunDispatch gives the slot of a queued run back before its reservation ends, and reports whether the run
	// had it. The run stays as it is: no slot is reserved for it again before that end. Whoever claims it until then
	// needs a free slot. A reservation that is not as in the command is left alone, a claimed slot too.
	ReleaseRunDispatch(ctx context.Context, c *ReleaseDispatchCommand) (released bool, err error)
	// ClaimRunLease commits run.lease_claimed (and run.started with it) when the run is runnable at c.At, or tells
	// which race was lost: losing is an outcome, not an error.
	ClaimRunLease(ctx context.Context, c *ClaimCommand) (*Acquisition, error)
	// HeartbeatRunLease extends the lease of its owner. The caller believes that it owns the run, so losing is an error
	// here: ConflictEventSequence, or ConflictLeaseOwnership.
	HeartbeatRunLease(ctx context.Context, c *HeartbeatCommand) (*Commit, error)
	// ReleaseRunLease verifies that the token no longer owns the run; it writes nothing. A lease still held is
	// ConflictLeaseOwnership; an absent run is runlane.ErrRunNotFound.
	ReleaseRunLease(ctx context.Context, c *ReleaseCommand) error

	// KeepRecord keeps a record beside a run's history and returns the one that is kept: the command's, or the one that
	// was there first and stays. It needs no lease, so a late worker's record may be the first. With Replace the answer
	// is what is kept by then: a storage whose own answers get lost may have kept the command's for a moment before
	// another one replaced it. A result that is larger than the storage can hold is runlane.ErrValidationFailed. A
	// storage that sees that there is no such run, or that it was created at another instant, answers
	// runlane.ErrRunNotFound; one that does not see it keeps a record that no one finds.
	KeepRecord(ctx context.Context, c *KeepCommand) (*StepRecord, error)
	// ListRecords pages the records of a run by name. Exact. Without the run there are none.
	ListRecords(ctx context.Context, q *RecordQuery) (*runlane.Page[StepRecord], error)
	// ReadMail returns what was sent to a run, exact, see [Mail]. Absent: runlane.ErrRunNotFound.
	ReadMail(ctx context.Context, q *MailQuery) (*Mail, error)
	// SendSignal puts a signal beside an active run and counts it, and with Resume appends that in the same commit,
	// which it returns; without, it returns nil. A signal of that name and id that is there is ConflictSignal. Whatever
	// else is not as it was read (another count, a wait that began, a run that ended or is gone or of another creation)
	// is ConflictWait; another sequence than that of Resume is ConflictEventSequence. A body that is larger than the
	// storage can hold is runlane.ErrValidationFailed.
	SendSignal(ctx context.Context, c *SignalCommand) (*Commit, error)

	// BeginCall puts a call beside a run and returns what stands there: the command's, or the one that was there first.
	// A run that is absent or of another creation is runlane.ErrRunNotFound, another lease is
	// ConflictLeaseOwnership.
	BeginCall(ctx context.Context, c *CallCommand) (*RunCall, error)
	// ReadCalls returns the calls of a run, exact, see [CallsRead]. Absent: runlane.ErrRunNotFound.
	ReadCalls(ctx context.Context, q *CallQuery) (*CallsRead, error)
	// ListRunsToTell returns runs whose end is untold, see [Untold], since they ended. A storage may leave out those
	// that ended within q.Patience.Queued. It does not look at q.Bounded.
	ListRunsToTell(ctx context.Context, q *DueQuery) (*runlane.Page[RunRef], error)
	// TellEnd tells an end once: it removes the mark that it is untold and counts it in the call of To, in one commit
	// with Resume, which it returns; without, it returns nil. Whatever is not as it was read (an end that was told,
	// another count, a wait that began, a run that called and is gone) is ConflictWait; another sequence than that of
	// Resume is ConflictEventSequence.
	TellEnd(ctx context.Context, c *TellCommand) (*Commit, error)

	// PutFlow writes the record of a flow, or removes it, if its version is still what the caller read (0: absent),
	// else ConflictFlow, and returns what is written, without a plan that the command left out; nil for a removal. The
	// creation of a flow never changes, and a plan only with the round.
	PutFlow(ctx context.Context, c *FlowCommand) (*FlowRecord, error)
	// GetFlow returns the record, exact, else runlane.ErrFlowNotFound.
	GetFlow(ctx context.Context, q *FlowRead) (*FlowRecord, error)
	// ListFlows pages records, see [FlowQuery], without their plans. Eventually consistent.
	ListFlows(ctx context.Context, q *FlowQuery) (*runlane.Page[FlowRecord], error)

	// PutSchedule writes a schedule's record if its Version is still what the caller read (0: absent), else
	// ConflictScheduleOccurrence.
	PutSchedule(ctx context.Context, c *PutScheduleCommand) (*runlane.ScheduleRecord, error)
	// GetSchedule returns the record, else runlane.ErrScheduleNotFound.
	GetSchedule(ctx context.Context, key ScheduleKey) (*runlane.ScheduleRecord, error)
	// ListSchedules pages the records by id.
	ListSchedules(ctx context.Context, q *PageQuery) (*runlane.Page[runlane.ScheduleRecord], error)
	// ClaimScheduleOccurrence gives one caller the right to make the occurrence's run. One at or before the record's
	// last fire is never claimed, unless that is after TrustUntil.
	ClaimScheduleOccurrence(ctx context.Context, c *ClaimOccurrenceCommand) (*OccurrenceClaim, error)
	// CompleteScheduleOccurrence enforces the claim's token (ConflictScheduleOccurrence) and moves the record's
	// LastFire and LastRunID forward in the same commit, or back from a last fire after TrustUntil.
	CompleteScheduleOccurrence(ctx context.Context, c *CompleteOccurrenceCommand) error
	// ListScheduleOccurrences pages a schedule's occurrences with their outcomes, newest first.
	ListScheduleOccurrences(ctx context.Context, q *OccurrenceQuery) (*runlane.Page[runlane.Occurrence], error)

	// ClaimOutboxMessages gives the caller due rows to publish, under a token and until ClaimUntil. A row is due when
	// its time has come, it is pending, failed or under an expired claim, and it is the latest delivery row of a queued
	// or scheduled run. A later delivery request, the end of its wait, a claim of the run or its end supersedes it.
	// With given IDs, other rows are never claimed.
	ClaimOutboxMessages(ctx context.Context, c *ClaimOutboxCommand) ([]OutboxMessage, error)
	// MarkOutboxMessagesPublished acknowledges. This and the following marks check each message separately: those whose
	// token is stale stay as they are and are named in the Meta ("outbox_ids") of one ConflictOutboxClaim; the rest are
	// marked. The holder of a row that was superseded meanwhile may still mark it.
	MarkOutboxMessagesPublished(ctx context.Context, c *MarkPublishedCommand) error
	// MarkOutboxMessagesFailed records a failure and when to try again.
	MarkOutboxMessagesFailed(ctx context.Context, c *MarkFailedCommand) error
	// MarkOutboxMessagesDeadLettered gives rows up.
	MarkOutboxMessagesDeadLettered(ctx context.Context, c *MarkDeadLetteredCommand) error
	// ListDeadLetters pages given-up wakeups, oldest first.
	ListDeadLetters(ctx context.Context, q *DeadLetterQuery) (*runlane.Page[runlane.DeadLetter], error)
	// RequeueDeadLetters makes rows pending again with no attempts. It skips rows that are not dead letters any more.
	// The runtime does not call it: an operator's request is an event of the run, with their name and reason, and a run
	// of a bounded queue has to get a slot again, so core appends run.delivery_requested instead. It is for programs
	// that repair a storage without a runtime.
	RequeueDeadLetters(ctx context.Context, c *RequeueCommand) (requeued int, err error)

	// PruneRuns removes terminal runs, oldest first, a bounded number a call, resumable by cursor and after a crash. It
	// passes over runs whose end is untold, over those that an active run has called, over repetitions ([Repeats]) of a
	// run that stays, and over nodes of flows that have not finished.
	PruneRuns(ctx context.Context, c *PruneCommand) (*PruneProgress, error)

	// PutTask stores the definition of a task, for programs that do not have its code, and replaces the one with its id.
	// Of two concurrent puts, one is kept, as a whole. Ticks store them.
	PutTask(ctx context.Context, c *PutTaskCommand) error
	// ListTasks pages the records of tasks by id. Exact.
	ListTasks(ctx context.Context, q *PageQuery) (*runlane.Page[TaskRecord], error)

	// PutProgress keeps the last progress note of a run, outside its history. It is checked by the lease token:
	// ConflictLeaseOwnership when it does not own the run any more, runlane.ErrRunNotFound when there is no such run. A
	// note older than the stored one changes nothing and is no error.
	PutProgress(ctx context.Context, key RunKey, leaseToken string, p runlane.Progress) error
	// GetProgress returns the zero value when there is none.
	GetProgress(ctx context.Context, key RunKey) (runlane.Progress, error)

	// BeginFeed begins to keep the order of commits, unless that was begun before, and returns the position of the last
	// one that is kept, or of none. What it began lasts as long as the storage's state.
	BeginFeed(ctx context.Context) (FeedPosition, error)
	// ReadFeed returns commits behind a position in their order. Exact: what it returns has no gap, and every commit
	// that was answered before the call is behind the position, or in what this call and those that follow it return.
	// A position that is not kept any more, or not yet reached, and one of another feed, also of this storage before it
	// went back to a copy, are runlane.ErrValidationFailed.
	ReadFeed(ctx context.Context, q *FeedQuery) (*FeedPage, error)

	// CheckOutput says, before a handler has returned, whether the storage can hold its output:
	// runlane.ErrValidationFailed for one that a commit would refuse. The bytes are those that would be committed: a
	// codec's, where there is one. It reads and writes nothing. A storage that refuses outputs or payloads which
	// runlane.MaxPayloadBytes allows has to say so here: otherwise the handler succeeds, with all its effects, and the
	// commit fails, or a schedule fails at each of its times. [UnimplementedStorage] refuses none.
	CheckOutput(run runlane.RunID, output []byte) error
	// CheckPayload is the same for a payload that a creation would refuse, before a schedule fires.
	CheckPayload(run runlane.RunID, payload []byte) error

	// CountRuns counts all active runs of a queue, as ListRuns has them, without reading them. No flag stands for it: of
	// a storage that answers runlane.ErrCapabilityUnsupported, a queue with many runs is counted as far as a bounded
	// number of pages goes.
	CountRuns(ctx context.Context, q *CountQuery) (*RunCounts, error)
	// Check pages through an environment and returns what breaks the storage's own invariants: for tests after every
	// case, and for diagnosis. No flag stands for it: a storage that answers runlane.ErrCapabilityUnsupported is not
	// checked.
	Check(ctx context.Context, q *PageQuery) (*runlane.Page[Violation], error)
}

// Violation is one broken invariant.
type Violation struct {
	RunKey
	// Rule names the invariant, Detail says how it is broken.
	Rule, Detail string
}

// StorageCapabilities are public promises. The zero value promises nothing. A method that stands behind a false flag
// answers runlane.ErrCapabilityUnsupported; AppendRunEvents, GetRun, GetRuns, InspectRun, CheckOutput, CheckPayload,
// CountRuns and Check stand behind none. A command that needs a missing ability (a key, a bounded policy, a reservation)
// is refused with the same code.
type StorageCapabilities struct {
	// ClaimsScheduleOccurrences: maintenance can claim occurrences safely (ClaimScheduleOccurrence,
	// CompleteScheduleOccurrence, ListScheduleOccurrences).
	ClaimsScheduleOccurrences bool `json:"claimsScheduleOccurrences"`
	// DurableState: committed state survives the loss of the process.
	DurableState bool `json:"durableState"`
	// EnforcesIdempotency: idempotency owners are kept (GetRunByIdempotencyKey, ResetIdempotencyKey).
	EnforcesIdempotency bool `json:"enforcesIdempotency"`
	// EnforcesQueueConcurrency: bounded queues hold their limit (ReserveRunDispatch, ReleaseRunDispatch, ListRunsNeedingDispatch).
	EnforcesQueueConcurrency bool `json:"enforcesQueueConcurrency"`
	// EnforcesSingleton: singleton owners are kept (GetRunBySingletonKey).
	EnforcesSingleton bool `json:"enforcesSingleton"`
	// LeasesRuns: workers can claim and heartbeat (ClaimRunLease, HeartbeatRunLease, ReleaseRunLease, ListRunnableRuns,
	// ListRunsNeedingDelivery, ListRunsNeedingCancellationFinalization).
	LeasesRuns bool `json:"leasesRuns"`
	// PersistsOutbox: delivery requests make outbox rows (ClaimOutboxMessages and the three marks). Without it
	// run.delivery_requested makes no row.
	PersistsOutbox bool `json:"persistsOutbox"`
	// ProcessLocalState: no other process can reach the state, which need not survive. Never beside DurableState.
	ProcessLocalState bool `json:"processLocalState"`
	// PrunesRuns: terminal runs can be removed (PruneRuns).
	PrunesRuns bool `json:"prunesRuns"`
	// ReadsRunHistory: runs and events can be listed (ListRuns, ListRunEvents).
	ReadsRunHistory bool `json:"readsRunHistory"`

	// FeedsCommits: the commits of an environment are told in their order (BeginFeed, ReadFeed). Without it no caller can
	// follow all runs of an environment at once.
	FeedsCommits bool `json:"feedsCommits"`
	// FindsLostWakeups: queued runs whose published wakeup led to no claim are found again (ListRunsNeedingRedelivery).
	FindsLostWakeups bool `json:"findsLostWakeups"`
	// KeepsDeadLetters: given-up wakeups can be listed and requeued (ListDeadLetters, RequeueDeadLetters).
	KeepsDeadLetters bool `json:"keepsDeadLetters"`
	// KeepsProgress: the last progress note of a run is kept (PutProgress, GetProgress).
	KeepsProgress bool `json:"keepsProgress"`
	// KeepsSchedules: schedule records are stored (PutSchedule, GetSchedule, ListSchedules).
	KeepsSchedules bool `json:"keepsSchedules"`
	// KeepsTasks: definitions of tasks are kept for programs that do not have their code (PutTask, ListTasks).
	KeepsTasks bool `json:"keepsTasks"`
	// SuspendsRuns: runs remember what they have done, and can wait for what is told to them (KeepRecord, ListRecords,
	// ReadMail, SendSignal, BeginCall, ReadCalls, ListRunsToTell, TellEnd, PutFlow, GetFlow, ListFlows).
	SuspendsRuns bool `json:"suspendsRuns"`
}

// RunKey names one run. Keys are structs so that two strings in a row cannot be swapped.
type RunKey struct {
	// Environment scopes the run.
	Environment runlane.Environment
	// RunID is unique within it.
	RunID runlane.RunID
}

// OwnerKey names the owner of an idempotency or singleton key: both are scoped by environment and task.
type OwnerKey struct {
	// Environment scopes the key.
	Environment runlane.Environment
	// TaskID scopes the key further.
	TaskID runlane.TaskID
	// Key is the text that the application chose.
	Key string
}

// ScheduleKey names one schedule.
type ScheduleKey struct {
	// Environment scopes the schedule.
	Environment runlane.Environment
	// ScheduleID is unique within it.
	ScheduleID runlane.ScheduleID
}
