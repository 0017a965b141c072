package sqstransport

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/errgroup"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

type outgoing struct {
	index int
	entry types.SendMessageBatchRequestEntry
}

// PublishWakeups sends the wakeups of each queue, ten a request and several requests at once. For a FIFO queue it sends
// one request after the other and stops after a failed one, so that no wakeup overtakes an earlier one of its group.
// Each attempt has its own outcome. Errors: runlane.ErrOperationCancelled for a context that ended before anything was
// sent, runlane.ErrContractViolation for a nil command.
//
// A message refused for its content fails with runlane.ErrTransportPublishFailed, permanently if SQS can never accept
// it. All else, also an unbound or missing queue, is runlane.ErrTransportUnavailable: the wakeups wait for a repair.
func (t *Transport) PublishWakeups(ctx context.Context, c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	if c == nil {
		return nil, &runlane.Error{
			Code:    runlane.ErrContractViolation,
			Message: "PublishWakeups got no command",
			Hint:    "pass a *lane.PublishCommand",
		}
	}
	if err := checkContext(ctx); err != nil {
		return nil, err
	}
	outcomes := make([]lane.PublishOutcome, len(c.Attempts))
	byQueue := map[*binding][]outgoing{}
	for i := range c.Attempts {
		attempt := &c.Attempts[i]
		b, ok := t.carrier(attempt.Queue)
		if !ok {
			outcomes[i] = t.unboundOutcome(attempt.Queue)
			continue
		}
		entry, failure := t.newEntry(attempt.Wakeup)
		if failure != nil {
			outcomes[i] = *failure
			continue
		}
		key := attempt.GroupKey
		if key == "" {
			key = string(attempt.RunID)
		}
		if b.fifo {
			entry.MessageGroupId = aws.String(groupID(attempt.Queue, key))
			entry.MessageDeduplicationId = aws.String(deduplicationID(attempt.OutboxRef.ID))
		} else if t.fair {
			entry.MessageGroupId = aws.String(groupID(attempt.Queue, key))
		}
		byQueue[b] = append(byQueue[b], outgoing{index: i, entry: entry})
	}
	t.send(ctx, byQueue, outcomes)
	return outcomes, nil
}

func checkContext(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return &runlane.Error{
		Code:      runlane.ErrOperationCancelled,
		Message:   "nothing was sent: the context has ended",
		Retryable: true,
		Cause:     context.Cause(ctx),
	}
}

// newEntry returns the message, or the outcome if it can never be sent.
func (t *Transport) newEntry(w lane.Wakeup) (types.SendMessageBatchRequestEntry, *lane.PublishOutcome) {
	text, err := encodeWakeup(w)
	if err == nil && len(text) <= MaxMessageBytes {
		entry := types.SendMessageBatchRequestEntry{MessageBody: aws.String(text)}
		if header, ok := xrayHeader(w.TraceCarrier); ok { // Lambda and X-Ray read it; it is not part of the message's size
			entry.MessageSystemAttributes = map[string]types.MessageSystemAttributeValue{
				string(types.MessageSystemAttributeNameForSendsAWSTraceHeader): {
					DataType: aws.String("String"), StringValue: aws.String(header),
				},
			}
		}
		return entry, nil
	}
	message := "wakeup does not encode"
	if err == nil {
		message = fmt.Sprintf("wakeup has %d bytes, SQS takes %d", len(text), MaxMessageBytes)
	}
	return types.SendMessageBatchRequestEntry{}, refused(message, nil, true)
}

// xrayKey is the name of X-Ray's header in a trace carrier, in any case.
const xrayKey = "X-Amzn-Trace-Id"

var xrayForm = regexp.MustCompile(`^Root=1-[0-9a-f]{8}-[0-9a-f]{24};Parent=[0-9a-f]{16};Sampled=[01]$`)

// xrayHeader returns the header of X-Ray in a carrier. Callers write carriers, and SQS checks its attributes: only the
// usual form is passed on, since a message that SQS refuses for its content is never sent again.
func xrayHeader(carrier map[string]string) (header string, ok bool) {
	for key, value := range carrier {
		if strings.EqualFold(key, xrayKey) && xrayForm.MatchString(value) {
			return value, true
		}
	}
	return "", false
}

// send sets the outcome of every message. Nothing else writes outcomes meanwhile.
func (t *Transport) send(ctx context.Context, byQueue map[*binding][]outgoing, outcomes []lane.PublishOutcome) {
	var group errgroup.Group
	group.SetLimit(maxRequests)
	for b, messages := range byQueue {
		batches := splitBatches(messages)
		if !b.fifo {
			for _, batch := range batches {
				group.Go(func() error { t.sendBatch(ctx, b, batch, outcomes); return nil })
			}
			continue
		}
		group.Go(func() error {
			for i, batch := range batches {
				if t.sendBatch(ctx, b, batch, outcomes) {
					continue
				}
				for _, rest := range batches[i+1:] {
					fail(
						rest,
						outcomes,
						unavailable(
							fmt.Sprintf("an earlier request to queue %q failed, and order is kept", b.name),
							"",
							nil,
						),
					)
				}
				return nil
			}
			return nil
		})
	}
	_ = group.Wait() // never an error
}

