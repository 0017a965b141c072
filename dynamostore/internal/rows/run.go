package rows

import (
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

// Sizes that keep a run item within one write unit for its whole life.
const (
	inlineLimit    = 1000 // a run item with its payload
	inlineReserve  = 250  // room for a lease and a failure stub
	inlineOutput   = 400
	failureStub    = 120 // bytes of a failure's message kept on the run item
	maxStoredBytes = 350 << 10
	MaxOutputBytes = 256 << 10
)

// Run is the projection as stored: short names, times in milliseconds, and what the store itself must know about the
// run. An attribute that this version does not know stays: updates name only what they change.
type Run struct {
	PK                string            `dynamodbav:"pk"`
	SK                string            `dynamodbav:"sk"`
	Sequence          int64             `dynamodbav:"sq"`
	Status            string            `dynamodbav:"st"`
	Task              string            `dynamodbav:"tk"`
	Queue             string            `dynamodbav:"qu"`
	CreatedAt         Millis            `dynamodbav:"ca"`
	UpdatedAt         Millis            `dynamodbav:"ua"`
	RunAt             Millis            `dynamodbav:"ra,omitempty"`
	StartedAt         Millis            `dynamodbav:"sa,omitempty"`
	FinishedAt        Millis            `dynamodbav:"fi,omitempty"`
	DispatchedAt      Millis            `dynamodbav:"dt,omitempty"`
	DispatchExpiresAt Millis            `dynamodbav:"de,omitempty"`
	Attempts          int               `dynamodbav:"na,omitempty"`
	Failures          int               `dynamodbav:"nf,omitempty"`
	Retries           int               `dynamodbav:"nt,omitempty"`
	Releases          int               `dynamodbav:"nl,omitempty"`
	LeaseToken        string            `dynamodbav:"lt,omitempty"`
	LeaseWorker       string            `dynamodbav:"lw,omitempty"`
	LeaseUntil        Millis            `dynamodbav:"le,omitempty"`
	ConcurrencyKey    string            `dynamodbav:"ck,omitempty"`
	IdempotencyKey    string            `dynamodbav:"ik,omitempty"`
	Retention         int64             `dynamodbav:"ir,omitempty"` // milliseconds; -1 while active
	SingletonKey      string            `dynamodbav:"gk,omitempty"`
	SourceType        string            `dynamodbav:"so,omitempty"`
	SourceRun         string            `dynamodbav:"sr,omitempty"`
	SourceSchedule    string            `dynamodbav:"ss,omitempty"`
	SourceFire        Millis            `dynamodbav:"sf,omitempty"`
	Trace             map[string]string `dynamodbav:"tc,omitempty"`
	Meta              map[string]string `dynamodbav:"me,omitempty"`

	FailureCode    string `dynamodbav:"fc,omitempty"`
	FailureMessage string `dynamodbav:"fm,omitempty"` // at most failureStub bytes
	FailureLog     int64  `dynamodbav:"fs,omitempty"` // the commit with the whole record, if the stub lacks part

	Payload      []byte `dynamodbav:"pl,omitempty"`
	PayloadPlace Place  `dynamodbav:"pz,omitempty"`
	Output       []byte `dynamodbav:"ou,omitempty"`
	OutputPlace  Place  `dynamodbav:"oz,omitempty"`

	Wait         string `dynamodbav:"wt,omitempty"` // what it waits for, see storedWait
	WaitSequence int64  `dynamodbav:"ws,omitempty"` // of the event that began the wait: any later one ends it

	Calls int `dynamodbav:"cl,omitempty"` // 1 where it has called runs; changes without a sequence, under the lease

	Signals int64 `dynamodbav:"mb,omitempty"` // that stand beside it: counted without a sequence, by who puts them

	Slot int `dynamodbav:"sn,omitempty"` // the number of the slot that it has, plus 1; 0 for none

	DeliveryLog   int64 `dynamodbav:"ld,omitempty"` // the commit of the latest delivery; absent when superseded
	DeliveryIndex int   `dynamodbav:"li,omitempty"`

	DueP  string `dynamodbav:"dp,omitempty"`
	DueA  string `dynamodbav:"da,omitempty"`
	DoneP string `dynamodbav:"fp,omitempty"`
	DoneA string `dynamodbav:"fa,omitempty"`

	Raw item.Item `dynamodbav:"-"` // as stored: updates are compared with it, and the meter weighs it
}

// ListedAttributes are those that the index done has beside the keys: what a list shows of a finished run.
func ListedAttributes() []string {
	return []string{"tk", "qu", "ca", "ra", "na", "nf", "nt", "nl", "fc", "so", "sr", "ss", "sf"}
}

// UnmarshalRun reads a run item.
func UnmarshalRun(raw item.Item) (*Run, error) {
	r := &Run{}
	if err := Unmarshal(raw, r); err != nil {
		return nil, err
	}
	r.Raw = raw
	return r, nil
}

// Key names the run.
func (r *Run) Key() lane.RunKey {
	key, _ := ParseRunPK(r.PK)
	return key
}

// State is the run's status.
func (r *Run) State() runlane.Status { return runlane.Status(r.Status) }

// DeliveryID names the latest delivery row, or is "".
func (r *Run) DeliveryID() string {
	if r.DeliveryLog == 0 {
		return ""
	}
	return OutboxID(r.Key().RunID, r.DeliveryLog, r.DeliveryIndex)
}

// Projection is the projection without payload and output; of the failure it has what the item holds.
func (r *Run) Projection() *runlane.Run {
	key := r.Key()
	run := &runlane.Run{
		ID:            key.RunID,
		Environment:   key.Environment,
		TaskID:        runlane.TaskID(r.Task),
		Queue:         runlane.QueueName(r.Queue),
		Status:        r.State(),
		EventSequence: r.Sequence,
		Counters: runlane.Counters{
			Attempts: r.Attempts,
			Failures: r.Failures,
			Retries:  r.Retries,
			Releases: r.Releases,
		},
		RunAt:             r.RunAt.Time(),
		StartedAt:         r.StartedAt.Time(),
		FinishedAt:        r.FinishedAt.Time(),
		DispatchedAt:      r.DispatchedAt.Time(),
		DispatchExpiresAt: r.DispatchExpiresAt.Time(),
		Waiting:           r.Waiting(),
		Failure:           runlane.Failure{Code: runlane.ErrorCode(r.FailureCode), Message: r.FailureMessage},
		Lease:             runlane.Lease{Token: r.LeaseToken, WorkerID: r.LeaseWorker, ExpiresAt: r.LeaseUntil.Time()},
		ConcurrencyKey:    r.ConcurrencyKey,
		IdempotencyKey:    r.IdempotencyKey,
		Retention:         retention(r.Retention),
		SingletonKey:      r.SingletonKey,
		Source:            r.source(),
		TraceCarrier:      r.Trace,
		Meta:              r.Meta,
		CreatedAt:         r.CreatedAt.Time(),
		UpdatedAt:         r.UpdatedAt.Time(),
	}
	return run.Clone()
}

// source is where the run comes from. One that was called has the name of its call, with its depth, where others have
// their schedule, and the creation of the run that called where they have the time; a node of a flow has the flow's id,
// round and name, and the creation of the flow; a repetition has the creation of the run that it repeats: the index
// done shows these.
func (r *Run) source() runlane.Source {
	s := runlane.Source{Type: runlane.SourceType(r.SourceType), RunID: runlane.RunID(r.SourceRun)}
	switch s.Type {
	case runlane.SourceCall:
		name, depth, _ := strings.Cut(r.SourceSchedule, ":")
		s.Call, s.CreatedAt = name, r.SourceFire.Time()
		s.Depth, _ = strconv.Atoi(depth)
	case runlane.SourceFlow:
		s.FlowID, s.RunID, s.CreatedAt = runlane.FlowID(r.SourceRun), "", r.SourceFire.Time()
		round, node, _ := strings.Cut(r.SourceSchedule, ":")
		s.Round, _ = strconv.Atoi(round)
		s.Node = node
	case runlane.SourceRerun, runlane.SourceManualRetry:
		s.CreatedAt = r.SourceFire.Time()
	default:
		s.ScheduleID, s.FireTime = runlane.ScheduleID(r.SourceSchedule), r.SourceFire.Time()
	}
	return s
}

// keepSource is the inverse of source.
func (r *Run) keepSource(s *runlane.Source) {
	r.SourceType, r.SourceRun = string(s.Type), string(s.RunID)
	r.SourceSchedule, r.SourceFire = string(s.ScheduleID), ToMillis(s.FireTime)
	switch s.Type {
	case runlane.SourceCall:
		r.SourceSchedule, r.SourceFire = s.Call, ToMillis(s.CreatedAt)
		if s.Depth > 0 { // names of calls have no ':'
			r.SourceSchedule += ":" + strconv.Itoa(s.Depth)
		}
	case runlane.SourceFlow:
		r.SourceRun, r.SourceFire = string(s.FlowID), ToMillis(s.CreatedAt)
		r.SourceSchedule = strconv.Itoa(s.Round) + ":" + s.Node
	case runlane.SourceRerun, runlane.SourceManualRetry:
		r.SourceFire = ToMillis(s.CreatedAt)
	case runlane.SourceTrigger, runlane.SourceSchedule: // theirs stands above
	}
}

// keepFailure writes the stub of a failure that this commit brings, or carries over the earlier one.
func (r *Run) keepFailure(t *lane.Transition, before *Run) {
	failure := t.Projected.Failure
	if failure.IsZero() {
		return
	}
	for _, e := range t.Events {
		switch e.Body.(type) {
		case *runlane.RunFailed, *runlane.RunRetryScheduled:
			r.FailureCode, r.FailureMessage = string(failure.Code), failure.Message
			if len(failure.Message) > failureStub || len(failure.Meta) > 0 {
				r.FailureMessage = clipBytes(failure.Message, failureStub)
				r.FailureLog = t.ExpectedSequence + 1
			}
			return
		}
	}
	if before != nil {
		r.FailureCode, r.FailureMessage, r.FailureLog = before.FailureCode, before.FailureMessage, before.FailureLog
	}
}

func clipBytes(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := limit
	for cut > 0 && s[cut]&0xC0 == 0x80 { // inside a rune
		cut--
	}
	return s[:cut]
}

// Marshal fills Raw.
func (r *Run) Marshal() error {
	raw, err := Marshal(r)
	if err != nil {
		return err
	}
	if r.Trace != nil && len(r.Trace) == 0 { // an empty carrier replaces, an absent one does not
		raw["tc"] = &types.AttributeValueMemberM{Value: item.Item{}}
	}
	if lane.Tells(runlane.SourceType(r.SourceType)) || r.Calls > 0 {
		raw[AttrFormat] = item.Num(callFormat)
	}
	r.Raw = raw
	return nil
}

// StillFinished is the condition that the finished run is still this one.
func (r *Run) StillFinished() item.Condition {
	return item.Equal("sq", item.Num(r.Sequence)).And(item.Equal(AttrDoneA, item.Text(r.DoneA)))
}

// Detach makes the run item no longer announce a payload and an output in separate items, which are removed before the
// run item: readers then find none, instead of waiting for them. It is nil if nothing is announced, and changes nothing
// if the item is another run's by then.
func (r *Run) Detach() *item.Update {
	var gone []string
	if r.OutputPlace.Separate() {
		gone = append(gone, "#oz")
	}
	if r.PayloadPlace.Separate() {
		gone = append(gone, "#pz")
	}
	if gone == nil {
		return nil
	}
	return &item.Update{
		Key:        item.Key(r.PK, RunSK),
		Expression: "REMOVE " + strings.Join(gone, ", "),
		Condition:  r.StillFinished(),
		Before:     r.Raw,
	}
}

// AsRead is the condition that a part of the run is still the one that was read: by the commit that wrote it, or by the
// time of a note. Payloads and outputs of older programs have neither.
func AsRead(part item.Item) item.Condition {
	if commit, ok := part["ci"]; ok {
		return item.Equal("ci", commit)
	}
	if at, ok := part["at"]; ok {
		return item.Equal("at", at)
	}
	return item.Condition{}
}

// SameRun reports that the item is of the run that the transition changes. Once that run is pruned, another may have
// its id, and be at the same sequence under the same marker; it was created at another instant.
func SameRun(t *lane.Transition, current item.Item) bool {
	return item.Number(current["ca"]) == int64(ToMillis(t.Projected.CreatedAt))
}

// ExpectedBy reports that this is the run that the transition changes, at the expected sequence.
func (r *Run) ExpectedBy(t *lane.Transition) bool {
	return r.Sequence == t.ExpectedSequence && r.CreatedAt == ToMillis(t.Projected.CreatedAt)
}

// expected is the condition on an existing run: its sequence and creation, the owner's token, and the marker as read,
// because an inspection moves the marker without changing the sequence.
func (c *Change) expected() item.Condition {
	cond := item.Equal("sq", item.Num(c.ExpectedSequence)).And(
		item.Equal("ca", item.Num(int64(ToMillis(c.Projected.CreatedAt)))),
	)
	if c.LeaseToken != "" {
		cond = cond.And(item.Equal("lt", item.Text(c.LeaseToken)))
	}
	if c.Looked != nil {
		cond = cond.And(Mailed(*c.Looked))
	}
	// A cancellation is told to those that are called, so that the end of a run without a known call depends on there
	// being none. Once called, a run stays so.
	if c.Projected.Status.Terminal() && c.Before.Calls == 0 {
		cond = cond.And(item.Condition{Text: "attribute_not_exists(#cl)"})
	}
	return cond.And(item.Equal(AttrDueP, item.Text(c.Before.DueP)), item.Equal(AttrDueA, item.Text(c.Before.DueA)))
}

// settleSlot decides which slot the run names after the commit, and what happens to the slot that it named before. The
// run item decides this, whatever the queue's policy is by now.
func (c *Change) settleSlot(run *Run) SlotChange {
	switch {
	case c.Slot.Put != nil:
		run.Slot = c.Slot.Put.Number() + 1
		return c.Slot
	case c.Before == nil || c.Before.Slot == 0:
		return SlotChange{}
	case lane.HoldsSlot(c.Projected) && c.Slot.Delete == nil:
		run.Slot = c.Before.Slot
		return SlotChange{}
	case c.WithoutSlot:
		return SlotChange{}
	default:
		own := c.Before.HeldSlot()
		return SlotChange{Delete: &own, Optional: true}
	}
}

// latestDelivery names the row that may be claimed. A later request, the end of the run's wait, a claim of the run and
// its end supersede it; while a run waits for a slot, no row may be claimed.
func (r *Run) latestDelivery(c *Change) {
	switch rows := c.requested(); {
	case rows > 0:
		r.DeliveryLog, r.DeliveryIndex = c.ExpectedSequence+1, rows-1
	case c.resumes(): // the earlier one is for the time that the run waited for
		r.DeliveryLog, r.DeliveryIndex = 0, 0
	case c.Before != nil && (r.State() == runlane.StatusQueued || r.State() == runlane.StatusScheduled):
		r.DeliveryLog, r.DeliveryIndex = c.Before.DeliveryLog, c.Before.DeliveryIndex
	}
	slotless := c.Queue.Bounded() && !c.Reserves() && r.State() == runlane.StatusQueued
	if slotless || r.State() != runlane.StatusQueued && r.State() != runlane.StatusScheduled {
		r.DeliveryLog, r.DeliveryIndex = 0, 0
	}
}

// retention is what storedRetention stored.
func retention(ms int64) runlane.KeyRetention {
	if ms < 0 {
		return runlane.KeyRetention{WhileActive: true}
	}
	return runlane.KeyRetention{TTL: time.Duration(ms) * time.Millisecond}
}

// storedRetention is how long a key is kept, in milliseconds; -1 while its run is active.
func storedRetention(k runlane.KeyRetention) int64 {
	if k.WhileActive {
		return -1
	}
	return k.TTL.Milliseconds()
}
