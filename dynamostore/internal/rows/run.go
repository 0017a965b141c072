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

// Run is the stored projection, with the store's own attributes. Unknown attributes stay, since updates name only those
// they change.
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
	Retention         int64             `dynamodbav:"ir,omitempty"` // see storedRetention
	DebounceTriggers  int               `dynamodbav:"bn,omitempty"` // of a debounced run
	DebounceLatest    Millis            `dynamodbav:"bl,omitempty"`
	SingletonKey      string            `dynamodbav:"gk,omitempty"`
	Priority          int               `dynamodbav:"pr,omitempty"`
	SourceType        string            `dynamodbav:"so,omitempty"`
	SourceRun         string            `dynamodbav:"sr,omitempty"`
	SourceSchedule    string            `dynamodbav:"ss,omitempty"`
	SourceFire        Millis            `dynamodbav:"sf,omitempty"`
	SourceOrigin      string            `dynamodbav:"sg,omitempty"`
	Trace             map[string]string `dynamodbav:"tc,omitempty"`
	Meta              map[string]string `dynamodbav:"me,omitempty"`

	FailureCode    string `dynamodbav:"fc,omitempty"`
	FailureMessage string `dynamodbav:"fm,omitempty"` // at most failureStub bytes
	FailureLog     int64  `dynamodbav:"fs,omitempty"` // the commit with the whole failure, if the stub lacks part

	Payload      []byte `dynamodbav:"pl,omitempty"`
	PayloadPlace Place  `dynamodbav:"pz,omitempty"`
	// the commit that wrote a payload which later ones replace; none for other runs
	PayloadCommit string `dynamodbav:"pc,omitempty"`
	Output        []byte `dynamodbav:"ou,omitempty"`
	OutputPlace   Place  `dynamodbav:"oz,omitempty"`

	Wait         string `dynamodbav:"wt,omitempty"` // a storedWait as JSON
	WaitSequence int64  `dynamodbav:"ws,omitempty"` // sequence of the event that began the wait; any later event ends it

	Calls int `dynamodbav:"cl,omitempty"` // 1 once it has called runs; set under the lease, keeps the sequence

	Signals int64 `dynamodbav:"mb,omitempty"` // number of signals stored with the run; counting keeps the sequence

	Slot int `dynamodbav:"sn,omitempty"` // slot number plus 1; 0 for none

	DeliveryLog   int64 `dynamodbav:"ld,omitempty"` // commit of the latest delivery; absent when superseded
	DeliveryIndex int   `dynamodbav:"li,omitempty"`

	DueP  string `dynamodbav:"dp,omitempty"`
	DueA  string `dynamodbav:"da,omitempty"`
	DoneP string `dynamodbav:"fp,omitempty"`
	DoneA string `dynamodbav:"fa,omitempty"`

	Raw item.Item `dynamodbav:"-"` // as stored: for updates and for the meter
}

// ListedAttributes are the projected attributes of the index done: a list shows them.
func ListedAttributes() []string {
	return []string{"tk", "qu", "ca", "ra", "na", "nf", "nt", "nl", "fc", "so", "sr", "ss", "sf"}
}

// ByteAttributes are the attributes that hold payload and output.
func ByteAttributes() []string { return []string{"pl", "ou"} }

func UnmarshalRun(raw item.Item) (*Run, error) {
	r := &Run{}
	if err := Unmarshal(raw, r); err != nil {
		return nil, err
	}
	r.Raw = raw
	return r, nil
}

func (r *Run) Key() lane.RunKey {
	key, _ := ParseRunPK(r.PK)
	return key
}

// TaskOf reads the task of a run item, or of its row of the index done.
func TaskOf(it item.Item) runlane.TaskID { return runlane.TaskID(item.TextOf(it["tk"])) }

func (r *Run) State() runlane.Status { return runlane.Status(r.Status) }

func (r *Run) DeliveryID() string {
	if r.DeliveryLog == 0 {
		return ""
	}
	return OutboxID(r.Key().RunID, r.DeliveryLog, r.DeliveryIndex)
}

// Projection returns the projection without payload and output, with the failure's stub.
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
		Debounced:         r.debounced(),
		SingletonKey:      r.SingletonKey,
		Priority:          r.Priority,
		Source:            r.source(),
		TraceCarrier:      r.Trace,
		Meta:              r.Meta,
		CreatedAt:         r.CreatedAt.Time(),
		UpdatedAt:         r.UpdatedAt.Time(),
	}
	return run.Clone()
}