// splitBatches starts a new request after ten messages, or where the bytes exceed the limit.
func splitBatches(messages []outgoing) [][]outgoing {
	var batches [][]outgoing
	start, size := 0, 0
	for i := range messages {
		length := entryBytes(&messages[i].entry)
		if i > start && (i-start == maxBatch || size+length > MaxMessageBytes) {
			batches = append(batches, messages[start:i])
			start, size = i, 0
		}
		size += length
	}
	if start < len(messages) {
		batches = append(batches, messages[start:])
	}
	return batches
}

func entryBytes(e *types.SendMessageBatchRequestEntry) int { return len(aws.ToString(e.MessageBody)) }

// sendBatch reports whether SQS answered the request.
func (t *Transport) sendBatch(ctx context.Context, b *binding, batch []outgoing, outcomes []lane.PublishOutcome) bool {
	entries := make([]types.SendMessageBatchRequestEntry, len(batch))
	byID := make(map[string]int, len(batch))
	for i := range batch {
		id := strconv.Itoa(i)
		entries[i], byID[id] = batch[i].entry, batch[i].index
		entries[i].Id = aws.String(id)
	}
	request, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	out, err := t.api.SendMessageBatch(request, &sqs.SendMessageBatchInput{
		QueueUrl: aws.String(b.url),
		Entries:  entries,
	})
	if err != nil {
		e := operationError(ctx, b, err)
		fail(batch, outcomes, unavailable(e.Message, e.Hint, e.Meta))
		return false
	}
	fail(
		batch,
		outcomes,
		unavailable(fmt.Sprintf("SQS reported no outcome for this wakeup in queue %q", b.name), "", nil),
	)
	for i := range out.Successful {
		if index, ok := byID[aws.ToString(out.Successful[i].Id)]; ok {
			outcomes[index] = lane.PublishOutcome{Type: lane.Published}
		}
	}
	for i := range out.Failed {
		if index, ok := byID[aws.ToString(out.Failed[i].Id)]; ok {
			outcomes[index] = entryOutcome(b, &out.Failed[i])
		}
	}
	return true
}

// entryOutcome is the outcome of a message that SQS refused within an accepted request.
func entryOutcome(b *binding, e *types.BatchResultErrorEntry) lane.PublishOutcome {
	code := aws.ToString(e.Code)
	meta := map[string]string{"provider_code": code, "provider_message": aws.ToString(e.Message)}
	f := faultOfCode(code, e.SenderFault)
	if f != faultRefused {
		message, hint := describe(f, b)
		return unavailable(message, hint, meta)
	}
	return *refused(fmt.Sprintf("SQS refused the wakeup in queue %q: %s", b.name, code), meta, neverAccepted(code))
}

// neverAccepted knows the codes that blame the message's content, which never changes.
func neverAccepted(code string) bool {
	switch code {
	case "InvalidMessageContents", "InvalidParameterValue", "InvalidParameterValueException", "MessageTooLong",
		"InvalidAttributeValue",
		"AWS.SimpleQueueService.BatchRequestTooLong", "BatchRequestTooLong":
		return true
	default:
		return false
	}
}

func fail(messages []outgoing, outcomes []lane.PublishOutcome, outcome lane.PublishOutcome) {
	for i := range messages {
		outcomes[messages[i].index] = outcome
	}
}

// unboundOutcome never leads to a dead letter: the triggering process has the binding, so this process is
// misconfigured, and its next deployment publishes the row.
func (t *Transport) unboundOutcome(queue runlane.QueueName) lane.PublishOutcome {
	e := t.unboundError(queue)
	return unavailable(e.Message, e.Hint, nil)
}

func unavailable(message, hint string, meta map[string]string) lane.PublishOutcome {
	if hint != "" {
		message += " (" + hint + ")"
	}
	return lane.PublishOutcome{
		Type:    lane.PublishFailed,
		Failure: runlane.NewFailure(runlane.ErrTransportUnavailable, message, meta),
	}
}

func refused(message string, meta map[string]string, permanent bool) *lane.PublishOutcome {
	return &lane.PublishOutcome{
		Type: lane.PublishFailed, Permanent: permanent,
		Failure: runlane.NewFailure(runlane.ErrTransportPublishFailed, message, meta),
	}
}
