package memlane

import (
	"encoding/binary"
	"sync"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
)

// packer encodes a finished run compactly and without pointers for the garbage collector to scan. A repeated text
// (queue, worker, token) is written once.
type packer struct {
	b     []byte
	base  embedded.Millis // times are written as distances from it
	texts []string
}

var packers = sync.Pool{New: func() any { return new(packer) }}

// usualTexts are known from the start: nearly all histories contain them.
var usualTexts = []string{
	string(runlane.StatusSucceeded), string(runlane.StatusFailed), string(runlane.StatusCancelled),
	string(runlane.EventDeliveryRequested), string(runlane.EventLeaseClaimed), string(runlane.EventStarted),
	string(runlane.EventSucceeded),
	string(runlane.EventLeaseHeartbeat), string(runlane.EventRetryScheduled), string(runlane.EventReleased),
	string(runlane.EventFailed),
	string(runlane.SystemActor.Type), runlane.SystemActor.ID, string(runlane.ActorWorker),
	string(runlane.SourceTrigger),
}

// textsKept bounds the texts of a run that can be repeated by number, usualTexts and IDs included.
const textsKept = 40

func (e *entry) texts(room []string) []string {
	return append(append(room[:0], usualTexts...), string(e.id), string(e.environment))
}

// pack replaces a finished run's data by the packed form, which has everything that reads need. A run with a claimed
// row is packed after the row is marked.
func (e *entry) pack() {
	if e.unpacked == nil || !e.state.Status.Terminal() {
		return
	}
	for i := range e.outbox.Deliveries {
		if e.outbox.Deliveries[i].Status == lane.OutboxClaimed {
			return
		}
	}
	p := packers.Get().(*packer)
	p.base, p.texts = e.state.CreatedAt, e.texts(p.texts)
	p.b = binary.AppendVarint(p.b, int64(p.base))
	p.state(&e.state)
	p.created(e.created)
	if e.created.Debounced != nil {
		p.instant(embedded.At(e.created.Debounced.Latest))
		p.number(int64(e.state.debounced.Triggers))
	}
	p.events(e)
	e.packed = string(p.b)
	clear(p.texts)
	p.b = p.b[:0]
	packers.Put(p)

	l := e.unpacked
	e.unpacked = nil
	*l = unpacked{}
	unpackedPool.Put(l)
}

func (p *packer) number(n int64) { p.b = binary.AppendVarint(p.b, n) }

func (p *packer) flag(is bool) {
	n := int64(0)
	if is {
		n = 1
	}
	p.number(n)
}

// instant writes 0 for none. A distance is never written as 0.
func (p *packer) instant(m embedded.Millis) {
	switch distance := int64(m - p.base); {
	case m == embedded.Absent:
		p.number(0)
	case distance >= 0:
		p.number(distance + 1)
	default:
		p.number(distance)
	}
}

// text writes 0 for "", the odd number 2i+1 for the i-th known text, else twice the length and the text.
func (p *packer) text(s string) {
	if s == "" {
		p.number(0)
		return
	}
	for i, known := range p.texts {
		if known == s {
			p.number(int64(2*i + 1))
			return
		}
	}
	if len(p.texts) < textsKept {
		p.texts = append(p.texts, s)
	}
	p.number(int64(2 * len(s)))
	p.b = append(p.b, s...)
}

// bytes distinguishes nil from empty.
func (p *packer) bytes(b []byte) {
	if b == nil {
		p.number(-1)
		return
	}
	p.number(int64(len(b)))
	p.b = append(p.b, b...)
}

func (p *packer) textMap(m map[string]string) {
	if m == nil {
		p.number(-1)
		return
	}
	p.number(int64(len(m)))
	for k, v := range m {
		p.text(k)
		p.text(v)
	}
}

func (p *packer) state(s *state) {
	p.text(string(s.Status))
	p.number(s.Sequence)
	p.number(int64(s.counters.Attempts))
	p.number(int64(s.counters.Failures))
	p.number(int64(s.counters.Retries))
	p.number(int64(s.counters.Releases))
	p.bytes(s.output)
	for _, m := range s.instants() {
		p.instant(*m)
	}
	p.flag(s.failure != nil)
	if s.failure != nil {
		p.failure(s.failure)
	}
	p.text(s.LeaseToken)
	p.text(s.leaseWorker)
	p.textMap(s.traceCarrier)
	p.textMap(s.meta)
}

// The flags of a key's retention.
const (
	keptWhileActive = 1 << iota
	keptForWindow
	keptUntilDue
	debounced // the run is: more follows
)

// retention writes how a key is kept, and the priority with the flags.
func (p *packer) retention(c *runlane.RunCreated) {
	k, flags := c.Retention, int64(0)
	for i, is := range [...]bool{k.WhileActive, k.Window, k.UntilDue, c.Debounced != nil} {
		if is {
			flags |= 1 << i
		}
	}
	p.number(int64(c.Priority)<<4 | flags)
	p.number(int64(k.TTL))
}

