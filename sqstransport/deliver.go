package sqstransport

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/errgroup"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Record is one received message, from a poll or from a Lambda event.
type Record struct {
	// MessageID is the message's ID in its queue.
	MessageID string
	// ReceiptHandle deletes the message or changes its visibility, for this receipt.
	ReceiptHandle string
	// Body is input for [ParseMessage].
	Body string
	// Group is the message group, or "".
	Group string
	// ReceiveCount counts receipts including this one; 0 is unknown.
	ReceiveCount int
	// Turn is how many records of its group precede it in its batch. [Deliver] sets it.
	Turn int
}

// Deliver parses each record of one batch and calls handle with its wakeup. It calls settled once for each record as
// soon as its outcome is known, maybe concurrently: with nil the record may be deleted, with an error it has to be
// handed back. A malformed record is handed back without a call of handle, so that it reaches its dead-letter queue.
// Deliver returns when all records are settled.
//
// Records of a standard queue run concurrently. In a FIFO queue, groups run concurrently and the records of a group in
// order. After a failure in a group, its later records are handed back untouched, with the same delay.
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

// sequences groups records that must not overtake each other.
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

// malformedError marks a record that handle never got.
type malformedError struct{ error }

func (e *malformedError) Unwrap() error { return e.error }

// heldBackError marks a record that waits because an earlier one of its group failed.
type heldBackError struct {
	after Record
	cause error
}

func (e *heldBackError) Error() string {
	return fmt.Sprintf("held back: message %s of its group came before and failed", e.after.MessageID)
}

func (e *heldBackError) Unwrap() error { return e.cause }

// errStopping marks a received record that was not started before the receiver stopped.
var errStopping error = &runlane.Error{
	Code: runlane.ErrOperationCancelled, Message: "the receiver stops, this wakeup was not begun", Retryable: true,
}

// settleLinger is how long a settled record of a standard queue waits to share its request.
const settleLinger = 100 * time.Millisecond

// settler deletes or hands back the records of one queue, up to ten a request. Records of a FIFO queue do not wait for
// a full request: their group continues only after the deletion.
type settler struct {
	transport *Transport
	binding   *binding
	records   chan HandedBack // deleted if Err is nil
	finished  chan struct{}
}

func (t *Transport) newSettler(b *binding) *settler {
	s := &settler{transport: t, binding: b, records: make(chan HandedBack, maxBatch), finished: make(chan struct{})}
	go s.run()
	return s
}

// settle blocks while the maximum of requests is in progress.
func (s *settler) settle(r Record, err error) { s.records <- HandedBack{Record: r, Err: err} }

// close flushes. No call of settle may follow.
func (s *settler) close() {
	close(s.records)
	<-s.finished
}

func (s *settler) run() {
	defer close(s.finished)
	var requests errgroup.Group
	requests.SetLimit(maxRequests)
	defer func() { _ = requests.Wait() }()
	var deletes, backs []HandedBack
	flush := func() {
		if batch := deletes; len(batch) > 0 {
			requests.Go(func() error { s.delete(batch); return nil })
		}
		if batch := backs; len(batch) > 0 {
			requests.Go(func() error { s.handBack(batch); return nil })
		}
		deletes, backs = nil, nil
	}
	var linger <-chan time.Time
	for {
		select {
		case r, open := <-s.records:
			if !open {
				flush()
				return
			}
			if r.Err == nil {
				deletes = append(deletes, r)
			} else {
				backs = append(backs, r)
			}
			full := len(deletes) == maxBatch || len(backs) == maxBatch
			if full || s.binding.fifo && len(s.records) == 0 {
				flush()
				linger = nil
			} else if linger == nil {
				linger = time.After(settleLinger)
			}
		case <-linger:
			flush()
			linger = nil
		}
	}
}

// delete repeats failed deletions once. SQS redelivers a record that remains; its run is finished by then, so it is
// deleted.
func (s *settler) delete(batch []HandedBack) {
	t := s.transport
	for range 2 {
		entries := make([]types.DeleteMessageBatchRequestEntry, len(batch))
		for i := range batch {
			entries[i] = types.DeleteMessageBatchRequestEntry{
				Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(batch[i].ReceiptHandle),
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), t.timeout)
		out, err := t.api.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{
			QueueUrl: aws.String(s.binding.url),
			Entries:  entries,
		})
		cancel()
		if err != nil {
			e := operationError(context.Background(), s.binding, err)
			t.log().Warn(
				"acknowledged wakeups were not deleted and will be redelivered", "queue", s.binding.name, "count", len(batch),
				"code", e.Code, "error", strings.TrimPrefix(e.Error(), string(e.Code)+": "),
			)
			return
		}
		var again []HandedBack
		for i := range out.Failed {
			f := &out.Failed[i]
			if at, err := strconv.Atoi(aws.ToString(f.Id)); err == nil && at >= 0 && at < len(batch) && !f.SenderFault {
				again = append(again, batch[at])
			}
		}
		if len(again) == 0 {
			return
		}
		batch = again
	}
}

func (s *settler) handBack(batch []HandedBack) {
	if err := s.transport.handBack(context.Background(), s.binding, batch, slog.LevelDebug); err != nil {
		s.transport.log().Warn(
			"wakeups were handed back but will be redelivered later than intended",
			"queue",
			s.binding.name,
			"count",
			len(batch),
			"error",
			err.Error(),
		)
	}
}
