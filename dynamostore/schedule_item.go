package dynamostore

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// occurrenceKept is how long an occurrence can be listed after it was claimed. TTL then collects it; what never fires again
// follows from the record's last fire.
const occurrenceKept = 40 * 24 * time.Hour

// scheduleItem is a schedule's record. Its version is its sequence: a change depends on the one it saw.
type scheduleItem struct {
	PK            string        `dynamodbav:"pk"`
	SK            string        `dynamodbav:"sk"`
	Version       int64         `dynamodbav:"sq"`
	Change        string        `dynamodbav:"ci"` // the put that wrote it, by which a repeated put knows itself
	Definition    string        `dynamodbav:"dh,omitempty"`
	RegisteredAt  millis        `dynamodbav:"rg,omitempty"`
	LastEvaluated millis        `dynamodbav:"ev,omitempty"`
	LastFire      millis        `dynamodbav:"lf,omitempty"`
	LastRun       runlane.RunID `dynamodbav:"lr,omitempty"`
	PendingFire   millis        `dynamodbav:"pf,omitempty"`
	Paused        bool          `dynamodbav:"pa,omitempty"`
	PauseReason   string        `dynamodbav:"pr,omitempty"`

	ManualRuns []runlane.RunID `dynamodbav:"mr,omitempty"`

	raw item // as it is stored
}

// scheduleAttributes are what a put sets or removes. An attribute that this version does not know stays.
var scheduleAttributes = []string{"sq", "ci", "dh", "rg", "ev", "lf", "lr", "pf", "pa", "pr", "mr"}

func schedulePK(e runlane.Environment) string { return e.Name() + ":schedule" }

// newScheduleItem is the item that a put of the record writes.
func newScheduleItem(e runlane.Environment, r *runlane.ScheduleRecord, change string) scheduleItem {
	return scheduleItem{
		PK: schedulePK(e), SK: string(r.ID), Version: r.Version + 1, Change: change, Definition: r.DefinitionHash,
		RegisteredAt: toMillis(r.RegisteredAt), LastEvaluated: toMillis(r.LastEvaluated), LastFire: toMillis(r.LastFire),
		LastRun: r.LastRunID, PendingFire: toMillis(r.PendingFire), Paused: r.Paused, PauseReason: r.PauseReason,
		ManualRuns: r.ManualRunIDs,
	}
}

func unmarshalSchedule(raw item) (*scheduleItem, error) {
	s := &scheduleItem{}
	if err := unmarshalItem(raw, s); err != nil {
		return nil, err
	}
	s.raw = raw
	return s, nil
}

func (s *scheduleItem) record() runlane.ScheduleRecord {
	return runlane.ScheduleRecord{
		ID: runlane.ScheduleID(s.SK), DefinitionHash: s.Definition, RegisteredAt: s.RegisteredAt.time(),
		LastEvaluated: s.LastEvaluated.time(), LastFire: s.LastFire.time(), LastRunID: s.LastRun, PendingFire: s.PendingFire.time(),
		Paused: s.Paused, PauseReason: s.PauseReason, ManualRunIDs: s.ManualRuns, Version: s.Version,
	}
}

// unchanged is the condition that nobody changed the record since the version was read and that the write does not move its last
// fire back.
func (s *scheduleItem) unchanged() condition {
	if s.Version == 1 {
		return condition{text: "attribute_not_exists(#pk)"}
	}
	return condition{
		text:   "#sq = :was AND (attribute_not_exists(#lf) OR #lf <= :fired)",
		values: item{":was": num(s.Version - 1), ":fired": num(int64(s.LastFire))},
	}
}

// replacement is the update that makes raw the item, but for attributes that this version does not know.
func replacement(raw item) (expression string, values item) {
	var set, remove []string
	values = item{}
	for _, name := range scheduleAttributes {
		if v, ok := raw[name]; ok {
			set = append(set, "#"+name+" = :to_"+name)
			values[":to_"+name] = v
		} else {
			remove = append(remove, "#"+name)
		}
	}
	expression = "SET " + strings.Join(set, ", ")
	if len(remove) > 0 {
		expression += " REMOVE " + strings.Join(remove, ", ")
	}
	return expression, values
}

// put is the plain write of the record.
func (s *scheduleItem) put() (*update, error) {
	raw, err := marshalItem(s)
	if err != nil {
		return nil, err
	}
	expression, values := replacement(raw)
	return &update{
		key: keyOf(raw), expression: expression, values: values, condition: s.unchanged(),
		wrote: func(now item) bool { return textOf(now["ci"]) == s.Change },
	}, nil
}

// fired is the record after an occurrence that is later than its last fire. A skip leaves the last run as it is.
func (s *scheduleItem) fired(fire millis, runs []runlane.RunID) member {
	after := maps.Clone(s.raw)
	after["sq"], after["lf"] = num(s.Version+1), num(int64(fire))
	if len(runs) > 0 {
		after["lr"] = text(string(runs[len(runs)-1]))
	}
	return member{before: s.raw, after: after, condition: equal("sq", num(s.Version))}
}

// Statuses of an occurrence.
const (
	occurrenceClaimed   = "claimed"
	occurrenceCompleted = "completed"
)

