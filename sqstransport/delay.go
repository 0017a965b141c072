package sqstransport

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// MaxDelay is 15 minutes for a standard queue and 0 for others: SQS cannot delay a single message of a FIFO queue.
func (t *Transport) MaxDelay(queue runlane.QueueName) time.Duration {
	if b, ok := t.carrier(queue); ok && !b.fifo {
		return MaxDelay
	}
	return 0
}

// Ordered implements [lane.Transport]: it is true for FIFO queues.
func (t *Transport) Ordered(queue runlane.QueueName) bool {
	b, ok := t.carrier(queue)
	return ok && b.fifo
}

// log is the transport's logger, else the default one.
func (t *Transport) log() *slog.Logger { return cmp.Or(t.logger, slog.Default()) }

// Fair implements [lane.Transport]: it is true for standard queues with [Options].Fair.
func (t *Transport) Fair(queue runlane.QueueName) bool {
	b, ok := t.carrier(queue)
	return ok && !b.fifo && t.fair
}

// SendWakeups sends each wakeup after its delay, rounded up to whole seconds. Outcomes are as for PublishWakeups; a
// delay beyond the queue's limit is a permanent failure. The only error is runlane.ErrOperationCancelled for a context
// that ended before anything was sent.
func (t *Transport) SendWakeups(ctx context.Context, wakeups []lane.DelayedWakeup) ([]lane.PublishOutcome, error) {
	if err := checkContext(ctx); err != nil {
		return nil, err
	}
	outcomes := make([]lane.PublishOutcome, len(wakeups))
	byQueue := map[*binding][]outgoing{}
	for i := range wakeups {
		w := &wakeups[i]
		b, ok := t.carrier(w.Queue)
		if !ok {
			outcomes[i] = t.unboundOutcome(w.Queue)
			continue
		}
		if b.fifo || w.Delay > MaxDelay {
			outcomes[i] = *refused(
				fmt.Sprintf("queue %q delays at most %s, not %s", w.Queue, t.MaxDelay(w.Queue), w.Delay),
				nil,
				true,
			)
			continue
		}
		entry, failure := t.newEntry(w.Wakeup)
		if failure != nil {
			outcomes[i] = *failure
			continue
		}
		entry.DelaySeconds = delaySeconds(w.Delay)
		if w.Early {
			entry.DelaySeconds = int32(max(w.Delay, 0) / time.Second)
		}
		if t.fair {
			entry.MessageGroupId = aws.String(groupID(w.Queue, string(w.RunID)))
		}
		byQueue[b] = append(byQueue[b], outgoing{index: i, entry: entry})
	}
	t.send(ctx, byQueue, outcomes)
	return outcomes, nil
}

// delaySeconds rounds up: an early wakeup would find a run that is not due.
func delaySeconds(d time.Duration) int32 {
	if d <= 0 {
		return 0
	}
	return int32((d + time.Second - 1) / time.Second) // at most 900
}
