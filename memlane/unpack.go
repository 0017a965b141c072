package memlane

import (
	"encoding/binary"
	"strings"
	"time"
	"unique"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
)

// unpacker reads the output of a packer, in the same order. Its texts are substrings of the packed run.
type unpacker struct {
	s     string
	base  embedded.Millis
	texts []string
}

// view returns the run for reading: e itself, or for a packed run a temporary copy without its history.
func (e *entry) view() *entry {
	if e.unpacked != nil {
		return e
	}
	v := *e
	v.unpacked, _ = e.decode()
	return &v
}

func (e *entry) history() []event {
	if e.unpacked != nil {
		return e.events
	}
	l, u := e.decode()
	u.events(l)
	return l.events
}

func (e *entry) unpack() {
	l, u := e.decode()
	u.events(l)
	e.unpacked, e.packed = l, ""
}

// decode returns a packed run's data without events. The unpacker reads those next.
func (e *entry) decode() (*unpacked, *unpacker) {
	l := &unpacked{created: &runlane.RunCreated{}}
	l.outbox.FirstPublished = embedded.Absent
	u := &unpacker{s: e.packed, texts: e.texts(make([]string, 0, textsKept))}
	u.base = embedded.Millis(u.number())
	u.state(&l.state)
	u.created(l.created)
	if d := l.created.Debounced; d != nil {
		latest := u.instant().Time()
		d.Latest = latest
		l.state.debounced = &runlane.Debounced{Latest: latest, Triggers: int(u.number())}
	}
	return l, u
}

func (u *unpacker) number() int64 {
	var b [binary.MaxVarintLen64]byte
	n, size := binary.Varint(b[:copy(b[:], u.s)])
	u.s = u.s[size:]
	return n
}

func (u *unpacker) flag() bool { return u.number() == 1 }

func (u *unpacker) take(n int64) string {
	taken := u.s[:n]
	u.s = u.s[n:]
	return taken
}

func (u *unpacker) instant() embedded.Millis {
	switch distance := u.number(); {
	case distance == 0:
		return embedded.Absent
	case distance > 0:
		return u.base + embedded.Millis(distance-1)
	default:
		return u.base + embedded.Millis(distance)
	}
}

func (u *unpacker) text() string {
	n := u.number()
	switch {
	case n == 0:
		return ""
	case n%2 == 1:
		return u.texts[n/2]
	}
	s := u.take(n / 2)
	if len(u.texts) < textsKept {
		u.texts = append(u.texts, s)
	}
	return s
}

func (u *unpacker) bytes() []byte {
	n := u.number()
	if n < 0 {
		return nil
	}
	return append(make([]byte, 0, n), u.take(n)...)
}

func (u *unpacker) textMap() map[string]string {
	n := u.number()
	if n < 0 {
		return nil
	}
	m := make(map[string]string, n)
	for range n {
		k := u.text()
		m[k] = u.text()
	}
	return m
}

func (u *unpacker) state(s *state) {
	s.Status = runlane.Status(u.text())
	s.Sequence = u.number()
	s.counters = runlane.Counters{
		Attempts: int(u.number()),
		Failures: int(u.number()),
		Retries:  int(u.number()),
		Releases: int(u.number()),
	}
	s.output = u.bytes()
	for _, m := range s.instants() {
		*m = u.instant()
	}
	if u.flag() {
		s.failure = new(u.failure())
	}
	s.LeaseToken, s.leaseWorker = u.text(), u.text()
	s.traceCarrier, s.meta = u.textMap(), u.textMap()
}

