package sqstransport

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/semaphore"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

const (
	// longPoll is the longest wait of SQS: three requests a minute for an idle queue.
	longPoll = 20 * time.Second
	// shortPoll applies with more queues than handlers: a long poll of one queue would keep a handler from the others.
	shortPoll = time.Second
	// idlePause separates the short polls of an idle queue, so that it costs hardly more requests than with long polls.
	idlePause = 15 * time.Second
	// maxBursts is how many extra polls run while every one returns a full batch.
	maxBursts = 3
	// firstPollPause and lastPollPause limit the pause after a poll that failed, or returned empty without waiting.
	firstPollPause = time.Second
	lastPollPause  = 15 * time.Second
)

// Receive polls each SQS queue that carries queues once and calls handle as [lane.Receiver] requires, also for other
// queues that share them. It never requests more wakeups than handlers are free, keeps wakeups invisible while they are
// handled, deletes acknowledged ones, and hands back the others after [HandBackDelay]. An idle queue costs at most 4
// requests a minute. Receive logs outages and continues after them.
//
// When ctx ends, received wakeups that have not started are handed back at once. A message that SQS was just returning
// is redelivered after Options.Visibility.
func (t *Transport) Receive(
	ctx context.Context, queues []runlane.QueueName, concurrency int, handle func(context.Context, lane.Wakeup) error,
) error {
	if concurrency < 1 {
		return configurationError(fmt.Sprintf("Receive has concurrency %d", concurrency), "use at least 1", nil)
	}
	for _, name := range queues {
		if _, ok := t.carrier(name); !ok {
			return t.unboundError(name)
		}
	}
	bindings := t.distinct(queues)
	permits := semaphore.NewWeighted(int64(concurrency))
	var receivers sync.WaitGroup
	for _, b := range bindings {
		r := &receiver{
			transport: t,
			binding:   b,
			permits:   permits,
			handle:    handle,
			keeper:    newKeeper(t, b),
			bursts:    semaphore.NewWeighted(maxBursts),
			alone:     len(bindings) == 1,
			wait:      longPoll,
		}
		if len(bindings) > concurrency {
			r.wait, r.pause = shortPoll, idlePause
		}
		receivers.Go(func() { r.run(ctx) })
	}
	receivers.Wait()
	return nil
}

type receiver struct {
	transport *Transport
	binding   *binding
	permits   *semaphore.Weighted // one a handler, shared by all queues
	handle    func(context.Context, lane.Wakeup) error
	keeper    *keeper
	settler   *settler
	bursts    *semaphore.Weighted
	batches   sync.WaitGroup
	misrouted sync.Map // queues already warned about

	alone       bool
	wait, pause time.Duration
}

func (r *receiver) run(ctx context.Context) {
	r.settler = r.transport.newSettler(r.binding)
	keeping, stopKeeping := context.WithCancel(context.WithoutCancel(ctx))
	var kept sync.WaitGroup
	kept.Go(func() { r.keeper.run(keeping) })
	r.poll(ctx)
	r.batches.Wait() // running handlers, and bursts
	stopKeeping()
	kept.Wait()
	r.settler.close()
}

func (r *receiver) poll(ctx context.Context) {
	want, failures, hasty := 1, 0, 0
	if r.alone {
		want = maxBatch
	}
	for {
		n := r.acquire(ctx, want)
		if n == 0 {
			return
		}
		began, wait := time.Now(), r.wait
		if n > 1 && !r.alone {
			wait = 0 // hold these handlers only if there is work at once
		}
		got, err := r.receive(ctx, n, wait)
		switch {
		case err != nil:
			if ctx.Err() != nil {
				return
			}
			failures++
			r.transport.log().WarnContext(ctx, "cannot receive wakeups", "queue", r.binding.name, "failures", failures,
				"code", runlane.CodeOf(err), "error", strings.TrimPrefix(err.Error(), string(runlane.CodeOf(err))+": "))
			sleep(ctx, pollPause(failures))
		case got == 0 && wait == 0:
			failures, want = 0, 1
		case got == 0:
			failures = 0
			pause := r.pause
			// A queue waits before it answers empty. One that does not wait must not be polled in a tight loop.
			if time.Since(began) < wait/2 {
				hasty++
				pause = max(pause, pollPause(hasty))
			} else {
				hasty = 0
			}
			sleep(ctx, pause)
		default:
			failures, hasty = 0, 0
			if got == n {
				want = min(want*2, maxBatch)
			}
			if got == maxBatch {
				r.burst(ctx)
			}
		}
	}
}

