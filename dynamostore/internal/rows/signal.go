package rows

import (
	"maps"
	"strings"

	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

// SignalPrefix begins the sort keys of what was sent to a run. It sorts before 'log:', so that a run is read without
// it, and pruning removes it with the rest.
const SignalPrefix = "inbox:"

// Signal is a signal beside a run.
type Signal struct {
	PK     string `dynamodbav:"pk"`
	SK     string `dynamodbav:"sk"`
	Number int64  `dynamodbav:"nr"`
	At     Millis `dynamodbav:"at"`
	Place  Place  `dynamodbav:"pl,omitempty"`
	Body   []byte `dynamodbav:"bo,omitempty"`
	Commit string `dynamodbav:"ci"` // that put it
}

// InboxSpan is the prefix of all signals of a name, which holds no ':'.
func InboxSpan(name string) string { return SignalPrefix + name + ":" }

// signalKeys is the size of a signal without its body, roughly.
const signalKeys = 250

// NewSignal is the item of a signal. A body that no item can hold is an error.
func NewSignal(c *lane.SignalCommand, commit string) (*Signal, error) {
	s := &Signal{
		PK:     RunPK(c.RunKey),
		SK:     InboxSpan(c.Signal.Name) + c.Signal.ID,
		Number: c.Signal.Number,
		At:     ToMillis(c.Signal.SentAt),
		Commit: commit,
	}
	if err := tooLarge("signal", "", len(c.Signal.Body), maxOpenedBytes, c.RunID); err != nil {
		return nil, err
	}
	if len(c.Signal.Body) > 0 {
		s.Place, s.Body = separate(c.Signal.Body, signalKeys)
	}
	return s, tooLarge("signal", " compressed", len(s.Body), maxStoredBytes, c.RunID)
}

// Put is the signal's part of a transaction.
func (s *Signal) Put() (item.Write, error) {
	raw, err := Marshal(s)
	return item.Write{After: raw, Condition: item.Absent}, err
}

// Proof shows that the signal was put by its transaction.
func (s *Signal) Proof() item.Proof {
	return item.Proof{
		Operation: "settle signal", Pk: s.PK, Sk: s.SK, Values: item.Item{"ci": item.Text(s.Commit)},
	}
}

// ReadSignal reads the item of a signal.
func ReadSignal(raw item.Item, bodies bool) (*lane.Signal, error) {
	var s Signal
	if err := Unmarshal(raw, &s); err != nil {
		return nil, err
	}
	name, id, _ := strings.Cut(strings.TrimPrefix(s.SK, SignalPrefix), ":")
	out := &lane.Signal{Name: name, ID: id, Number: s.Number, SentAt: s.At.Time()}
	var err error
	if bodies {
		out.Body, err = Open(s.Place, s.Body)
	}
	return out, err
}

// Mailed is the condition that a run has as many signals as were read.
func Mailed(count int64) item.Condition {
	if count == 0 {
		return item.Condition{Text: "attribute_not_exists(#mb)"}
	}
	return item.Equal("mb", item.Num(count))
}

// Count is the part of a transaction that counts a signal on an active run, which it resumes not: no wait is in force,
// or the one that was read. The sequence stays, so the run's owner is not disturbed.
func (r *Run) Count(c *lane.SignalCommand) item.Write {
	after := maps.Clone(r.Raw)
	after["mb"] = item.Num(c.Count + 1)
	condition := item.Equal("ca", item.Num(int64(ToMillis(c.CreatedAt)))).And(
		Mailed(c.Count),
		item.Condition{Text: "attribute_not_exists(#fi)"},
		item.Condition{
			Text:   "(attribute_not_exists(#ws) OR #ws <> #sq OR #ws = :seen)",
			Values: item.Item{":seen": item.Num(c.Wait)},
		},
	)
	return item.Write{Before: r.Raw, After: after, Condition: condition}
}
