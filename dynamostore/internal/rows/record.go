package rows

import (
	"fmt"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

// RecordPrefix starts the sort keys of records, and LinesPrefix those of what attempts logged, which no attempt reads.
// Both sort before 'log:', see CallPrefix.
const (
	RecordPrefix = "kept:"
	LinesPrefix  = "lines:"
)

// Kept is a record of a run. The run's creation is in its key, so a new run under a used ID finds none.
type Kept struct {
	PK      string `dynamodbav:"pk"`
	SK      string `dynamodbav:"sk"`
	At      Millis `dynamodbav:"at"`
	Kind    string `dynamodbav:"kd"`
	Attempt int    `dynamodbav:"an"`
	Started Millis `dynamodbav:"st,omitempty"`
	Type    string `dynamodbav:"ty,omitempty"`
	Place   Place  `dynamodbav:"pl,omitempty"`
	Result  []byte `dynamodbav:"bo,omitempty"`
}

// RecordSpan begins the sort keys of a run's records, or of its logs.
func RecordSpan(createdAt Millis, logs bool) string {
	prefix := RecordPrefix
	if logs {
		prefix = LinesPrefix
	}
	return fmt.Sprintf("%s%013d:", prefix, createdAt)
}

// keptKeys is the size of a record without its result, roughly.
const keptKeys = 200

// NewKept returns the item of a record, or an error if no item can hold the result.
func NewKept(c *lane.KeepCommand) (*Kept, error) {
	r := &c.Record
	k := &Kept{
		PK:      RunPK(c.RunKey),
		SK:      RecordSpan(ToMillis(c.CreatedAt), r.Kind == runlane.StepKindLog) + r.Name,
		At:      ToMillis(r.At),
		Kind:    string(r.Kind),
		Attempt: r.Attempt,
		Started: ToMillis(r.StartedAt),
		Type:    r.Type,
	}
	if len(r.Result) == 0 {
		return k, nil
	}
	if len(r.Result) > maxOpenedBytes {
		return nil, c.TooLarge("", len(r.Result), maxOpenedBytes)
	}
	k.Place, k.Result = placeSeparately(r.Result, keptKeys)
	if len(k.Result) > maxStoredBytes {
		return nil, c.TooLarge(" compressed", len(k.Result), maxStoredBytes)
	}
	return k, nil
}

var keptAttributes = []string{"at", "kd", "an", "st", "ty", "pl", "bo"}

// Put returns the plain write of the record. Without replace there must be no record; with it, no later one.
func (k *Kept) Put(replace bool) (*item.Update, error) {
	raw, err := Marshal(k)
	if err != nil {
		return nil, err
	}
	set, remove := make([]string, 0, len(keptAttributes)), []string(nil)
	u := &item.Update{Key: item.KeyOf(raw), Values: item.Item{}, Condition: item.Absent}
	for _, name := range keptAttributes {
		if v, there := raw[name]; there {
			set = append(set, "#"+name+" = :"+name)
			u.Values[":"+name] = v
		} else {
			remove = append(remove, "#"+name)
		}
	}
	u.Expression = "SET " + strings.Join(set, ", ")
	if replace {
		if len(remove) > 0 { // attributes that only the replaced record has
			u.Expression += " REMOVE " + strings.Join(remove, ", ")
		}
		u.Condition.Text += " OR #kd = :kd AND (#an < :an OR #an = :an AND #at <= :at)"
	}
	return u, nil
}

func (k *Kept) Record() (*lane.StepRecord, error) {
	result, err := Open(k.Place, k.Result)
	if err != nil {
		return nil, err
	}
	_, name, _ := strings.Cut(k.SK, ":") // the prefix, then the run's creation
	_, name, _ = strings.Cut(name, ":")
	return &lane.StepRecord{
		Name:      name,
		Kind:      runlane.StepKind(k.Kind),
		Attempt:   k.Attempt,
		StartedAt: k.Started.Time(),
		At:        k.At.Time(),
		Type:      k.Type,
		Result:    result,
	}, nil
}
