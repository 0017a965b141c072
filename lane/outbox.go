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
	// OutboxDeadLettered: not tried again until an operator requeues it.
	OutboxDeadLettered OutboxStatus = "dead_lettered"
)

// OutboxRef is a message with its caller's claim. Storage makes the ID of the row and the ClaimToken; both are opaque.
type OutboxRef struct {
	ID         string
	ClaimToken string
}

// OutboxMessage is one wakeup to publish.
type OutboxMessage struct {
	OutboxRef
	// Wakeup is the message for the transport.
	Wakeup Wakeup
	// GroupKey is the run's concurrency key, else its ID.
	GroupKey string
	// Status of the row.
	Status OutboxStatus
	// Attempts counts failures of this message itself.
	Attempts int
	// AvailableAt is when the next attempt is due.
	AvailableAt time.Time
	// ClaimUntil is the end of the current claim, if any.
	ClaimUntil time.Time
	// Failure is the latest one.
	Failure runlane.Failure
}

// ClaimOutboxCommand claims rows of an Environment for publishing.
type ClaimOutboxCommand struct {
	Environment runlane.Environment
	// IDs limits the claim to these rows; nil means all due rows.
	IDs []string
	// At is the time for the due check.
	At time.Time
	// Patience may exclude rows that just became due, for their publishers. Ignored with IDs.
	Patience Patience
	// Without excludes queues; their rows cost nothing, however many are due. Ignored with IDs.
	Without []runlane.QueueName
	// Round is as in [DueQuery]. Ignored with IDs.
	Round *Round
	// ClaimUntil is the end of the claim.
	ClaimUntil time.Time
	// Limit 0 means runlane.DefaultPageLimit.
	Limit int
}

// MarkPublishedCommand acknowledges rows of an Environment, which the transport accepted at At. Messages are the rows
// with their claims.
type MarkPublishedCommand struct {
	Environment runlane.Environment
	At          time.Time
	Messages    []OutboxRef
}

// OutboxFailure is a failed row.
type OutboxFailure struct {
	OutboxRef
	// Attempts is the new count: a failure of the whole operation does not raise it.
	Attempts int
	// Failure as the transport reported it.
	Failure runlane.Failure
	// NextAvailableAt is zero for dead letters.
	NextAvailableAt time.Time
}

// MarkFailedCommand records failures of rows of an Environment, at At. Messages are the rows with their claims.
type MarkFailedCommand struct {
	Environment runlane.Environment
	At          time.Time
	Messages    []OutboxFailure
}

// MarkDeadLetteredCommand gives rows up.
type MarkDeadLetteredCommand MarkFailedCommand

// DeadLetterQuery pages dead letters.
type DeadLetterQuery struct {
	PageQuery
	// Queue filters; "" means all.
	Queue runlane.QueueName
}

// RequeueCommand makes dead letters of an Environment pending again, by their IDs, due at At.
type RequeueCommand struct {
	Environment runlane.Environment
	IDs         []string
	At          time.Time
}