func (s *state) instants() [8]*embedded.Millis {
	return [...]*embedded.Millis{
		&s.RunAt, &s.startedAt, &s.FinishedAt, &s.dispatchedAt, &s.DispatchExpiresAt, &s.CreatedAt, &s.UpdatedAt,
		&s.LeaseExpiresAt,
	}
}

func (p *packer) created(c *runlane.RunCreated) {
	p.text(string(c.TaskID))
	p.text(string(c.Queue))
	p.bytes(c.Payload)
	p.instant(embedded.At(c.RunAt))
	p.text(c.ConcurrencyKey)
	p.text(c.IdempotencyKey)
	p.retention(c)
	p.text(c.SingletonKey)
	p.text(string(c.Source.Type))
	p.text(string(c.Source.RunID))
	p.text(string(c.Source.ScheduleID))
	p.instant(embedded.At(c.Source.FireTime))
	switch c.Source.Type {
	case runlane.SourceCall:
		p.text(c.Source.Call)
		p.number(int64(c.Source.Depth))
		p.instant(embedded.At(c.Source.CreatedAt))
	case runlane.SourceFlow:
		p.text(string(c.Source.FlowID))
		p.text(c.Source.Node)
		p.number(int64(c.Source.Round))
		p.instant(embedded.At(c.Source.CreatedAt))
	case runlane.SourceRerun, runlane.SourceManualRetry:
		p.instant(embedded.At(c.Source.CreatedAt))
	case runlane.SourceTrigger, runlane.SourceSchedule: // written above
		return
	}
	p.text(string(c.Source.OriginID))
}

func (p *packer) events(e *entry) {
	p.number(int64(len(e.events)))
	for i := range e.events {
		ev := &e.events[i]
		actor := ev.actor.Value()
		p.instant(ev.at)
		p.text(string(actor.Type))
		p.text(actor.ID)
		p.flag(ev.notes != nil)
		if ev.notes != nil {
			p.textMap(ev.notes.meta)
			p.textMap(ev.notes.traceCarrier)
		}
		if i > 0 { // run.created is stored already
			p.body(ev.body)
		}
	}
}

// rareBody precedes the type of a body stored as JSON: one with a wait that an event may end.
const rareBody = "+"

func rare(body runlane.EventBody) bool {
	switch b := body.(type) {
	case *runlane.RunDeliveryRequested:
		return b.Wait != nil
	case *runlane.RunReleased:
		return b.Wait != nil
	case *runlane.RunResumed:
		return b.By != ""
	default:
		return false
	}
}

func (p *packer) body(body runlane.EventBody) {
	kind := string(runlane.Event{Body: body}.Type())
	if rare(body) {
		p.text(rareBody + kind)
		data, _ := runlane.MarshalBody(body) // every body marshals
		p.bytes(data)
		return
	}
	p.text(kind)
	switch b := body.(type) {
	case *runlane.RunDeliveryRequested:
		d := &b.Delivery
		p.text(string(d.Environment))
		p.text(string(d.RunID))
		p.text(string(d.Queue))
		p.instant(embedded.At(d.AvailableAt))
		p.instant(embedded.At(d.RequestedAt))
		p.instant(embedded.At(d.DispatchExpiresAt))
		p.textMap(d.TraceCarrier)
	case *runlane.RunLeaseClaimed:
		p.lease(&b.Lease)
	case *runlane.RunLeaseHeartbeat:
		p.lease(&b.Lease)
	case *runlane.RunStarted:
		p.number(int64(b.Attempt))
	case *runlane.RunSucceeded:
		p.number(int64(b.Attempt))
		p.bytes(b.Output)
	case *runlane.RunFailed:
		p.number(int64(b.Attempt))
		p.failure(&b.Failure)
	case *runlane.RunRetryScheduled:
		p.number(int64(b.Attempt))
		p.failure(&b.Failure)
		p.instant(embedded.At(b.RetryAt))
	case *runlane.RunReleased:
		p.number(int64(b.Attempt))
		p.instant(embedded.At(b.ResumeAt))
		p.text(b.Reason)
	case *runlane.RunResumed:
		p.text(b.Reason)
	case *runlane.RunCancellationRequested:
		p.text(b.Reason)
	case *runlane.RunCancelled:
		p.text(b.Reason)
	default: // rare types are stored as JSON
		data, _ := runlane.MarshalBody(body) // every body marshals
		p.bytes(data)
	}
}

func (p *packer) lease(l *runlane.Lease) {
	p.text(l.Token)
	p.text(l.WorkerID)
	p.instant(embedded.At(l.ExpiresAt))
}

func (p *packer) failure(f *runlane.Failure) {
	p.text(string(f.Code))
	p.text(f.Message)
	p.textMap(f.Meta)
}
