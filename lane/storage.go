package lane

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
)

// Storage is the durable truth. Embed [UnimplementedStorage]: methods that an adapter omits, including ones added
// later, then return runlane.ErrCapabilityUnsupported, and the matching flag of Capabilities is false. No method is
// ever a silent no-op.
//
// Every method takes a command by pointer and must neither keep nor change it; results are the caller's own copies. A
// malformed command is runlane.ErrContractViolation and writes nothing; bad operator input (a cursor, a limit) is
// runlane.ErrValidationFailed. A backend outage is runlane.ErrStorageUnavailable with the driver's error as its cause;
// if a write may have happened, its Meta has "outcome" = "unknown". Storage checks and persists core's projection and
// never recomputes it. An exact read reflects every commit answered before it. All methods are safe for concurrent use
// by any number of processes.
type Storage interface {
	// Capabilities never change during the adapter's life.
	Capabilities() StorageCapabilities
	// Start makes the storage ready, once, before any other call. A missing or wrong schema is
	// runlane.ErrConfigurationInvalid.
	Start(ctx context.Context) error
	// Close releases the resources of Start. No other call follows.
	Close(ctx context.Context) error

	// AppendRunEvents commits events, projection, owners, slot and outbox rows together, or not at all. It checks in
	// this order:
	//
	//	sequence         ConflictEventSequence
	//	lease token      ConflictLeaseOwnership
	//	Look             ConflictWait, for a suspension: new mail, or the last end of a call
	//	everything else  for a creation also, the idempotency key before the singleton key:
	//	                 ConflictIdempotencyKey, with the owner in Error.RunID
	//	                 ConflictSingletonKey, with the owner in Error.RunID
	//	                 ConflictQueueCapacity, if it takes a slot: with a reservation, or for a run that
	//	                 is started at once. For a reservation also if no slot could be searched or
	//	                 taken in time: its run can wait without one
	//	                 ConflictFlow, if the run's flow takes no further runs
	//	                 ConflictWrites, if a condition of the application's own writes fails
	//
	// The events of the returned commit are exactly the ones that ListRunEvents will return.
	AppendRunEvents(ctx context.Context, c *AppendCommand) (*Commit, error)

	// GetRun returns one run with payload and output. Exact. Absent: runlane.ErrRunNotFound.
	GetRun(ctx context.Context, key RunKey) (*runlane.Run, error)
	// GetRuns omits missing runs and keeps the caller's order and repeats.
	GetRuns(ctx context.Context, q *RunsQuery) ([]*runlane.Run, error)
	// GetRunByIdempotencyKey returns the active or retained run that owns the key, from the owner's record, never from
	// a list. It changes nothing: an expired owner is runlane.ErrRunNotFound and is cleaned up elsewhere.
	GetRunByIdempotencyKey(ctx context.Context, key OwnerKey) (*runlane.Run, error)
	// GetRunBySingletonKey returns the active run that owns the key, else runlane.ErrRunNotFound.
	GetRunBySingletonKey(ctx context.Context, key OwnerKey) (*runlane.Run, error)
	// ResetIdempotencyKey clears a retained terminal owner. An active owner is ConflictIdempotencyKey; no owner is
	// runlane.ErrRunNotFound.
	ResetIdempotencyKey(ctx context.Context, key OwnerKey) error

	// InspectRun returns facts outside the projection that explain a wait. Exact.
	InspectRun(ctx context.Context, q *InspectQuery) (*Inspection, error)
	// ListRuns pages summaries: active runs by when they next need attention, then finished ones newest first.
	// Eventually consistent. A run that does not change during the paging is on exactly one page.
	ListRuns(ctx context.Context, q *RunQuery) (*runlane.Page[runlane.RunSummary], error)
	// ListRunEvents pages one run's history in sequence order, both directions. Exact.
	ListRunEvents(ctx context.Context, q *EventQuery) (*runlane.Page[runlane.EventRecord], error)

	// ListRunnableRuns returns runs that a worker may claim, see [RunnableAt]. This and the following scans return
	// compact references in due order, due exactly at the millisecond, eventually consistent. Neither a full page nor a
	// skipped row may hide other runs for good.
	ListRunnableRuns(ctx context.Context, q *DueQuery) (*runlane.Page[RunRef], error)
	// ListRunsNeedingDispatch returns runs of q.Bounded that need a slot: queued without a live reservation, due and
	// waiting, or running with an expired lease. Full partitions are skipped.
	ListRunsNeedingDispatch(ctx context.Context, q *DueQuery) (*runlane.Page[RunRef], error)
	// ListRunsNeedingDelivery returns runs that need a fresh delivery request, see [DeliveryRecoveryAt], except in
	// q.Bounded. A due scheduled run with an unpublished latest outbox row has that row's ID in RunRef.OutboxID.
	ListRunsNeedingDelivery(ctx context.Context, q *DueQuery) (*runlane.Page[RunRef], error)
	// ListRunsNeedingRedelivery returns queued runs with a published wakeup that nobody claimed: 10 minutes after the
	// first publication, then at doubling intervals of at most 6 hours.
	ListRunsNeedingRedelivery(ctx context.Context, q *DueQuery) (*runlane.Page[RunRef], error)
	// ListRunsNeedingCancellationFinalization returns runs with a requested cancellation and an expired lease.
	ListRunsNeedingCancellationFinalization(ctx context.Context, q *DueQuery) (*runlane.Page[RunRef], error)

	// ReserveRunDispatch takes a slot, appends run.delivery_requested with the reservation and makes its outbox row, or
	// returns the lost race as an outcome.
	ReserveRunDispatch(ctx context.Context, c *ReserveCommand) (*Acquisition, error)
	// ReleaseRunDispatch returns the slot of a queued run before its reservation ends, and reports whether the run had
	// it. The run itself does not change: it gets no new reservation before that end, and until then a claim needs a
	// free slot. A claimed slot, or a reservation that differs from the command, is left alone.
	ReleaseRunDispatch(ctx context.Context, c *ReleaseDispatchCommand) (released bool, err error)
	// ClaimRunLease commits run.lease_claimed, together with any run.started, if the run is runnable at c.At. A lost
	// race is an outcome, not an error. In a queue with a rate each claim is a start, see [Pace]; so is a creation that
	// executes at once, which is ConflictQueueCapacity without one.
	ClaimRunLease(ctx context.Context, c *ClaimCommand) (*Acquisition, error)
	// TakeTicket gives out the next start time of a partition of a queue with a rate, see [Pace]. ok is false if that
	// is after c.Until. A ticket is not a right to start: claims ask the rate. So a ticket may be lost.
	TakeTicket(ctx context.Context, c *TicketCommand) (start time.Time, ok bool, err error)
	// HeartbeatRunLease extends the owner's lease. The caller believes that it owns the run, so losing is an error:
	// ConflictEventSequence or ConflictLeaseOwnership.
	HeartbeatRunLease(ctx context.Context, c *HeartbeatCommand) (*Commit, error)
	// ReleaseRunLease verifies that the token no longer owns the run and writes nothing. A lease still held is
	// ConflictLeaseOwnership; an absent run is runlane.ErrRunNotFound.
	ReleaseRunLease(ctx context.Context, c *ReleaseCommand) error

	// KeepRecord keeps a named record for a run, apart from its history, and returns the kept one: the command's, or
	// the earlier one, which stays. It needs no lease, so a late worker's record may win. With Replace it returns the
	// record kept at that time: a storage that repeats after a lost answer may have kept the command's record briefly
	// before another replaced it. A result too large for the storage is runlane.ErrValidationFailed. If the storage
	// notices that the run is missing, or has another creation time, it returns runlane.ErrRunNotFound; otherwise
	// nobody will find the record.
	KeepRecord(ctx context.Context, c *KeepCommand) (*StepRecord, error)
	// ListRecords pages the records of a run by name. Exact. Without the run there are none.
	ListRecords(ctx context.Context, q *RecordQuery) (*runlane.Page[StepRecord], error)
	// ReadMail returns the signals sent to a run, see [Mail]. Exact. Absent: runlane.ErrRunNotFound.
	ReadMail(ctx context.Context, q *MailQuery) (*Mail, error)
	// SendSignal stores a signal for an active run and counts it. With Resume it appends that transition in the same
	// commit, which it returns; without, it returns nil. An existing signal with this name and ID is ConflictSignal.
	// Any other change since the read (another count, a new wait, a run that ended, vanished or was created again) is
	// ConflictWait; a stale sequence of Resume is ConflictEventSequence. A body too large for the storage is
	// runlane.ErrValidationFailed.
	SendSignal(ctx context.Context, c *SignalCommand) (*Commit, error)

	// BeginCall stores a call of a run and returns the stored one: the command's, or the earlier one. A run that is
	// absent or of another creation is runlane.ErrRunNotFound; another lease is ConflictLeaseOwnership.
	BeginCall(ctx context.Context, c *CallCommand) (*RunCall, error)
	// ReadCalls returns the calls of a run, see [CallsRead]. Exact. Absent: runlane.ErrRunNotFound.
	ReadCalls(ctx context.Context, q *CallQuery) (*CallsRead, error)
	// ListRunsToNotify returns ended runs with a pending notification, see [MustNotify], ordered by their end. A
	// storage may omit runs that ended within q.Patience.Queued. It ignores q.Bounded.
	ListRunsToNotify(ctx context.Context, q *DueQuery) (*runlane.Page[RunRef], error)
	// NotifyEnd notifies a parent once: it removes the ended run's mark and counts the end in the call of To, in one
	// commit with Resume, which it returns; without Resume it returns nil. Any change since the read (the mark is gone,
	// another count, a new wait, the parent is gone) is ConflictWait; a stale sequence of Resume is
	// ConflictEventSequence.
	NotifyEnd(ctx context.Context, c *NotifyCommand) (*Commit, error)

	// PutFlow writes or removes the record of a flow if its version is still the one that the caller read (0: absent),
	// else ConflictFlow. It returns the written record, without a plan that the command omitted; nil for a removal. A
	// flow's creation time never changes, and its plan only with the round.
	PutFlow(ctx context.Context, c *FlowCommand) (*FlowRecord, error)
	// GetFlow returns the record, else runlane.ErrFlowNotFound. Exact.
	GetFlow(ctx context.Context, q *FlowRead) (*FlowRecord, error)
	// ListFlows pages records, see [FlowQuery], without their plans. Eventually consistent.
	ListFlows(ctx context.Context, q *FlowQuery) (*runlane.Page[FlowRecord], error)

	// PutSchedule writes a schedule's record if its Version is still the one that the caller read (0: absent), else
	// ConflictScheduleOccurrence.
	PutSchedule(ctx context.Context, c *PutScheduleCommand) (*runlane.ScheduleRecord, error)
	// GetSchedule returns the record, else runlane.ErrScheduleNotFound.
	GetSchedule(ctx context.Context, key ScheduleKey) (*runlane.ScheduleRecord, error)
	// ListSchedules pages the records by ID.
	ListSchedules(ctx context.Context, q *PageQuery) (*runlane.Page[runlane.ScheduleRecord], error)
	// ClaimScheduleOccurrence gives one caller the right to make the occurrence's run. An occurrence at or before the
	// record's last fire is never claimed, unless that is after TrustUntil.
	ClaimScheduleOccurrence(ctx context.Context, c *ClaimOccurrenceCommand) (*OccurrenceClaim, error)
	// CompleteScheduleOccurrence enforces the claim's token (ConflictScheduleOccurrence) and, in the same commit, moves
	// the record's LastFire and LastRunID forward, or back from a last fire after TrustUntil.
	CompleteScheduleOccurrence(ctx context.Context, c *CompleteOccurrenceCommand) error
	// ListScheduleOccurrences pages a schedule's occurrences with their outcomes, newest first.
	ListScheduleOccurrences(ctx context.Context, q *OccurrenceQuery) (*runlane.Page[runlane.Occurrence], error)

	// ClaimOutboxMessages gives the caller due rows to publish, under a token and until ClaimUntil. A row is due if its
	// time has come, it is pending, failed or under an expired claim, and it is the latest delivery row of a queued or
	// scheduled run. A later delivery request, the end of its wait, a claim of the run or the run's end supersedes it.
	// With IDs, no other rows are claimed.
	ClaimOutboxMessages(ctx context.Context, c *ClaimOutboxCommand) ([]OutboxMessage, error)
	// MarkOutboxMessagesPublished acknowledges. This and the following marks check each message separately: rows with a
	// stale token stay as they are and are listed in the Meta ("outbox_ids") of one ConflictOutboxClaim; the rest are
	// marked. The holder of a row superseded meanwhile may still mark it.
	MarkOutboxMessagesPublished(ctx context.Context, c *MarkPublishedCommand) error
	// MarkOutboxMessagesFailed records a failure and the time of the next try.
	MarkOutboxMessagesFailed(ctx context.Context, c *MarkFailedCommand) error
	// MarkOutboxMessagesDeadLettered gives rows up.
	MarkOutboxMessagesDeadLettered(ctx context.Context, c *MarkDeadLetteredCommand) error
	// ListDeadLetters pages given-up wakeups, oldest first.
	ListDeadLetters(ctx context.Context, q *DeadLetterQuery) (*runlane.Page[runlane.DeadLetter], error)
	// RequeueDeadLetters makes rows pending again with no attempts and skips rows that are no longer dead letters. It
	// is for repairing a storage without a runtime. The runtime does not call it: an operator's request is an event of
	// the run with name and reason, and a run of a bounded queue needs a new slot, so core appends
	// run.delivery_requested instead.
	RequeueDeadLetters(ctx context.Context, c *RequeueCommand) (requeued int, err error)

	// PruneRuns removes terminal runs, oldest first, a bounded number per call, resumable by cursor and after a crash.
	// It skips runs with a pending notification ([MustNotify]), children of an active run, repetitions ([Repeats]) of a
	// run that stays, failed runs whose line of retries ([RetryID]) has one that is active or younger than the cutoff, and
	// nodes of unfinished flows.
	PruneRuns(ctx context.Context, c *PruneCommand) (*PruneProgress, error)
	// GetKeep returns where ticks are with the removal of old runs: the last record of PutKeep, exact; an empty one before.
	GetKeep(ctx context.Context, e runlane.Environment) (*KeepRecord, error)
	// PutKeep stores the record whole. Of two concurrent puts, one is kept: the other's work is only done again.
	PutKeep(ctx context.Context, c *PutKeepCommand) error

	// PutTask stores the definition of a task for programs without its code and replaces the one with its ID. Of two
	// concurrent puts, one is kept as a whole. Ticks call it.
	PutTask(ctx context.Context, c *PutTaskCommand) error
	// ListTasks pages the records of tasks by ID. Exact.
	ListTasks(ctx context.Context, q *PageQuery) (*runlane.Page[TaskRecord], error)

	// GetPauses returns the pauses of queues and tasks, see [PausesQuery].
	GetPauses(ctx context.Context, q PausesQuery) (Pauses, error)
	// PutPauses replaces all pauses if their version is still the one that the caller read (0: there was none), else
	// ConflictPauses. It returns the next version. A repetition after a lost answer may be ConflictPauses.
	PutPauses(ctx context.Context, c *PutPausesCommand) (version int64, err error)

	// PutProgress keeps the last progress note of a run, outside its history. A lease token that no longer owns the run
	// is ConflictLeaseOwnership; a missing run is runlane.ErrRunNotFound. A note older than the stored one changes
	// nothing and is not an error.
	PutProgress(ctx context.Context, key RunKey, leaseToken string, p runlane.Progress) error
	// GetProgress returns the zero value if there is none.
	GetProgress(ctx context.Context, key RunKey) (runlane.Progress, error)

	// BeginFeed starts recording the order of commits, unless already started, and returns the position of the latest
	// recorded commit, if any. Recording continues as long as the storage's state.
	BeginFeed(ctx context.Context) (FeedPosition, error)
	// ReadFeed returns commits after a position in their order. Exact, without gaps: every commit answered before the
	// call is at or before the position, or in the results of this call and its successors. These positions are
	// runlane.ErrValidationFailed: no longer kept, not yet reached, or from another feed, such as this storage before
	// it was restored from a copy.
	ReadFeed(ctx context.Context, q *FeedQuery) (*FeedPage, error)

	// CheckOutput reports, before a handler returns, whether the storage can hold its output:
	// runlane.ErrValidationFailed if a commit would refuse it. The bytes are the ones to be committed, after any codec.
	// It reads and writes nothing. A storage that refuses sizes within runlane.MaxPayloadBytes must report that here:
	// otherwise the handler succeeds, with all its effects, and the commit fails, or a schedule fails at each of its
	// times. [UnimplementedStorage] accepts all.
	CheckOutput(run runlane.RunID, output []byte) error
	// CheckPayload does the same for a payload, before a schedule fires.
	CheckPayload(run runlane.RunID, payload []byte) error

	// CountRuns counts all active runs of a queue, in the sense of ListRuns, without reading them. It has no flag: if
	// it returns runlane.ErrCapabilityUnsupported, callers count a bounded number of pages.
	CountRuns(ctx context.Context, q *CountQuery) (*RunCounts, error)
	// Check pages through an environment and returns violations of the storage's own invariants, for tests after every
	// case and for diagnosis. It has no flag: a storage that returns runlane.ErrCapabilityUnsupported is not checked.
	Check(ctx context.Context, q *PageQuery) (*runlane.Page[Violation], error)
}

