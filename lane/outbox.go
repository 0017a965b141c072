package lane

import (
	"time"

	"github.com/runlane/runlane-go"
)

// OutboxStatus is the state of an outbox row.
type OutboxStatus string

// The statuses of an outbox row.
const (
	// OutboxPending: no publisher has claimed it yet.
	OutboxPending OutboxStatus = "pending"
	// OutboxClaimed: a publisher owns it until the claim's end.
	OutboxClaimed OutboxStatus = "claimed"
	// OutboxPublished: the transport accepted it.
	OutboxPublished OutboxStatus = "published"
	// OutboxFailed: the transport refused it; it is tried again.
	OutboxFailed OutboxStatus = "failed"
	// OutboxDeadLettered: it is not tried again until an operator requeues it.
	OutboxDeadLettered OutboxStatus = "dead_lettered"
)

// OutboxRef is a message and the claim its caller holds. Both are opaque.
type OutboxRef struct {
	// ID names the row, as storage made it.
	ID string
	// ClaimToken proves the claim; storage made it.
	ClaimToken string
}

// OutboxMessage is one wakeup to publish.
type OutboxMessage struct {
	OutboxRef
	// Wakeup is what the transport carries.
	Wakeup Wakeup
	// GroupKey is the run's concurrency key, else its id.
	GroupKey string
	// Status is where the row stands.
	Status OutboxStatus
	// Attempts counts failures of this message itself.
	Attempts int
	// AvailableAt is when the next attempt is due.
	AvailableAt time.Time
	// ClaimUntil is the end of the claim, while there is one.
	ClaimUntil time.Time
	// Failure is the last one.
	Failure runlane.Failure
}

// ClaimOutboxCommand claims rows to publish.
type ClaimOutboxCommand struct {
	// Environment holds the rows.
	Environment runlane.Environment
	// IDs: nil means whatever is due; set means these and no others.
	IDs []string
	// At is the instant by which due-ness is judged.
	At time.Time
	// Patience may leave out rows that just became due, for their publishers. Ignored for given IDs.
	Patience Patience
	// Without excludes queues; their rows cost nothing, however many are due. Ignored for given IDs.
	Without []runlane.QueueName
	// ClaimUntil ends the claim by itself.
	ClaimUntil time.Time
	// Limit 0 means runlane.DefaultPageLimit.
	Limit int
}

// MarkPublishedCommand acknowledges rows.
type MarkPublishedCommand struct {
	// Environment holds the rows.
	Environment runlane.Environment
	// At is when the transport accepted them.
	At time.Time
	// Messages are the rows with their claims.
	Messages []OutboxRef
}

// OutboxFailure is a failed row.
type OutboxFailure struct {
	OutboxRef
	// Attempts from now on: an operation-level failure leaves the count as it was.
	Attempts int
	// Failure is what the transport said.
	Failure runlane.Failure
	// NextAvailableAt is zero for dead letters.
	NextAvailableAt time.Time
}

// MarkFailedCommand records failures.
type MarkFailedCommand struct {
	// Environment holds the rows.
	Environment runlane.Environment
	// At is when publishing failed.
	At time.Time
	// Messages are the rows with their claims and failures.
	Messages []OutboxFailure
}

// MarkDeadLetteredCommand gives rows up.
type MarkDeadLetteredCommand MarkFailedCommand

// DeadLetterQuery pages dead letters.
type DeadLetterQuery struct {
	PageQuery
	// Queue filters; "" means all.
	Queue runlane.QueueName
}

// RequeueCommand makes dead letters pending again.
type RequeueCommand struct {
	// Environment holds the rows.
	Environment runlane.Environment
	// IDs are those of the dead letters.
	IDs []string
	// At is when they are due again.
	At time.Time
}
