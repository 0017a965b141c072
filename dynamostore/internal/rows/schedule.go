package rows

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

// OccurrenceKept is how long an occurrence is listed after its claim. Then TTL removes it. The record's last fire still
// prevents old occurrences from firing again.
const OccurrenceKept = 40 * 24 * time.Hour

// Schedule is a schedule's record. Its version is its sequence: a change depends on the version that it read.
type Schedule struct {
	PK            string        `dynamodbav:"pk"`
	SK            string        `dynamodbav:"sk"`
	Version       int64         `dynamodbav:"sq"`
	Change        string        `dynamodbav:"ci"` // ID of the put, by which a repeated put recognizes itself
	Definition    string        `dynamodbav:"dh,omitempty"`
	RegisteredAt  Millis        `dynamodbav:"rg,omitempty"`
	LastEvaluated Millis        `dynamodbav:"ev,omitempty"`
	LastFire      Millis        `dynamodbav:"lf,omitempty"`
	LastRun       runlane.RunID `dynamodbav:"lr,omitempty"`
	PendingFire   Millis        `dynamodbav:"pf,omitempty"`
	Paused        bool          `dynamodbav:"pa,omitempty"`
	PauseReason   string        `dynamodbav:"pr,omitempty"`

	ManualRuns []runlane.RunID `dynamodbav:"mr,omitempty"`

	raw item.Item
}

// scheduleAttributes are the attributes that a put sets or removes. Unknown ones stay.
var scheduleAttributes = []string{"sq", "ci", "dh", "rg", "ev", "lf", "lr", "pf", "pa", "pr", "mr"}

func SchedulePK(e runlane.Environment) string { return e.Name() + ":schedule" }

func NewScheduleItem(e runlane.Environment, r *runlane.ScheduleRecord, change string) Schedule {
	return Schedule{
		PK:            SchedulePK(e),
		SK:            string(r.ID),
		Version:       r.Version + 1,
		Change:        change,
		Definition:    r.DefinitionHash,
		RegisteredAt:  ToMillis(r.RegisteredAt),
		LastEvaluated: ToMillis(r.LastEvaluated),
		LastFire:      ToMillis(r.LastFire),
		LastRun:       r.LastRunID,
		PendingFire:   ToMillis(r.PendingFire),
		Paused:        r.Paused,
		PauseReason:   r.PauseReason,
		ManualRuns:    r.ManualRunIDs,
	}
}

func UnmarshalSchedule(raw item.Item) (*Schedule, error) {
	s := &Schedule{}
	if err := Unmarshal(raw, s); err != nil {
		return nil, err
	}
	s.raw = raw
	return s, nil
}

func (s *Schedule) Record() runlane.ScheduleRecord {
	return runlane.ScheduleRecord{
		ID:             runlane.ScheduleID(s.SK),
		DefinitionHash: s.Definition,
		RegisteredAt:   s.RegisteredAt.Time(),
		LastEvaluated:  s.LastEvaluated.Time(),
		LastFire:       s.LastFire.Time(),
		LastRunID:      s.LastRun,
		PendingFire:    s.PendingFire.Time(),
		Paused:         s.Paused,
		PauseReason:    s.PauseReason,
		ManualRunIDs:   s.ManualRuns,
		Version:        s.Version,
	}
}

// unchanged requires the version that was read, and a last fire that does not move back.
func (s *Schedule) unchanged() item.Condition {
	if s.Version == 1 {
		return item.Condition{Text: "attribute_not_exists(#pk)"}
	}
	return item.Condition{
		Text:   "#sq = :was AND (attribute_not_exists(#lf) OR #lf <= :fired)",
		Values: item.Item{":was": item.Num(s.Version - 1), ":fired": item.Num(int64(s.LastFire))},
	}
}