// Violation is one broken invariant: Rule names the invariant, Detail describes the violation.
type Violation struct {
	RunKey
	Rule, Detail string
}

// StorageCapabilities are public promises. The zero value promises none. A method with a false flag returns
// runlane.ErrCapabilityUnsupported; AppendRunEvents, GetRun, GetRuns, InspectRun, CheckOutput, CheckPayload, CountRuns
// and Check have no flag. A command that needs a missing ability (a key, a bounded policy, a reservation) gets the same
// error.
type StorageCapabilities struct {
	// ClaimsScheduleOccurrences: maintenance can claim occurrences safely (ClaimScheduleOccurrence,
	// CompleteScheduleOccurrence, ListScheduleOccurrences).
	ClaimsScheduleOccurrences bool `json:"claimsScheduleOccurrences"`
	// DurableState: committed state survives the loss of the process.
	DurableState bool `json:"durableState"`
	// EnforcesIdempotency: idempotency owners are kept (GetRunByIdempotencyKey, ResetIdempotencyKey).
	EnforcesIdempotency bool `json:"enforcesIdempotency"`
	// EnforcesQueueConcurrency: bounded queues hold their limit (ReserveRunDispatch, ReleaseRunDispatch,
	// ListRunsNeedingDispatch).
	EnforcesQueueConcurrency bool `json:"enforcesQueueConcurrency"`
	// EnforcesQueueRate: queues with a rate hold it (TakeTicket). Needs EnforcesQueueConcurrency.
	EnforcesQueueRate bool `json:"enforcesQueueRate"`
	// EnforcesSingleton: singleton owners are kept (GetRunBySingletonKey).
	EnforcesSingleton bool `json:"enforcesSingleton"`
	// LeasesRuns: workers can claim and heartbeat (ClaimRunLease, HeartbeatRunLease, ReleaseRunLease, ListRunnableRuns,
	// ListRunsNeedingDelivery, ListRunsNeedingCancellationFinalization).
	LeasesRuns bool `json:"leasesRuns"`
	// PersistsOutbox: delivery requests make outbox rows (ClaimOutboxMessages and the three marks). Without it
	// run.delivery_requested makes no row.
	PersistsOutbox bool `json:"persistsOutbox"`
	// ProcessLocalState: no other process can reach the state, and it need not survive. Excludes DurableState.
	ProcessLocalState bool `json:"processLocalState"`
	// PrunesRuns: terminal runs can be removed (PruneRuns, GetKeep, PutKeep).
	PrunesRuns bool `json:"prunesRuns"`
	// ReadsRunHistory: runs and events can be listed (ListRuns, ListRunEvents).
	ReadsRunHistory bool `json:"readsRunHistory"`

	// CommitsWrites: AppendRunEvents commits AppendCommand.Writes of the storage's own kind together with a new run.
	CommitsWrites bool `json:"commitsWrites"`
	// FeedsCommits: the commits of an environment can be read in order (BeginFeed, ReadFeed). Without it no caller can
	// follow all runs of an environment at once.
	FeedsCommits bool `json:"feedsCommits"`
	// FindsLostWakeups: queued runs with a published but unclaimed wakeup are found again (ListRunsNeedingRedelivery).
	FindsLostWakeups bool `json:"findsLostWakeups"`
	// KeepsDeadLetters: given-up wakeups can be listed and requeued (ListDeadLetters, RequeueDeadLetters).
	KeepsDeadLetters bool `json:"keepsDeadLetters"`
	// KeepsProgress: the last progress note of a run is kept (PutProgress, GetProgress).
	KeepsProgress bool `json:"keepsProgress"`
	// KeepsSchedules: schedule records are stored (PutSchedule, GetSchedule, ListSchedules).
	KeepsSchedules bool `json:"keepsSchedules"`
	// KeepsTasks: definitions of tasks are kept for programs without their code (PutTask, ListTasks).
	KeepsTasks bool `json:"keepsTasks"`
	// SuspendsRuns: runs keep records and wait for signals, children and flows (KeepRecord, ListRecords, ReadMail,
	// SendSignal, BeginCall, ReadCalls, ListRunsToNotify, NotifyEnd, PutFlow, GetFlow, ListFlows).
	SuspendsRuns bool `json:"suspendsRuns"`
}

// RunKey names one run: RunID is unique within Environment. Keys are structs so that two strings in a row cannot be
// swapped.
type RunKey struct {
	Environment runlane.Environment
	RunID       runlane.RunID
}

// OwnerKey names the owner of an idempotency or singleton Key, scoped by Environment and TaskID.
type OwnerKey struct {
	Environment runlane.Environment
	TaskID      runlane.TaskID
	Key         string
}

// ScheduleKey names one schedule: ScheduleID is unique within Environment.
type ScheduleKey struct {
	Environment runlane.Environment
	ScheduleID  runlane.ScheduleID
}
