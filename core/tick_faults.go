package core

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// maxTickFaults limits the errors of a tick, by distinct text.
const maxTickFaults = 20

// faults collects errors for one report: each text once, at most maxTickFaults.
type faults struct {
	kept []error
	seen map[string]bool
}

// add splits joined errors.
func (f *faults) add(err error) {
	if err == nil {
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			f.add(one)
		}
		return
	}
	text := err.Error()
	if f.seen[text] {
		return
	}
	if f.seen == nil {
		f.seen = map[string]bool{}
	}
	f.seen[text] = true
	if len(f.kept) < maxTickFaults {
		f.kept = append(f.kept, err)
	}
}

func (f *faults) join() error {
	if left := len(f.seen) - len(f.kept); left > 0 {
		return errors.Join(append(slices.Clone(f.kept), fmt.Errorf("%d more errors of other texts", left))...)
	}
	return errors.Join(f.kept...)
}

// passedSince reports whether a page had no effect. A page with a failure does not count: the next round meets it
// again.
func (r *StageResult) passedSince(before *StageResult) bool {
	return r.Done == before.Done && r.Failed == before.Failed
}

// queuesAside are the queues that took none of their wakeups for the queue's own fault: it is missing, has no binding
// here, or cannot be reached. The rest of the tick skips their rows, so that these take no time from others. The next
// tick tries again. Paused queues are among them from the start.
type queuesAside struct{ queues []runlane.QueueName }

func (a *queuesAside) note(rows []lane.OutboxMessage, outcomes []lane.PublishOutcome, operation error) {
	if a == nil {
		return
	}
	refusing := map[runlane.QueueName]bool{}
	for i := range rows {
		queue := rows[i].Wakeup.Queue
		refused := operation != nil || outcomes[i].Type == lane.PublishFailed && !outcomes[i].Permanent &&
			outcomes[i].Failure.Code == runlane.ErrTransportUnavailable
		before, known := refusing[queue]
		refusing[queue] = refused && (before || !known)
	}
	for _, queue := range slices.Sorted(maps.Keys(refusing)) {
		if refusing[queue] && !slices.Contains(a.queues, queue) {
			a.queues = append(a.queues, queue)
		}
	}
}
