package dynamostore

import (
	"strings"

	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Sizes that keep a run item within one write unit for its whole life.
const (
	inlineLimit    = 1000 // a run item with its payload
	inlineReserve  = 250  // room for a lease and a failure stub
	inlineOutput   = 400
	failureStub    = 120 // bytes of a failure's message kept on the run item
	maxStoredBytes = 350 << 10
	maxOutputBytes = 256 << 10
)

// runItem is the projection at rest: short names, times in milliseconds, and what the store itself has to know about the run.
// An attribute that this version does not know stays where it is: updates only name what they change.
type runItem struct {
	PK                string            `dynamodbav:"pk"`
	SK                string            `dynamodbav:"sk"`
	Sequence          int64             `dynamodbav:"sq"`
	Status            string            `dynamodbav:"st"`
	Task              string            `dynamodbav:"tk"`
	Queue             string            `dynamodbav:"qu"`
	CreatedAt         millis            `dynamodbav:"ca"`
	UpdatedAt         millis            `dynamodbav:"ua"`
	RunAt             millis            `dynamodbav:"ra,omitempty"`
	StartedAt         millis            `dynamodbav:"sa,omitempty"`
	FinishedAt        millis            `dynamodbav:"fi,omitempty"`
	DispatchedAt      millis            `dynamodbav:"dt,omitempty"`
	DispatchExpiresAt millis            `dynamodbav:"de,omitempty"`
	Attempts          int               `dynamodbav:"na,omitempty"`
	Failures          int               `dynamodbav:"nf,omitempty"`
	Retries           int               `dynamodbav:"nt,omitempty"`
	Releases          int               `dynamodbav:"nl,omitempty"`
	LeaseToken        string            `dynamodbav:"lt,omitempty"`
	LeaseWorker       string            `dynamodbav:"lw,omitempty"`
	LeaseUntil        millis            `dynamodbav:"le,omitempty"`
	ConcurrencyKey    string            `dynamodbav:"ck,omitempty"`
	IdempotencyKey    string            `dynamodbav:"ik,omitempty"`
	Retention         int64             `dynamodbav:"ir,omitempty"` // milliseconds; -1 while active
	SingletonKey      string            `dynamodbav:"gk,omitempty"`
	SourceType        string            `dynamodbav:"so,omitempty"`
	SourceRun         string            `dynamodbav:"sr,omitempty"`
	SourceSchedule    string            `dynamodbav:"ss,omitempty"`
	SourceFire        millis            `dynamodbav:"sf,omitempty"`
	Trace             map[string]string `dynamodbav:"tc,omitempty"`
	Meta              map[string]string `dynamodbav:"me,omitempty"`

	FailureCode    string `dynamodbav:"fc,omitempty"`
	FailureMessage string `dynamodbav:"fm,omitempty"` // at most failureStub bytes
	FailureLog     int64  `dynamodbav:"fs,omitempty"` // the commit that holds the whole record, where the stub is not all

	Payload      []byte `dynamodbav:"pl,omitempty"`
	PayloadPlace place  `dynamodbav:"pz,omitempty"`
	Output       []byte `dynamodbav:"ou,omitempty"`
	OutputPlace  place  `dynamodbav:"oz,omitempty"`

	Slot int `dynamodbav:"sn,omitempty"` // number + 1 of the slot it occupies

	DeliveryLog   int64 `dynamodbav:"ld,omitempty"` // the commit of the latest delivery; absent when superseded
	DeliveryIndex int   `dynamodbav:"li,omitempty"`

	DueP  string `dynamodbav:"dp,omitempty"`
	DueA  string `dynamodbav:"da,omitempty"`
	DoneP string `dynamodbav:"fp,omitempty"`
	DoneA string `dynamodbav:"fa,omitempty"`

	raw item // as it is stored: what updates are compared with, and what the meter weighs
}

// bulkItem is a payload or an output that has an item of its own.
type bulkItem struct {
	PK   string `dynamodbav:"pk"`
	SK   string `dynamodbav:"sk"`
	Body []byte `dynamodbav:"bo"`

	Commit string `dynamodbav:"ci,omitempty"` // that wrote it; items of older programs have none
}

func unmarshalRun(raw item) (*runItem, error) {
	r := &runItem{}
	if err := unmarshalItem(raw, r); err != nil {
		return nil, err
	}
	r.raw = raw
	return r, nil
}

func (r *runItem) key() lane.RunKey {
	key, _ := parseRunPK(r.PK)
	return key
}

func (r *runItem) due() dueKey { return dueKey{r.DueP, r.DueA} }

func (r *runItem) marker() marker {
	m, _, _ := r.due().parse()
	return m
}

func (r *runItem) status() runlane.Status { return runlane.Status(r.Status) }

// deliveryID names the latest delivery row, or is "".
func (r *runItem) deliveryID() string {
	if r.DeliveryLog == 0 {
		return ""
	}
	return outboxID(r.key().RunID, r.DeliveryLog, r.DeliveryIndex)
}

// run is the projection without payload and output, with the failure as far as the item holds it.
func (r *runItem) run() *runlane.Run {
	key := r.key()
	run := &runlane.Run{
		ID: key.RunID, Environment: key.Environment, TaskID: runlane.TaskID(r.Task), Queue: runlane.QueueName(r.Queue),
		Status: r.status(), EventSequence: r.Sequence,
		Counters: runlane.Counters{Attempts: r.Attempts, Failures: r.Failures, Retries: r.Retries, Releases: r.Releases},
		RunAt:    r.RunAt.time(), StartedAt: r.StartedAt.time(), FinishedAt: r.FinishedAt.time(),
		DispatchedAt: r.DispatchedAt.time(), DispatchExpiresAt: r.DispatchExpiresAt.time(),
		Failure:        runlane.Failure{Code: runlane.ErrorCode(r.FailureCode), Message: r.FailureMessage},
		Lease:          runlane.Lease{Token: r.LeaseToken, WorkerID: r.LeaseWorker, ExpiresAt: r.LeaseUntil.time()},
		ConcurrencyKey: r.ConcurrencyKey, IdempotencyKey: r.IdempotencyKey, Retention: retention(r.Retention),
		SingletonKey: r.SingletonKey,
		Source: runlane.Source{
			Type: runlane.SourceType(r.SourceType), RunID: runlane.RunID(r.SourceRun),
			ScheduleID: runlane.ScheduleID(r.SourceSchedule), FireTime: r.SourceFire.time(),
		},
		TraceCarrier: r.Trace, Meta: r.Meta, CreatedAt: r.CreatedAt.time(), UpdatedAt: r.UpdatedAt.time(),
	}
	return run.Clone()
}

func retention(ms int64) runlane.KeyRetention {
	if ms < 0 {
		return runlane.KeyRetention{WhileActive: true}
	}
	return runlane.KeyRetention{TTL: time.Duration(ms) * time.Millisecond}
}

func storedRetention(k runlane.KeyRetention) int64 {
	if k.WhileActive {
		return -1
	}
	return k.TTL.Milliseconds()
}

// projected is the item after a transition, but for payload, output, delivery and index attributes, which it takes from before.
// before is nil for a creation.
func projected(t *lane.Transition, before *runItem) *runItem {
	run := t.Projected
	r := &runItem{
		PK: runPK(t.Key()), SK: skRun, Sequence: run.EventSequence, Status: string(run.Status), Task: string(run.TaskID),
		Queue: string(run.Queue), CreatedAt: toMillis(run.CreatedAt), UpdatedAt: toMillis(run.UpdatedAt), RunAt: toMillis(run.RunAt),
		StartedAt: toMillis(run.StartedAt), FinishedAt: toMillis(run.FinishedAt), DispatchedAt: toMillis(run.DispatchedAt),
		DispatchExpiresAt: toMillis(run.DispatchExpiresAt), Attempts: run.Counters.Attempts, Failures: run.Counters.Failures,
		Retries: run.Counters.Retries, Releases: run.Counters.Releases, LeaseToken: run.Lease.Token, LeaseWorker: run.Lease.WorkerID,
		LeaseUntil: toMillis(run.Lease.ExpiresAt), ConcurrencyKey: run.ConcurrencyKey, IdempotencyKey: run.IdempotencyKey,
		Retention: storedRetention(run.Retention), SingletonKey: run.SingletonKey, SourceType: string(run.Source.Type),
		SourceRun: string(run.Source.RunID), SourceSchedule: string(run.Source.ScheduleID), SourceFire: toMillis(run.Source.FireTime),
		Trace: run.TraceCarrier, Meta: run.Meta,
	}
	r.keepFailure(t, before)
	if before != nil {
		r.Payload, r.PayloadPlace, r.Output, r.OutputPlace = before.Payload, before.PayloadPlace, before.Output, before.OutputPlace
	}
	return r
}

// keepFailure writes the stub of a failure that this commit brings, or carries the one that was there.
func (r *runItem) keepFailure(t *lane.Transition, before *runItem) {
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

// placeBulk puts payload (of a creation) and output (of a success) into the item, or returns the items of their own that they need.
func (r *runItem) placeBulk(t *lane.Transition) (bulk []bulkItem, err error) {
	for _, e := range t.Events {
		switch body := e.Body.(type) {
		case *runlane.RunCreated:
			without, err := marshalItem(r)
			if err != nil {
				return nil, err
			}
			room := inlineLimit - inlineReserve - itemSize(without)
			if err := tooLarge("payload", "", len(body.Payload), maxOpenedBytes, r.key().RunID); err != nil {
				return nil, err
			}
			p, b := put(body.Payload, room)
			if r.PayloadPlace = p; p.separate() {
				bulk = append(bulk, bulkItem{PK: r.PK, SK: skPayload, Body: b})
			} else {
				r.Payload = b
			}
			if err := tooLarge("payload", " compressed", len(b), maxStoredBytes, r.key().RunID); err != nil {
				return nil, err
			}
		case *runlane.RunSucceeded:
			p, b, err := putOutput(r.key().RunID, body.Output)
			if err != nil {
				return nil, err
			}
			if r.OutputPlace = p; p.separate() {
				bulk = append(bulk, bulkItem{PK: r.PK, SK: skOutput, Body: b})
			} else {
				r.Output = b
			}
		}
	}
	return bulk, nil
}

// putOutput is put for an output, within its limits.
func putOutput(run runlane.RunID, output []byte) (place, []byte, error) {
	if err := tooLarge("output", "", len(output), maxOpenedBytes, run); err != nil {
		return nowhere, nil, err
	}
	p, b := put(output, inlineOutput)
	return p, b, tooLarge("output", " compressed", len(b), maxOutputBytes, run)
}

// CheckOutput implements lane.OutputChecker.
func (s *Store) CheckOutput(run runlane.RunID, output []byte) error {
	if len(output) <= maxOutputBytes {
		return nil
	}
	_, _, err := putOutput(run, output)
	return err
}

func tooLarge(what, form string, size, limit int, run runlane.RunID) error {
	if size <= limit {
		return nil
	}
	return &runlane.Error{
		Code: runlane.ErrValidationFailed, RunID: run, Message: fmt.Sprintf("%s has %d bytes%s, more than %d", what, size, form, limit),
		Hint: "store the bulk elsewhere and pass a reference",
	}
}

// index sets the index attributes: the marker of an active run, the summary key of a finished one.
func (r *runItem) index(m marker, shards shardCounts) {
	key := r.key()
	if r.status().Terminal() {
		r.DueP, r.DueA = "", ""
		r.DoneP = donePartition(key.Environment, r.status(), shardOf(string(key.RunID), shards.Write))
		r.DoneA = fmt.Sprintf("%013d:%s", r.FinishedAt, key.RunID)
		return
	}
	due := r.dueKey(m, shards)
	r.DueP, r.DueA = due.partition, due.sort
}

// dueKey is where a marker of this run stands. Runs that wait for a slot lie together, by partition.
func (r *runItem) dueKey(m marker, shards shardCounts) dueKey {
	key := r.key()
	if m.kind == slotless {
		p := r.partition()
		return dueKey{
			duePartition(key.Environment, slotless, shardOf(string(p.queue)+":"+p.hash, shards.Write)),
			fmt.Sprintf("%s:%s:%013d", p.queue, p.hash, m.at),
		}
	}
	return m.key(key.Environment, shardOf(string(key.RunID), shards.Write), runlane.QueueName(r.Queue))
}

// marshal fills raw.
func (r *runItem) marshal() error {
	raw, err := marshalItem(r)
	if err != nil {
		return err
	}
	if r.Trace != nil && len(r.Trace) == 0 { // an empty carrier replaces, an absent one does not
		raw["tc"] = &types.AttributeValueMemberM{Value: item{}}
	}
	r.raw = raw
	return nil
}

// runnable is when a worker may take the run; ok is false while no time alone makes it runnable.
func (r *runItem) runnable() (since millis, ok bool) {
	return runlane.RunnableSince(r.status(), r.UpdatedAt, r.RunAt, r.LeaseUntil, 0)
}

// dispatchable is when a run of a bounded queue needs a slot: a queued one as soon as it has no live reservation, any other when it is
// runnable.
func (r *runItem) dispatchable() (since millis, ok bool) {
	since, ok = r.runnable()
	if r.status() == runlane.StatusQueued {
		since = max(since, r.DispatchExpiresAt)
	}
	return since, ok
}

// finished is the condition that the finished run is still this one.
func (r *runItem) finished() condition {
	return equal("sq", num(r.Sequence)).and(equal(attrDoneA, text(r.DoneA)))
}

// detach makes the run item no longer announce a payload and an output in separate items, which are removed before it is: readers find none
// meanwhile, instead of waiting for them. It is nil where nothing is announced, and gives way when the run is not this one any more.
func (r *runItem) detach() *update {
	var gone []string
	if r.OutputPlace.separate() {
		gone = append(gone, "#oz")
	}
	if r.PayloadPlace.separate() {
		gone = append(gone, "#pz")
	}
	if gone == nil {
		return nil
	}
	return &update{
		key: itemKey(r.PK, skRun), expression: "REMOVE " + strings.Join(gone, ", "), condition: r.finished(), before: r.raw,
	}
}

// asRead is the condition that the part of a run is still the one that was read: by the commit that wrote it, or the moment of a note.
// Payloads and outputs of older programs have neither.
func asRead(part item) condition {
	if commit, ok := part["ci"]; ok {
		return equal("ci", commit)
	}
	if at, ok := part["at"]; ok {
		return equal("at", at)
	}
	return condition{}
}
