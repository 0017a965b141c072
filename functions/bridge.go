package functions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqstransport"
)

// Bridge handles a batch of wakeups until the invocation's deadline. A handler's outcome, also a failure, is recorded
// with its run, and the record is done. Other records are batch item failures, with their visibility changed so that
// SQS redelivers them soon.
//
// No attempt fails because an earlier one used its time: see core.DeliveryOptions. A task that needs more than the
// invocation's time is handed back and logged, and [Start] rejects it.
//
//   - Records of a standard queue run concurrently.
//   - In a FIFO queue the records of a group run in order. After one is handed back, all later ones of the group are handed back untouched.
//   - A run is suspect if its last attempt ended without an outcome: it may have killed its process. Suspects run one at a time, after the others of the batch.
//   - A record that cannot be parsed, or is of another environment, is reported alone, so that it reaches its dead-letter queue.
//
// The only error is for a record without an ID, because Lambda slows down after errors.
func Bridge(rt *core.Runtime) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	var a misrouted
	return func(ctx context.Context, event events.SQSEvent) (events.SQSEventResponse, error) {
		return bridge(ctx, rt, &a, time.Now(), event)
	}
}

// bridge handles one invocation. began is before the runtime was opened for it.
func bridge(
	ctx context.Context, rt *core.Runtime, a *misrouted, began time.Time, event events.SQSEvent,
) (events.SQSEventResponse, error) {
	bySource := map[string][]sqstransport.Record{}
	for i := range event.Records {
		m := &event.Records[i]
		if m.MessageId == "" {
			return events.SQSEventResponse{}, &runlane.Error{
				Code: runlane.ErrValidationFailed, Message: fmt.Sprintf("record %d of the batch has no message id", i),
				Hint: "invoke the bridge with events of an SQS event source mapping",
			}
		}
		bySource[m.EventSourceARN] = append(bySource[m.EventSourceARN], newRecord(m))
	}
	ctx, end := rt.Trace(ctx, core.Work{
		Kind: core.WorkInvocation, Name: RoleBridge, Count: len(event.Records), Links: carriersOf(rt, event.Records),
	})
	b := batch{rt: rt, misrouted: a, began: began, failed: map[string]bool{}}
	var sources sync.WaitGroup
	for _, source := range slices.Sorted(maps.Keys(bySource)) { // Lambda sends one
		sources.Go(func() { b.deliver(ctx, source, bySource[source]) })
	}
	sources.Wait()
	response := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for i := range event.Records {
		if id := event.Records[i].MessageId; b.failed[id] {
			response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{
				ItemIdentifier: id,
			})
		}
	}
	end(core.WorkEnd{Failed: len(response.BatchItemFailures)})
	return response, nil
}

// carriersOf returns the traces of the wakeups, for a runtime that traces.
func carriersOf(rt *core.Runtime, messages []events.SQSMessage) (carriers []map[string]string) {
	if !rt.Traces() {
		return nil
	}
	for i := range messages {
		if w, err := sqstransport.ParseMessage(messages[i].Body); err == nil && len(w.TraceCarrier) > 0 {
			carriers = append(carriers, w.TraceCarrier)
		}
	}
	return carriers
}

func newRecord(m *events.SQSMessage) sqstransport.Record {
	count, _ := strconv.Atoi(m.Attributes["ApproximateReceiveCount"]) // 0: unknown
	return sqstransport.Record{
		MessageID:     m.MessageId,
		ReceiptHandle: m.ReceiptHandle,
		Body:          m.Body,
		Group:         m.Attributes["MessageGroupId"],
		ReceiveCount:  count,
	}
}

type batch struct {
	rt        *core.Runtime
	misrouted *misrouted
	began     time.Time

	mu     sync.Mutex
	failed map[string]bool // by message ID
}