// replacement returns the update that stores raw and keeps unknown attributes.
func replacement(raw item.Item) (expression string, values item.Item) {
	var set, remove []string
	values = item.Item{}
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

func (s *Schedule) Put() (*item.Update, error) {
	raw, err := Marshal(s)
	if err != nil {
		return nil, err
	}
	expression, values := replacement(raw)
	return &item.Update{
		Key:        item.KeyOf(raw),
		Expression: expression,
		Values:     values,
		Condition:  s.unchanged(),
		Wrote:      func(now item.Item) bool { return item.TextOf(now["ci"]) == s.Change },
	}, nil
}

// Fired returns the write of the record after a later occurrence. A skip keeps the last run.
func (s *Schedule) Fired(fire Millis, runs []runlane.RunID) item.Write {
	after := maps.Clone(s.raw)
	after["sq"], after["lf"] = item.Num(s.Version+1), item.Num(int64(fire))
	if len(runs) > 0 {
		after["lr"] = item.Text(string(runs[len(runs)-1]))
	}
	return item.Write{Before: s.raw, After: after, Condition: item.Equal("sq", item.Num(s.Version))}
}

const (
	OccurrenceClaimed   = "claimed"
	occurrenceCompleted = "completed"
)

type Occurrence struct {
	PK         string             `dynamodbav:"pk"`
	SK         string             `dynamodbav:"sk"`
	Status     string             `dynamodbav:"st"`
	Token      string             `dynamodbav:"ct"` // stays after completion, so a repeated completion recognizes itself
	ClaimUntil Millis             `dynamodbav:"cu,omitempty"`
	Runs       []runlane.RunID    `dynamodbav:"rs,omitempty"`
	Skipped    runlane.SkipReason `dynamodbav:"wy,omitempty"`
	First      Millis             `dynamodbav:"f1,omitempty"` // of several skipped together
	Count      int                `dynamodbav:"cn,omitempty"`
	Expires    int64              `dynamodbav:"xt"` // Unix seconds, for TTL

	raw item.Item
}

func OccurrencePK(key lane.ScheduleKey) string {
	return key.Environment.Name() + ":sched:" + string(key.ScheduleID)
}

func OccurrenceSK(fire Millis) string { return fmt.Sprintf("%013d", fire) }

func UnmarshalOccurrence(raw item.Item) (*Occurrence, error) {
	o := &Occurrence{}
	if err := Unmarshal(raw, o); err != nil {
		return nil, err
	}
	o.raw = raw
	return o, nil
}

// ClaimOccurrence claims a fire time that is neither completed nor under a claim that still counts.
func ClaimOccurrence(c *lane.ClaimOccurrenceCommand, token string, kept time.Time) *item.Update {
	// A completed occurrence has no claim end.
	free := item.Condition{
		Text:   "attribute_not_exists(#pk) OR #cu <= :at",
		Values: item.Item{":at": item.Num(int64(ToMillis(c.At)))},
	}
	if !c.TrustUntil.IsZero() {
		free.Text += " OR #cu > :trust"
		free.Values[":trust"] = item.Num(int64(ToMillis(c.TrustUntil)))
	}
	return &item.Update{
		Key:        item.Key(OccurrencePK(c.ScheduleKey), OccurrenceSK(ToMillis(c.FireTime))),
		Expression: "SET #st = :st, #ct = :ct, #cu = :cu, #xt = :xt",
		Values: item.Item{
			":st": item.Text(OccurrenceClaimed),
			":ct": item.Text(token),
			":cu": item.Num(int64(ToMillis(c.ClaimUntil))),
			":xt": item.Num(kept.Unix()),
		},
		Condition: free,
		Wrote:     func(now item.Item) bool { return item.TextOf(now["ct"]) == token },
	}
}

func (o *Occurrence) Fire() Millis { return ParseMillis(o.SK) }

func (o *Occurrence) Completed() bool { return o.Status == occurrenceCompleted }

// Listed reports an occurrence that lists show: completed, and not expired.
func (o *Occurrence) Listed(now time.Time) bool {
	return o.Completed() && now.Before(time.Unix(o.Expires, 0))
}

func (o *Occurrence) Outcome(id runlane.ScheduleID) runlane.Occurrence {
	shown := runlane.Occurrence{
		ScheduleID: id,
		FireTime:   o.Fire().Time(),
		Skipped:    o.Skipped,
		First:      o.First.Time(),
		Count:      o.Count,
	}
	if len(o.Runs) > 0 {
		shown.RunID = o.Runs[len(o.Runs)-1]
	}
	return shown
}

// CompletedBy reports whether this completion already happened, and an error if it cannot. o may be nil.
func (o *Occurrence) CompletedBy(c *lane.CompleteOccurrenceCommand) (done bool, err error) {
	switch {
	case o == nil || o.Token != c.Token:
		return false, Conflict(runlane.ConflictScheduleOccurrence, "", "the occurrence is not under this claim")
	case !o.Completed():
		return false, nil
	case slices.Equal(o.Runs, c.RunIDs) && o.Skipped == c.Skipped && o.First == ToMillis(c.First) && o.Count == c.Count:
		return true, nil
	default:
		return false, Conflict(
			runlane.ConflictScheduleOccurrence,
			"",
			"the occurrence was completed with another result",
		)
	}
}

func (o *Occurrence) Completion(c *lane.CompleteOccurrenceCommand) (item.Write, error) {
	after := maps.Clone(o.raw)
	delete(after, "cu")
	after["st"] = item.Text(occurrenceCompleted)
	if c.Skipped != "" {
		after["wy"] = item.Text(string(c.Skipped))
		if c.Count != 0 {
			after["f1"], after["cn"] = item.Num(int64(ToMillis(c.First))), item.Num(int64(c.Count))
		}
	} else {
		runs, err := encode(reflect.ValueOf(c.RunIDs))
		if err != nil {
			return item.Write{}, &runlane.Error{Code: runlane.ErrInternal, Message: "runs do not marshal", Cause: err}
		}
		after["rs"] = runs
	}
	claimed := item.Equal("ct", item.Text(c.Token)).And(item.Equal("st", item.Text(OccurrenceClaimed)))
	return item.Write{Before: o.raw, After: after, Condition: claimed}, nil
}

func (o *Occurrence) CompleteAlone(completion *item.Write, token string) *item.Update {
	expression, values := completion.Change()
	return &item.Update{
		Key:        item.KeyOf(o.raw),
		Expression: expression,
		Values:     values,
		Condition:  completion.Condition,
		Before:     o.raw,
		Wrote: func(now item.Item) bool {
			return item.TextOf(now["st"]) == occurrenceCompleted && item.TextOf(now["ct"]) == token
		},
	}
}

func (o *Occurrence) CompletionProof(completion item.Write) item.Proof {
	values := item.Item{}
	for _, name := range []string{"st", "ct", "rs", "wy", "f1", "cn"} {
		values[name] = completion.After[name]
	}
	return item.Proof{Operation: "settle occurrence", Pk: o.PK, Sk: o.SK, Values: values}
}

func MalformedSchedule(cause error, format string, args ...any) error {
	return &runlane.Error{Code: runlane.ErrContractViolation, Message: fmt.Sprintf(format, args...), Cause: cause}
}
