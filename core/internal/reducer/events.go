package reducer

import (
	"slices"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
)

// One function for each event, in the order of a run's life. Each first checks that the event fits the run, then
// changes the run.

// Groups of statuses, in the order in which errors name them.
var (
	owned       = statuses(runlane.Status.Owned)
	waiting     = statuses(runlane.Status.Waiting)
	cancellable = append(
		statuses(func(s runlane.Status) bool { return s.Active() && !s.Owned() }),
		runlane.StatusCancellationRequested,
	)
)

func statuses(in func(runlane.Status) bool) []runlane.Status {
	return slices.DeleteFunc(runlane.Statuses(), func(s runlane.Status) bool { return !in(s) })
}

func (p *projection) applyBody() error {
	switch body := p.event.Body.(type) {
	case *runlane.RunCreated:
		return p.created(body)
	case *runlane.RunDeliveryRequested:
		return p.deliveryRequested(body)
	case *runlane.RunDebounced:
		return p.debounced(body)
	case *runlane.RunLeaseClaimed:
		return p.leaseClaimed(body.Lease)
	case *runlane.RunLeaseHeartbeat:
		return p.leaseHeartbeat(body.Lease)
	case *runlane.RunStarted:
		return p.started(body.Attempt)
	case *runlane.RunSucceeded:
		return p.succeeded(body)
	case *runlane.RunFailed:
		return p.failed(body)
	case *runlane.RunRetryScheduled:
		return p.retryScheduled(body)
	case *runlane.RunReleased:
		return p.released(body)
	case *runlane.RunResumed:
		return p.resumed()
	case *runlane.RunCancellationRequested:
		return p.cancellationRequested()
	case *runlane.RunCancelled:
		return p.cancelled()
	default:
		return p.violation("is of a type that this version does not know")
	}
}

// created begins the run. It needs no payload: a history may be folded without one.
func (p *projection) created(b *runlane.RunCreated) error {
	switch {
	case p.event.RunID == "":
		return p.missing("run id")
	case b.TaskID == "":
		return p.missing("task id")
	case b.Queue == "":
		return p.missing("queue")
	case b.Priority < -runlane.MaxPriority || b.Priority > runlane.MaxPriority:
		return p.violation("priority is %d", b.Priority)
	case b.Retention.UntilDue != (b.Debounced != nil):
		return p.violation("a debounced run, and no other, has a key until it is due")
	}
	source := b.Source
	source.FireTime = runlane.UTCMillis(source.FireTime)
	*p.run = runlane.Run{
		ID:             p.event.RunID,
		Environment:    p.event.Environment,
		TaskID:         b.TaskID,
		Queue:          b.Queue,
		Status:         runlane.StatusQueued,
		Payload:        b.Payload,
		RunAt:          runlane.UTCMillis(b.RunAt),
		ConcurrencyKey: b.ConcurrencyKey,
		IdempotencyKey: b.IdempotencyKey,
		Retention:      b.Retention,
		Debounced:      restDebounced(b.Debounced),
		SingletonKey:   b.SingletonKey,
		Priority:       b.Priority,
		Source:         source,
		TraceCarrier:   p.event.TraceCarrier,
		Meta:           p.event.Meta,
		CreatedAt:      p.at,
	}
	return nil
}

// deliveryRequested wakes a queued run at any time, a waiting one when it is due, and a running one when its lease is
// over.
func (p *projection) deliveryRequested(b *runlane.RunDeliveryRequested) error {
	d := &b.Delivery
	availableAt := runlane.UTCMillis(d.AvailableAt)
	switch {
	case d.RunID != p.run.ID:
		return p.violation("delivery is for run %q", d.RunID)
	case d.Environment.Name() != p.run.Environment.Name():
		return p.violation(
			"delivery is for environment %q, the run is of %q",
			d.Environment.Name(),
			p.run.Environment.Name(),
		)
	case d.Queue != p.run.Queue:
		return p.violation("delivery is for queue %q, the run is of %q", d.Queue, p.run.Queue)
	case availableAt.IsZero():
		return p.missing("delivery time")
	case d.RequestedAt.IsZero():
		return p.missing("request time")
	}
	if p.run.Status != runlane.StatusQueued {
		if err := p.reached(p.run.RunnableAt()); err != nil {
			return err
		}
	}
	if b.Wait != nil && (p.run.EventSequence != 1 || !availableAt.After(p.at)) {
		return p.violation("only the second event of a run that is made for later has a wait")
	}
	if err := p.waits(b.Wait, availableAt); err != nil {
		return err
	}

	p.run.RunAt = availableAt
	p.run.Status = runlane.StatusQueued
	if availableAt.After(p.at) {
		p.run.Status = runlane.StatusScheduled
	}
	p.disown()
	if expires := runlane.UTCMillis(d.DispatchExpiresAt); !expires.IsZero() {
		p.run.DispatchedAt, p.run.DispatchExpiresAt = p.at, expires
	}
	// A missing carrier keeps the old one; an empty one ends the trace.
	if d.TraceCarrier != nil {
		p.run.TraceCarrier = d.TraceCarrier
	} else if p.event.TraceCarrier != nil {
		p.run.TraceCarrier = p.event.TraceCarrier
	}
	return nil
}