func (u *unpacker) created(c *runlane.RunCreated) {
	c.TaskID, c.Queue, c.Payload = runlane.TaskID(u.text()), runlane.QueueName(u.text()), u.bytes()
	c.RunAt = u.instant().Time()
	c.ConcurrencyKey, c.IdempotencyKey = u.text(), u.text()
	flags := u.number()
	c.Priority = int(flags >> 4)
	c.Retention.WhileActive, c.Retention.Window = flags&keptWhileActive != 0, flags&keptForWindow != 0
	c.Retention.UntilDue = flags&keptUntilDue != 0
	if flags&debounced != 0 {
		c.Debounced = &runlane.Debounced{Triggers: 1}
	}
	c.Retention.TTL = time.Duration(u.number())
	c.SingletonKey = u.text()
	c.Source = runlane.Source{
		Type:       runlane.SourceType(u.text()),
		RunID:      runlane.RunID(u.text()),
		ScheduleID: runlane.ScheduleID(u.text()),
		FireTime:   u.instant().Time(),
	}
	switch c.Source.Type {
	case runlane.SourceCall:
		c.Source.Call, c.Source.Depth = u.text(), int(u.number())
		c.Source.CreatedAt = u.instant().Time()
	case runlane.SourceFlow:
		c.Source.FlowID, c.Source.Node = runlane.FlowID(u.text()), u.text()
		c.Source.Round, c.Source.CreatedAt = int(u.number()), u.instant().Time()
	case runlane.SourceRerun, runlane.SourceManualRetry:
		c.Source.CreatedAt = u.instant().Time()
	case runlane.SourceTrigger, runlane.SourceSchedule: // read above
		return
	}
	c.Source.OriginID = runlane.RunID(u.text())
}

func (u *unpacker) events(l *unpacked) {
	n := u.number()
	l.events = make([]event, n)
	for i := range l.events {
		ev := &l.events[i]
		ev.at = u.instant()
		ev.actor = unique.Make(runlane.Actor{Type: runlane.ActorType(u.text()), ID: u.text()})
		if u.flag() {
			ev.notes = &notes{meta: u.textMap(), traceCarrier: u.textMap()}
		}
		if i == 0 {
			ev.body = l.created
		} else {
			ev.body = u.body()
		}
	}
}

func (u *unpacker) body() runlane.EventBody {
	switch t := runlane.EventType(u.text()); t {
	case runlane.EventDeliveryRequested:
		return &runlane.RunDeliveryRequested{Delivery: runlane.Delivery{
			Environment:       runlane.Environment(u.text()),
			RunID:             runlane.RunID(u.text()),
			Queue:             runlane.QueueName(u.text()),
			AvailableAt:       u.instant().Time(),
			RequestedAt:       u.instant().Time(),
			DispatchExpiresAt: u.instant().Time(),
			TraceCarrier:      u.textMap(),
		}}
	case runlane.EventLeaseClaimed:
		return &runlane.RunLeaseClaimed{Lease: u.lease()}
	case runlane.EventLeaseHeartbeat:
		return &runlane.RunLeaseHeartbeat{Lease: u.lease()}
	case runlane.EventStarted:
		return &runlane.RunStarted{Attempt: int(u.number())}
	case runlane.EventSucceeded:
		return &runlane.RunSucceeded{Attempt: int(u.number()), Output: u.bytes()}
	case runlane.EventFailed:
		return &runlane.RunFailed{Attempt: int(u.number()), Failure: u.failure()}
	case runlane.EventRetryScheduled:
		return &runlane.RunRetryScheduled{Attempt: int(u.number()), Failure: u.failure(), RetryAt: u.instant().Time()}
	case runlane.EventReleased:
		return &runlane.RunReleased{Attempt: int(u.number()), ResumeAt: u.instant().Time(), Reason: u.text()}
	case runlane.EventResumed:
		return &runlane.RunResumed{Reason: u.text()}
	case runlane.EventCancellationRequested:
		return &runlane.RunCancellationRequested{Reason: u.text()}
	case runlane.EventCancelled:
		return &runlane.RunCancelled{Reason: u.text()}
	default:
		plain := strings.TrimPrefix(string(t), rareBody)
		body, _ := runlane.UnmarshalBody(runlane.EventType(plain), u.bytes()) // the packer wrote it
		return body
	}
}

func (u *unpacker) lease() runlane.Lease {
	return runlane.Lease{Token: u.text(), WorkerID: u.text(), ExpiresAt: u.instant().Time()}
}

func (u *unpacker) failure() runlane.Failure {
	return runlane.Failure{Code: runlane.ErrorCode(u.text()), Message: u.text(), Meta: u.textMap()}
}