// occurrenceItem is one fire time of a schedule: under a claim, or what became of it.
type occurrenceItem struct {
	PK         string             `dynamodbav:"pk"`
	SK         string             `dynamodbav:"sk"`
	Status     string             `dynamodbav:"st"`
	Token      string             `dynamodbav:"ct"` // stays when it is completed: a repeated completion knows itself by it
	ClaimUntil millis             `dynamodbav:"cu,omitempty"`
	Runs       []runlane.RunID    `dynamodbav:"rs,omitempty"`
	Skipped    runlane.SkipReason `dynamodbav:"wy,omitempty"`
	First      millis             `dynamodbav:"f1,omitempty"` // of several that were skipped together
	Count      int                `dynamodbav:"cn,omitempty"`
	Expires    int64              `dynamodbav:"xt"` // seconds: when DynamoDB may remove it

	raw item // as it is stored
}

func occurrencePK(key lane.ScheduleKey) string {
	return key.Environment.Name() + ":sched:" + string(key.ScheduleID)
}

func occurrenceSK(fire millis) string { return fmt.Sprintf("%013d", fire) }

func unmarshalOccurrence(raw item) (*occurrenceItem, error) {
	o := &occurrenceItem{}
	if err := unmarshalItem(raw, o); err != nil {
		return nil, err
	}
	o.raw = raw
	return o, nil
}

// claimOccurrence takes a fire time that is neither completed nor under a claim at an instant.
func claimOccurrence(c *lane.ClaimOccurrenceCommand, token string, kept time.Time) *update {
	// A completed occurrence has no end of a claim.
	free := condition{text: "attribute_not_exists(#pk) OR #cu <= :at", values: item{":at": num(int64(toMillis(c.At)))}}
	return &update{
		key:        itemKey(occurrencePK(c.ScheduleKey), occurrenceSK(toMillis(c.FireTime))),
		expression: "SET #st = :st, #ct = :ct, #cu = :cu, #xt = :xt",
		values: item{
			":st": text(occurrenceClaimed), ":ct": text(token), ":cu": num(int64(toMillis(c.ClaimUntil))), ":xt": num(kept.Unix()),
		},
		condition: free, wrote: func(now item) bool { return textOf(now["ct"]) == token },
	}
}

func (o *occurrenceItem) fire() millis { return parseMillis(o.SK) }

func (o *occurrenceItem) completed() bool { return o.Status == occurrenceCompleted }

// listed reports that a list shows the occurrence: it is complete, and not one that DynamoDB has yet to remove.
func (o *occurrenceItem) listed(now time.Time) bool {
	return o.completed() && now.Before(time.Unix(o.Expires, 0))
}

// became is the occurrence as lists show it.
func (o *occurrenceItem) became(id runlane.ScheduleID) runlane.Occurrence {
	shown := runlane.Occurrence{ScheduleID: id, FireTime: o.fire().time(), Skipped: o.Skipped, First: o.First.time(), Count: o.Count}
	if len(o.Runs) > 0 {
		shown.RunID = o.Runs[len(o.Runs)-1]
	}
	return shown
}

// judge tells that a completion has happened already, or why it cannot. The occurrence may be nil.
func (o *occurrenceItem) judge(c *lane.CompleteOccurrenceCommand) (done bool, err error) {
	switch {
	case o == nil || o.Token != c.Token:
		return false, conflict(runlane.ConflictScheduleOccurrence, "", "the occurrence is not under this claim")
	case !o.completed():
		return false, nil
	case slices.Equal(o.Runs, c.RunIDs) && o.Skipped == c.Skipped && o.First == toMillis(c.First) && o.Count == c.Count:
		return true, nil
	default:
		return false, conflict(runlane.ConflictScheduleOccurrence, "", "the occurrence was completed with another result")
	}
}

// completion is the occurrence after its completion, under the claim that was read.
func (o *occurrenceItem) completion(c *lane.CompleteOccurrenceCommand) (member, error) {
	after := maps.Clone(o.raw)
	delete(after, "cu")
	after["st"] = text(occurrenceCompleted)
	if c.Skipped != "" {
		after["wy"] = text(string(c.Skipped))
		if c.Count != 0 {
			after["f1"], after["cn"] = num(int64(toMillis(c.First))), num(int64(c.Count))
		}
	} else {
		runs, err := encode(reflect.ValueOf(c.RunIDs))
		if err != nil {
			return member{}, &runlane.Error{Code: runlane.ErrInternal, Message: "runs do not marshal", Cause: err}
		}
		after["rs"] = runs
	}
	return member{before: o.raw, after: after, condition: equal("ct", text(c.Token)).and(equal("st", text(occurrenceClaimed)))}, nil
}

// alone is a completion that has nothing to move in the record.
func (o *occurrenceItem) alone(completion *member, token string) *update {
	expression, values := completion.change()
	return &update{
		key: keyOf(o.raw), expression: expression, values: values, condition: completion.condition, before: o.raw,
		wrote: func(now item) bool { return textOf(now["st"]) == occurrenceCompleted && textOf(now["ct"]) == token },
	}
}

// proofOf is what the occurrence has once this completion was carried out, and no other.
func (o *occurrenceItem) proofOf(completion member) proof {
	values := item{}
	for _, name := range []string{"st", "ct", "rs", "wy", "f1", "cn"} {
		values[name] = completion.after[name]
	}
	return proof{operation: "settle occurrence", pk: o.PK, sk: o.SK, values: values}
}

func malformedSchedule(cause error, format string, args ...any) error {
	return &runlane.Error{Code: runlane.ErrContractViolation, Message: fmt.Sprintf(format, args...), Cause: cause}
}

func scheduleNotFound(key lane.ScheduleKey) error {
	return &runlane.Error{
		Code: runlane.ErrScheduleNotFound, Message: fmt.Sprintf("no such schedule: %q", key.ScheduleID),
		Hint: "check the schedule id and the environment; the first tick that knows a schedule makes its record",
		Meta: map[string]string{"environment": key.Environment.Name()},
	}
}