// source decodes the run's source. sr, ss and sf depend on the type, since the index done projects them: a called run
// has its caller, its call's name and depth, and the caller's creation; a node has its flow, round and name, and the
// flow's creation; a repetition has the creation of the repeated run in sf.
func (r *Run) source() runlane.Source {
	s := runlane.Source{
		Type: runlane.SourceType(r.SourceType), RunID: runlane.RunID(r.SourceRun), OriginID: runlane.RunID(r.SourceOrigin),
	}
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

func (r *Run) keepSource(s *runlane.Source) {
	r.SourceType, r.SourceRun, r.SourceOrigin = string(s.Type), string(s.RunID), string(s.OriginID)
	r.SourceSchedule, r.SourceFire = string(s.ScheduleID), ToMillis(s.FireTime)
	switch s.Type {
	case runlane.SourceCall:
		r.SourceSchedule, r.SourceFire = s.Call, ToMillis(s.CreatedAt)
		if s.Depth > 0 { // call names have no ':'
			r.SourceSchedule += ":" + strconv.Itoa(s.Depth)
		}
	case runlane.SourceFlow:
		r.SourceRun, r.SourceFire = string(s.FlowID), ToMillis(s.CreatedAt)
		r.SourceSchedule = strconv.Itoa(s.Round) + ":" + s.Node
	case runlane.SourceRerun, runlane.SourceManualRetry:
		r.SourceFire = ToMillis(s.CreatedAt)
	case runlane.SourceTrigger, runlane.SourceSchedule: // set above
	}
}

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

func (r *Run) Marshal() error {
	raw, err := Marshal(r)
	if err != nil {
		return err
	}
	if r.Trace != nil && len(r.Trace) == 0 { // an empty carrier replaces, an absent one does not
		raw["tc"] = &types.AttributeValueMemberM{Value: item.Item{}}
	}
	if lane.NotifiesAtEnd(runlane.SourceType(r.SourceType)) || r.Calls > 0 {
		raw[AttrFormat] = item.Num(callFormat)
	}
	r.Raw = raw
	return nil
}

func (r *Run) StillFinished() item.Condition {
	return item.Equal("sq", item.Num(r.Sequence)).And(item.Equal(AttrDoneA, item.Text(r.DoneA)))
}

// Detach removes the places of payload and output in separate items, or is nil. Pruning removes these items before the
// run item, and readers would wait for them. It changes nothing if the item is another run's by then.
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

// AsRead requires a part of the run as read: by its commit, or by a note's time. Payloads and outputs of older programs
// have neither.
func AsRead(part item.Item) item.Condition {
	if commit, ok := part["ci"]; ok {
		return item.Equal("ci", commit)
	}
	if at, ok := part["at"]; ok {
		return item.Equal("at", at)
	}
	return item.Condition{}
}

// SameRun reports that the item is the transition's run. After pruning another run can have the same ID, sequence and
// marker, but not the same creation.
func SameRun(t *lane.Transition, current item.Item) bool {
	return item.Number(current["ca"]) == int64(ToMillis(t.Projected.CreatedAt))
}

func (r *Run) ExpectedBy(t *lane.Transition) bool {
	return r.Sequence == t.ExpectedSequence && r.CreatedAt == ToMillis(t.Projected.CreatedAt)
}

// expected is the condition on an existing run: sequence, creation, lease, and the marker, which an inspection moves
// without a sequence.
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
	// A cancelled run has to notify the runs it called, so the end of a run without known calls depends on there being
	// none. Calls are never removed.
	if c.Projected.Status.Terminal() && c.Before.Calls == 0 {
		cond = cond.And(item.Condition{Text: "attribute_not_exists(#cl)"})
	}
	return cond.And(item.Equal(AttrDueP, item.Text(c.Before.DueP)), item.Equal(AttrDueA, item.Text(c.Before.DueA)))
}

// settleSlot sets the run's slot and decides what happens to its earlier slot, by the run item, not by the queue's
// current policy.
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

// setLatestDelivery sets the row that may be claimed. A later request, a claim, the end of a wait and the end of the
// run supersede it. A run that waits for a slot has none.
func (r *Run) setLatestDelivery(c *Change) {
	switch rows := c.countRequests(); {
	case rows > 0:
		r.DeliveryLog, r.DeliveryIndex = c.ExpectedSequence+1, rows-1
	case c.resumes(): // the earlier one is for the time it waited for
		r.DeliveryLog, r.DeliveryIndex = 0, 0
	case c.Before != nil && (r.State() == runlane.StatusQueued || r.State() == runlane.StatusScheduled):
		r.DeliveryLog, r.DeliveryIndex = c.Before.DeliveryLog, c.Before.DeliveryIndex
	}
	slotless := c.Queue.Bounded() && !c.Reserves() && r.State() == runlane.StatusQueued
	if slotless || r.State() != runlane.StatusQueued && r.State() != runlane.StatusScheduled {
		r.DeliveryLog, r.DeliveryIndex = 0, 0
	}
}

func (r *Run) debounced() *runlane.Debounced {
	if r.DebounceTriggers == 0 {
		return nil
	}
	return &runlane.Debounced{Latest: r.DebounceLatest.Time(), Triggers: r.DebounceTriggers}
}

func (r *Run) keepDebounced(d *runlane.Debounced) {
	if d != nil {
		r.DebounceTriggers, r.DebounceLatest = d.Triggers, ToMillis(d.Latest)
	}
}

// Stored retentions that are no time to live. A window of n milliseconds is storedWindow - n.
const (
	storedWhileActive = -1
	storedUntilDue    = -2
	storedWindow      = -2
)

func retention(ms int64) runlane.KeyRetention {
	switch {
	case ms == storedWhileActive:
		return runlane.KeyRetention{WhileActive: true}
	case ms == storedUntilDue:
		return runlane.KeyRetention{UntilDue: true}
	case ms < storedWindow:
		return runlane.KeyRetention{TTL: time.Duration(storedWindow-ms) * time.Millisecond, Window: true}
	default:
		return runlane.KeyRetention{TTL: time.Duration(ms) * time.Millisecond}
	}
}

// storedRetention returns the milliseconds of a time to live, or a negative number.
func storedRetention(k runlane.KeyRetention) int64 {
	switch {
	case k.WhileActive:
		return storedWhileActive
	case k.UntilDue:
		return storedUntilDue
	case k.Window:
		return storedWindow - k.TTL.Milliseconds()
	default:
		return k.TTL.Milliseconds()
	}
}
