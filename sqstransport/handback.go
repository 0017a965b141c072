package sqstransport

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/runlane/runlane-go"
)

// The delays of what is handed back: the first, doubled with every receipt, up to the last.
const (
	firstHandBack = 10 * time.Second
	lastHandBack  = 5 * time.Minute
	// lastFIFOHandBack is the longest delay in a FIFO queue, where a record holds back its whole group: it reaches the
	// dead-letter queue after twelve minutes instead of an hour.
	lastFIFOHandBack = time.Minute
)

// HandedBack is a record and why it is handed back.
type HandedBack struct {
	Record
	// Err is what [Deliver] said of the record.
	Err error
}

// HandBacker decides when failed records come again: without it they stay invisible for the queue's whole visibility
// timeout. A transport is asked for it with [lane.As].
type HandBacker interface {
	// HandBack makes the records of one queue, given by its URL or its ARN, visible again after [HandBackDelay]. It is
	// best effort: a record whose visibility could not be changed comes again when its timeout is over. A queue that is
	// not bound is runlane.ErrConfigurationInvalid, a failure of the requests runlane.ErrTransportUnavailable.
	HandBack(ctx context.Context, queue string, records []HandedBack) error
}

var _ HandBacker = (*Transport)(nil)

// HandBackDelay is the delay after which a record that failed with err comes again (docs/internals/design.md,
// What a wakeup leads to):
//
//	The receiver stops                                  at once
//	No time was left to begin it, because others of its
//	group used it (runlane.ErrOperationCancelled)       at once
//	Otherwise                                           10 s, doubled with every receipt, at most 5 min
//
// In a FIFO queue, which a record does not tell, [HandBacker] shortens it to 1 min.
//
// Where others used the time, at least one of them was begun and does not come again for that reason: so a record uses
// up no more receipts in this way than a batch has records.
func HandBackDelay(r Record, err error) time.Duration {
	if held, ok := errors.AsType[*heldBackError](err); ok {
		return HandBackDelay(held.after, held.cause)
	}
	if errors.Is(err, errStopping) || r.Turn > 0 && runlane.CodeOf(err) == runlane.ErrOperationCancelled {
		return 0
	}
	delay := firstHandBack
	for n := r.ReceiveCount; n > 1 && delay < lastHandBack; n-- {
		delay *= 2
	}
	return min(delay, lastHandBack)
}

// HandBack implements [HandBacker]. Each record is logged by its message id when it is handed back for the first time:
// unlike the handler of [lane.Receiver], a function's handler logs nothing.
func (t *Transport) HandBack(ctx context.Context, queue string, records []HandedBack) error {
	b := t.bindingOf(queue)
	if b == nil {
		return invalid(
			"records come from a queue that is not bound",
			"add the queue to RUNLANE_QUEUES",
			map[string]string{"queue": queue},
		)
	}
	return t.handBack(ctx, b, records, slog.LevelWarn)
}

// handBack logs what the caller's handler refused at the given level, the first time.
func (t *Transport) handBack(ctx context.Context, b *binding, records []HandedBack, refused slog.Level) error {
	changes := make([]visibilityChange, len(records))
	for i := range records {
		r := &records[i]
		delay := HandBackDelay(r.Record, r.Err)
		if b.fifo {
			delay = min(delay, lastFIFOHandBack)
		}
		changes[i] = visibilityChange{receiptHandle: r.ReceiptHandle, timeout: delay}
		t.logHandBack(ctx, b, r, changes[i].timeout, refused)
	}
	_, err := t.changeVisibility(ctx, b, changes)
	return err
}

func (t *Transport) logHandBack(
	ctx context.Context, b *binding, r *HandedBack, delay time.Duration, refused slog.Level,
) {
	_, malformed := errors.AsType[*malformedError](r.Err)
	level := refused
	switch {
	case r.ReceiveCount > 1 || delay == 0 || isHeldBack(r.Err):
		level = slog.LevelDebug // already logged at its first receipt, or no action is needed
	case malformed:
		level = slog.LevelWarn // no handler saw it
	}
	logger := t.log().With("queue", b.name, "message_id", r.MessageID, "receive_count", r.ReceiveCount,
		"delay", delay, "code", runlane.CodeOf(r.Err), "error", r.Err)
	if malformed {
		logger.Log(ctx, level, "message is no wakeup and is left for the dead-letter queue")
		return
	}
	logger.Log(ctx, level, "wakeup handed back")
}

func isHeldBack(err error) bool {
	_, ok := errors.AsType[*heldBackError](err)
	return ok
}

// visibilityChange makes a message invisible for timeout from now on.
type visibilityChange struct {
	receiptHandle string
	timeout       time.Duration
}

// changeVisibility sends ten changes a request. It returns the receipt handles that SQS refused to change; the error
// joins those of requests that failed as a whole.
func (t *Transport) changeVisibility(
	ctx context.Context, b *binding, changes []visibilityChange,
) (refused []string, err error) {
	var errs []error
	for start := 0; start < len(changes); start += maxBatch {
		batch := changes[start:min(start+maxBatch, len(changes))]
		entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(batch))
		for i, c := range batch {
			entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{
				Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(c.receiptHandle),
				VisibilityTimeout: int32(c.timeout / time.Second), // at most 12 h
			}
		}
		failed, err := t.changeBatch(ctx, b, entries)
		if err != nil {
			errs = append(errs, err)
		}
		for i := range failed {
			if at, err := strconv.Atoi(aws.ToString(failed[i].Id)); err == nil && at >= 0 && at < len(batch) {
				refused = append(refused, batch[at].receiptHandle)
			}
		}
	}
	return refused, errors.Join(errs...)
}

func (t *Transport) changeBatch(
	ctx context.Context, b *binding, entries []types.ChangeMessageVisibilityBatchRequestEntry,
) ([]types.BatchResultErrorEntry, error) {
	request, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: aws.String(b.url), Entries: entries}
	out, err := t.api.ChangeMessageVisibilityBatch(request, in)
	if err != nil {
		return nil, operationError(ctx, b, err)
	}
	for i := range out.Failed {
		t.log().DebugContext(ctx, "visibility of a wakeup was not changed", "queue", b.name,
			"provider_code", aws.ToString(out.Failed[i].Code), "error", aws.ToString(out.Failed[i].Message))
	}
	return out.Failed, nil
}
