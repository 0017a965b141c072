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

// The delay of a record that is handed back doubles with each receipt, from firstHandBack to lastHandBack.
const (
	firstHandBack = 10 * time.Second
	lastHandBack  = 5 * time.Minute
	// lastFIFOHandBack is shorter because a record holds back its whole group: it is a dead letter after twelve minutes
	// instead of an hour.
	lastFIFOHandBack = time.Minute
)

// HandedBack is a record with the error for which it is handed back.
type HandedBack struct {
	Record
	// Err is the error that [Deliver] passed to settled.
	Err error
}

// HandBacker sets when failed records are redelivered, instead of the queue's visibility timeout. Find it with
// [lane.As].
type HandBacker interface {
	// HandBack makes records of one queue, by URL or ARN, visible again after [HandBackDelay]. It is best effort: at
	// worst a record is redelivered after its visibility timeout. An unbound queue is runlane.ErrConfigurationInvalid,
	// a failed request runlane.ErrTransportUnavailable.
	HandBack(ctx context.Context, queue string, records []HandedBack) error
}

var _ HandBacker = (*Transport)(nil)

// HandBackDelay is the delay before a record that failed with err is redelivered (docs/internals/design.md, What a
// wakeup leads to):
//
//	The receiver stops                                  at once
//	Other records of its group left no time to start it
//	(runlane.ErrOperationCancelled)                     at once
//	Otherwise                                           10 s, doubled with every receipt, at most 5 min
//
// For a FIFO queue, which a record does not show, [HandBacker] shortens it to 1 min.
//
// A record that found no time follows one that was started and is not redelivered for this reason. So it loses at most
// as many receipts in this way as a batch has records.
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

// HandBack implements [HandBacker]. It logs each record the first time: the handler of a function logs nothing, unlike
// the handler of [lane.Receiver].
func (t *Transport) HandBack(ctx context.Context, queue string, records []HandedBack) error {
	b := t.bindingOf(queue)
	if b == nil {
		return configurationError(
			"records come from a queue that is not bound",
			"add the queue to RUNLANE_QUEUES",
			map[string]string{"queue": queue},
		)
	}
	return t.handBack(ctx, b, records, slog.LevelWarn)
}

// handBack logs a handler's refusals at level refused, the first time.
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
		level = slog.LevelDebug // already logged at its first receipt, or needs no action
	case malformed:
		level = slog.LevelWarn // it reached no handler
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

type visibilityChange struct {
	receiptHandle string
	timeout       time.Duration
}

// changeVisibility sends ten changes a request. It returns the receipt handles that SQS refused; the error joins those
// of failed requests.
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
