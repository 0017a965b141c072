package sqstransport

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/errgroup"
)

// settleLinger is how long a settled record of a standard queue waits for others to share its request.
const settleLinger = 100 * time.Millisecond

// settler deletes or hands back the records of one queue, up to ten a request. A group of a FIFO queue continues only
// after its record is deleted, so records do not wait there.
type settler struct {
	transport *Transport
	binding   *binding
	records   chan HandedBack // those without an error are deleted
	finished  chan struct{}
}

func (t *Transport) newSettler(b *binding) *settler {
	s := &settler{transport: t, binding: b, records: make(chan HandedBack, maxBatch), finished: make(chan struct{})}
	go s.run()
	return s
}

// settle waits while as many requests as allowed are under way.
func (s *settler) settle(r Record, err error) { s.records <- HandedBack{Record: r, Err: err} }

// close flushes. No settle may follow.
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

// delete repeats failed deletions once. A record that remains comes again, finds its run finished, and is deleted then.
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
				"acknowledged wakeups were not deleted and come again", "queue", s.binding.name, "count", len(batch),
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
			"wakeups were handed back and come again later than intended",
			"queue",
			s.binding.name,
			"count",
			len(batch),
			"error",
			err.Error(),
		)
	}
}
