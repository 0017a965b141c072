package core

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// maxTickFaults is how many errors a tick keeps, of different texts.
const maxTickFaults = 20

// faults collects errors for one report: each text once, and no more than maxTickFaults.
type faults struct {
	kept []error
	seen map[string]bool
}

// add takes joined errors apart.
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

// passedSince reports a page that led to nothing. A page with a failure does not count: the next round meets it again.
func (r *StageResult) passedSince(before *StageResult) bool {
	return r.Done == before.Done && r.Failed == before.Failed
}

// queuesAside are the queues that took none of the wakeups sent to them at once, and not because of the wakeups: the
// queues are missing, have no binding here, or cannot be reached. The rest of a tick leaves them alone. So their rows,
// however many, neither take the time of others nor are tried in vain. The next tick tries again.
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