// burst polls in addition to the queue's own poll while full batches arrive.
func (r *receiver) burst(ctx context.Context) {
	if !r.bursts.TryAcquire(1) {
		return
	}
	r.batches.Go(func() {
		defer r.bursts.Release(1)
		for ctx.Err() == nil && r.permits.TryAcquire(maxBatch) {
			if got, err := r.receive(ctx, maxBatch, 0); err != nil || got < maxBatch {
				return // the queue's own poll reports the error
			}
		}
	})
}

// acquire takes at least one permit, and up to want if free; 0 after ctx has ended.
func (r *receiver) acquire(ctx context.Context, want int) int {
	if r.permits.Acquire(ctx, 1) != nil {
		return 0
	}
	if ctx.Err() != nil {
		r.permits.Release(1)
		return 0
	}
	n := 1
	for n < want && r.permits.TryAcquire(1) {
		n++
	}
	return n
}

// receive polls once with n permits, releases the ones it does not need, and starts the batch.
func (r *receiver) receive(ctx context.Context, n int, wait time.Duration) (int, error) {
	t := r.transport
	request, cancel := context.WithTimeout(ctx, wait+t.timeout)
	defer cancel()
	asked := time.Now()
	out, err := t.api.ReceiveMessage(request, &sqs.ReceiveMessageInput{
		QueueUrl:            aws.String(r.binding.url),
		MaxNumberOfMessages: int32(n), // at most 10
		WaitTimeSeconds:     int32(wait / time.Second),
		VisibilityTimeout:   int32(t.visibility / time.Second), // bounded in New
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{
			types.MessageSystemAttributeNameApproximateReceiveCount, types.MessageSystemAttributeNameMessageGroupId,
		},
	})
	if err != nil {
		r.permits.Release(int64(n))
		return 0, operationError(ctx, r.binding, err)
	}
	records := make([]Record, len(out.Messages))
	for i := range out.Messages {
		records[i] = newRecord(&out.Messages[i])
	}
	if spare := n - len(records); spare > 0 {
		r.permits.Release(int64(spare))
	}
	if len(records) == 0 {
		return 0, nil
	}
	r.keeper.add(records, asked)
	r.batches.Go(func() { r.deliver(ctx, records) })
	return len(records), nil
}

func newRecord(m *types.Message) Record {
	// 0 is unknown.
	count, _ := strconv.Atoi(m.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)])
	return Record{
		MessageID:     aws.ToString(m.MessageId),
		ReceiptHandle: aws.ToString(m.ReceiptHandle),
		Body:          aws.ToString(m.Body),
		Group:         m.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)],
		ReceiveCount:  count,
	}
}

func (r *receiver) deliver(ctx context.Context, records []Record) {
	handle := func(own context.Context, _ Record, w lane.Wakeup) error {
		if ctx.Err() != nil {
			return errStopping
		}
		r.warnMisrouted(own, w.Queue)
		return r.handle(own, w)
	}
	settled := func(record Record, err error) {
		r.keeper.remove(record)
		r.permits.Release(1)
		r.settler.settle(record, err)
	}
	Deliver(context.WithoutCancel(ctx), records, r.binding.fifo, handle, settled)
}

// warnMisrouted logs once if a queue's wakeups arrive through another binding than they would be sent with: another
// program of the environment has other bindings.
func (r *receiver) warnMisrouted(ctx context.Context, queue runlane.QueueName) {
	if b, ok := r.transport.carrier(queue); ok && b == r.binding {
		return
	}
	if _, warned := r.misrouted.LoadOrStore(queue, true); !warned {
		r.transport.log().WarnContext(ctx, "wakeups arrive through another binding than this process uses; "+
			"give all programs of the environment the same RUNLANE_QUEUES", "queue", queue, "binding", r.binding.name)
	}
}

// pollPause doubles with each consecutive failure, ± 20 % so that workers do not poll in step.
func pollPause(failures int) time.Duration {
	pause := firstPollPause << min(failures-1, 10)
	pause = min(pause, lastPollPause)
	return pause + time.Duration((rand.Float64()-0.5)*0.4*float64(pause)) // jitter
}

func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