// debounced replaces the payload of a run that waits for its first time, and moves that time. It needs no payload: a
// history may be folded without one. The run is not due yet: so a claim and a later trigger never race for long.
func (p *projection) debounced(b *runlane.RunDebounced) error {
	runAt := runlane.UTCMillis(b.RunAt)
	d := p.run.Debounced
	if err := p.in(runlane.StatusScheduled); err != nil {
		return err
	}
	switch {
	case d == nil:
		return p.violation("the run is not debounced")
	case !p.at.Before(p.run.RunAt):
		return p.violation("at %s the run is due since %s", instant(p.at), instant(p.run.RunAt))
	case !runAt.After(p.at):
		return p.violation("the run would be due at %s, and it is %s", instant(runAt), instant(p.at))
	case !d.Latest.IsZero() && runAt.After(d.Latest):
		return p.violation("the run would be due at %s, and %s is the latest", instant(runAt), instant(d.Latest))
	}
	if b.Payload != nil {
		p.run.Payload = b.Payload
	}
	p.run.RunAt = runAt
	p.run.Debounced = &runlane.Debounced{Latest: d.Latest, Triggers: d.Triggers + 1}
	return nil
}

func restDebounced(d *runlane.Debounced) *runlane.Debounced {
	if d == nil {
		return nil
	}
	return &runlane.Debounced{Latest: runlane.UTCMillis(d.Latest), Triggers: d.Triggers}
}

// leaseClaimed gives a runnable run an owner. The caller decides the length of the lease and makes a new token.
func (p *projection) leaseClaimed(l runlane.Lease) error {
	if err := p.checkLease(&l); err != nil {
		return err
	}
	if err := p.reached(p.run.RunnableAt()); err != nil {
		return err
	}
	p.disown()
	p.run.Status = runlane.StatusRunning
	p.run.Lease = l
	return nil
}

// leaseHeartbeat replaces the owner's lease, even an expired one: the run stays the owner's until another worker claims
// it.
func (p *projection) leaseHeartbeat(l runlane.Lease) error {
	if err := p.checkLease(&l); err != nil {
		return err
	}
	if err := p.in(owned...); err != nil {
		return err
	}
	switch {
	case l.WorkerID != p.run.Lease.WorkerID:
		return p.violation("worker %q does not own the run, worker %q does", l.WorkerID, p.run.Lease.WorkerID)
	case l.Token != p.run.Lease.Token:
		return p.violation("worker %q owns the run under another lease token", l.WorkerID)
	}
	p.run.Lease = l
	return nil
}

// started begins the next attempt. The lease must not be over.
func (p *projection) started(attempt int) error {
	if err := p.in(runlane.StatusRunning); err != nil {
		return err
	}
	switch {
	case p.run.Lease.Expired(p.at):
		return p.violation(
			"at %s the lease of worker %q is over since %s",
			instant(p.at),
			p.run.Lease.WorkerID,
			instant(p.run.Lease.ExpiresAt),
		)
	case attempt != p.run.Counters.Attempts+1:
		return p.violation("attempt is %d, the next is %d", attempt, p.run.Counters.Attempts+1)
	}
	p.run.Counters.Attempts = attempt
	p.run.Failure = runlane.Failure{}
	p.run.StartedAt = p.at
	return nil
}

func (p *projection) succeeded(b *runlane.RunSucceeded) error {
	if err := p.endAttempt(b.Attempt); err != nil {
		return err
	}
	p.run.Failure = runlane.Failure{}
	p.run.Output = b.Output
	p.finish(runlane.StatusSucceeded)
	return nil
}

func (p *projection) failed(b *runlane.RunFailed) error {
	if err := p.endFailedAttempt(b.Attempt, b.Failure); err != nil {
		return err
	}
	p.finish(runlane.StatusFailed)
	return nil
}

func (p *projection) retryScheduled(b *runlane.RunRetryScheduled) error {
	retryAt := runlane.UTCMillis(b.RetryAt)
	if retryAt.IsZero() {
		return p.missing("retry time")
	}
	if err := p.endFailedAttempt(b.Attempt, b.Failure); err != nil {
		return err
	}
	p.run.Counters.Retries++
	p.run.RunAt = retryAt
	p.run.Status = runlane.StatusRetrying
	return nil
}