func (b *batch) deliver(ctx context.Context, source string, records []sqstransport.Record) {
	fifo := strings.HasSuffix(source, ".fifo")
	options := core.DeliveryOptions{Beside: runsConcurrently(records, fifo)}
	if deadline, ok := ctx.Deadline(); ok {
		options.Deadline, options.Began = deadline, b.began
	}
	var back []sqstransport.HandedBack
	var suspects []suspect
	deliverSuspects := func() {
		for _, s := range suspects {
			own := options
			own.Beside = false
			if err := b.deliverAlone(ctx, s, own); err != nil {
				b.failed[s.record.MessageID] = true
				back = append(back, sqstransport.HandedBack{Record: s.record, Err: err})
			}
		}
		b.handBack(ctx, source, back)
		suspects, back = nil, nil
	}
	if options.Beside && !fifo {
		if suspects, records = b.suspectsReceivedAgain(ctx, records); len(suspects) > 0 {
			deliverSuspects()
		}
	}
	sqstransport.Deliver(ctx, records, fifo,
		func(ctx context.Context, record sqstransport.Record, w lane.Wakeup) error {
			b.misrouted.warn(ctx, b.rt, source, w.Queue)
			err := b.execute(ctx, record, w, options)
			if errors.Is(err, core.ErrSuspect) {
				return &suspectError{err, w}
			}
			return err
		},
		func(record sqstransport.Record, err error) {
			if err == nil {
				return
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			if s, ok := err.(*suspectError); ok { //nolint:errorlint // not the records held back because of it
				suspects = append(suspects, suspect{record, s})
				return
			}
			b.failed[record.MessageID] = true
			back = append(back, sqstransport.HandedBack{Record: record, Err: err})
		})
	b.handBack(ctx, source, back) // before a suspect, which may end this process
	back = nil
	deliverSuspects()
}

// suspectsReceivedAgain selects the records of suspects that were received before. They run first: last in the batch of
// a busy queue, they would never have enough time.
func (b *batch) suspectsReceivedAgain(
	ctx context.Context, records []sqstransport.Record,
) (suspects []suspect, others []sqstransport.Record) {
	var again []sqstransport.Record
	for i := range records {
		if records[i].ReceiveCount > 1 {
			again = append(again, records[i])
		}
	}
	var mu sync.Mutex
	found := map[string]bool{}
	sqstransport.Deliver(ctx, again, false, func(ctx context.Context, record sqstransport.Record, w lane.Wakeup) error {
		is, err := b.rt.Suspect(ctx, w.RunID)
		if is {
			mu.Lock()
			defer mu.Unlock()
			found[record.MessageID] = true
			suspects = append(suspects, suspect{record, &suspectError{core.ErrSuspect, w}})
		}
		return err
	}, func(sqstransport.Record, error) {}) // a failure here repeats when the record is executed
	for i := range records {
		if !found[records[i].MessageID] {
			others = append(others, records[i])
		}
	}
	return suspects, others
}

func (b *batch) execute(
	ctx context.Context, record sqstransport.Record, w lane.Wakeup, options core.DeliveryOptions,
) error {
	options.Follows = record.Turn > 0
	_, err := b.rt.ExecuteDelivery(ctx, w, &options)
	return err
}

func runsConcurrently(records []sqstransport.Record, fifo bool) bool {
	for i := range records {
		if i > 0 && (!fifo || records[i].Group != records[0].Group) {
			return true
		}
	}
	return false
}

// suspect is a record of a run that may have killed its last process. It runs after all others of the batch, so that it
// cannot end them too.
type suspect struct {
	record sqstransport.Record
	err    *suspectError
}

type suspectError struct {
	error

	wakeup lane.Wakeup
}

func (e *suspectError) Unwrap() error { return e.error }

// deliverAlone executes a suspect, or hands it back with a delay if the others left too little time.
func (b *batch) deliverAlone(ctx context.Context, s suspect, options core.DeliveryOptions) error {
	err := b.execute(ctx, s.record, s.err.wakeup, options)
	if errors.Is(err, core.ErrNoTime) {
		return s.err // has a delay
	}
	return err
}

// handBack is best effort: SQS redelivers a missed record after the queue's visibility timeout.
func (b *batch) handBack(ctx context.Context, source string, back []sqstransport.HandedBack) {
	if len(back) == 0 {
		return
	}
	transport, ok := lane.As[sqstransport.HandBacker](b.rt.Lane().Transport)
	if !ok {
		slog.WarnContext(
			ctx,
			"wakeups are handed back by a transport that cannot change their visibility",
			"count",
			len(back),
			"code",
			runlane.CodeOf(back[0].Err),
			"error",
			back[0].Err,
		)
		return
	}
	if err := transport.HandBack(ctx, source, back); err != nil {
		slog.WarnContext(ctx, "wakeups were handed back but will be redelivered later than intended", "count", len(back),
			"code", runlane.CodeOf(err), "error", err)
	}
}
