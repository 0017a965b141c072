package sqstransport

import (
	"context"
	"fmt"
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Record is one received message, from a poll or from a Lambda event.
type Record struct {
	// MessageID names the message in its queue.
	MessageID string
	// ReceiptHandle is this receipt's: it deletes the message or changes its visibility.
	ReceiptHandle string
	// Body is what [ParseMessage] reads.
	Body string
	// Group is the message group, "" without one.
	Group string
	// ReceiveCount counts receipts, this one too; 0 where it is not known.
	ReceiveCount int
	// Turn is how many records of its group were handled before it in its batch: [Deliver] sets it.
	Turn int
}

// Deliver parses each record of one batch and calls handle with it and its wakeup. It calls settled once for each
// record, as soon as its outcome is known, from the goroutine that learned it: nil means that the record may be
// deleted, any other error that it is to be handed back. A record that cannot be parsed is handed back alone,
// unhandled, so that it reaches its dead-letter queue unchanged. Deliver returns when all are settled.
//
// Records of a standard queue run concurrently. In a FIFO queue, groups run concurrently, and the records of a group in
// order; after the first failure in a group, its later records are handed back untouched, for as long as the first.
func Deliver(
	ctx context.Context,
	records []Record,
	fifo bool,
	handle func(context.Context, Record, lane.Wakeup) error,
	settled func(Record, error),
) {
	var running sync.WaitGroup
	for _, sequence := range sequences(records, fifo) {
		running.Go(func() {
			var before *heldBackError
			for turn, record := range sequence {
				record.Turn = turn
				if before != nil {
					settled(record, before)
					continue
				}
				err := deliverOne(ctx, record, handle)
				if err != nil {
					before = &heldBackError{after: record, cause: err}
				}
				settled(record, err)
			}
		})
	}
	running.Wait()
}

// sequences are the lists of records that must not overtake each other.
func sequences(records []Record, fifo bool) [][]Record {
	lists := make([][]Record, 0, len(records))
	byGroup := map[string]int{}
	for _, record := range records {
		if i, known := byGroup[record.Group]; known && fifo {
			lists[i] = append(lists[i], record)
			continue
		}
		byGroup[record.Group] = len(lists)
		lists = append(lists, []Record{record})
	}
	return lists
}

func deliverOne(ctx context.Context, record Record, handle func(context.Context, Record, lane.Wakeup) error) error {
	w, err := ParseMessage(record.Body)
	if err != nil {
		return &malformedError{err}
	}
	return handle(ctx, record, w)
}

// malformedError marks a record that never reached its handler.
type malformedError struct{ error }

func (e *malformedError) Unwrap() error { return e.error }

// heldBackError is of a record that waits because an earlier one of its group failed.
type heldBackError struct {
	after Record
	cause error
}

func (e *heldBackError) Error() string {
	return fmt.Sprintf("held back: message %s of its group came before and failed", e.after.MessageID)
}

func (e *heldBackError) Unwrap() error { return e.cause }

// errStopping is of a record that was received and not begun when its receiver was told to stop.
var errStopping error = &runlane.Error{
	Code: runlane.ErrOperationCancelled, Message: "the receiver stops, this wakeup was not begun", Retryable: true,
}