func (p *projection) released(b *runlane.RunReleased) error {
	resumeAt := runlane.UTCMillis(b.ResumeAt)
	if resumeAt.IsZero() {
		return p.missing("resume time")
	}
	if err := p.endAttempt(b.Attempt); err != nil {
		return err
	}
	if err := p.waits(b.Wait, resumeAt); err != nil {
		return err
	}
	p.run.Counters.Releases++
	p.run.RunAt = resumeAt
	p.run.Status = runlane.StatusReleased
	return nil
}

// waits takes over the event's wait, which must end no later than the run is due. nil waits for the time alone.
func (p *projection) waits(w *runlane.Waiting, due time.Time) error {
	if w == nil {
		return nil
	}
	w = w.AtRest()
	switch {
	case len(w.For) == 0:
		return p.missing("kind of wait")
	case !w.Due().Equal(due):
		return p.violation("waits until %s and is due at %s", instant(w.Due()), instant(due))
	}
	p.run.Waiting = w
	return nil
}

// resumed ends a wait. A delivery or a slot is then requested as for every due run.
func (p *projection) resumed() error {
	ahead := p.at.Before(p.run.RunAt)
	if delayed := p.run.Status == runlane.StatusQueued && ahead; !delayed { // waits for its time, then for a slot
		if err := p.in(waiting...); err != nil {
			return err
		}
	}
	if ahead {
		p.run.RunAt = p.at
	}
	return nil
}

// cancellationRequested asks the owner to stop and leaves it the run.
func (p *projection) cancellationRequested() error {
	if err := p.in(runlane.StatusRunning); err != nil {
		return err
	}
	if p.run.Lease == (runlane.Lease{}) {
		return p.violation("the run has no owner who could be asked")
	}
	p.run.Status = runlane.StatusCancellationRequested
	return nil
}

// cancelled ends a run that is not executing, or after its owner was asked to stop.
func (p *projection) cancelled() error {
	if err := p.in(cancellable...); err != nil {
		return err
	}
	p.disown()
	p.run.Failure = runlane.Failure{}
	p.finish(runlane.StatusCancelled)
	return nil
}

// endAttempt is the common part of the four outcomes. The event names the attempt, so that a late outcome cannot end
// another one. The lease may be over: the storage checks by the token whether the writer still owns the run.
func (p *projection) endAttempt(attempt int) error {
	if err := p.in(owned...); err != nil {
		return err
	}
	switch current := p.run.Counters.Attempts; {
	case current == 0:
		return p.violation("no attempt has started")
	case attempt != current:
		return p.violation("attempt is %d, the current one is %d", attempt, current)
	}
	p.disown()
	return nil
}

func (p *projection) endFailedAttempt(attempt int, f runlane.Failure) error {
	if f.Code == "" {
		return p.missing("failure code")
	}
	if err := p.endAttempt(attempt); err != nil {
		return err
	}
	p.run.Counters.Failures++
	p.run.Failure = f
	return nil
}

// disown removes the owner and any reservation of a slot.
func (p *projection) disown() {
	p.run.Lease = runlane.Lease{}
	p.run.DispatchedAt, p.run.DispatchExpiresAt = time.Time{}, time.Time{}
}

func (p *projection) finish(s runlane.Status) {
	p.run.Status = s
	p.run.FinishedAt = p.at
}

// checkLease checks a lease by itself and rounds its end to whole milliseconds.
func (p *projection) checkLease(l *runlane.Lease) error {
	l.ExpiresAt = runlane.UTCMillis(l.ExpiresAt)
	switch {
	case l.Token == "":
		return p.missing("lease token")
	case l.WorkerID == "":
		return p.missing("worker id")
	case l.ExpiresAt.IsZero():
		return p.missing("lease end")
	default:
		return nil
	}
}

// in requires one of the statuses.
func (p *projection) in(statuses ...runlane.Status) error {
	if slices.Contains(statuses, p.run.Status) {
		return nil
	}
	names := make([]string, len(statuses))
	for i, s := range statuses {
		names[i] = string(s)
	}
	return p.violation("the run is %s, not %s", p.run.Status, strings.Join(names, " or "))
}

// reached requires that the moment has come. ok is false if time alone does not help.
func (p *projection) reached(moment time.Time, ok bool) error {
	switch {
	case !ok:
		return p.violation("the run is %s", p.run.Status)
	case p.at.Before(moment):
		return p.violation("the run is %s until %s, and it is %s", p.run.Status, instant(moment), instant(p.at))
	default:
		return nil
	}
}

func (p *projection) missing(part string) error { return p.violation("has no %s", part) }

func instant(t time.Time) string { return t.Format("2006-01-02T15:04:05.000Z07:00") }
