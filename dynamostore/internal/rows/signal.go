package rows

import (
	"maps"
	"strings"

	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

// SignalPrefix starts the sort keys of signals. It sorts before 'log:', see CallPrefix.
const SignalPrefix = "inbox:"

type Signal struct {
	PK     string `dynamodbav:"pk"`
	SK     string `dynamodbav:"sk"`
	Number int64  `dynamodbav:"nr"`
	At     Millis `dynamodbav:"at"`
	Place  Place  `dynamodbav:"pl,omitempty"`
	Body   []byte `dynamodbav:"bo,omitempty"`
	Commit string `dynamodbav:"ci"` // of the put
}

// InboxSpan is the key prefix of all signals of a name. Names have no ':'.
func InboxSpan(name string) string { return SignalPrefix + name + ":" }

// signalKeys is the size of a signal without its body, roughly.
const signalKeys = 250

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
		s.Place, s.Body = placeSeparately(c.Signal.Body, signalKeys)
	}
	return s, tooLarge("signal", " compressed", len(s.Body), maxStoredBytes, c.RunID)
}

func (s *Signal) Put() (item.Write, error) {
	raw, err := Marshal(s)
	return item.Write{After: raw, Condition: item.Absent}, err
}

func (s *Signal) Proof() item.Proof {
	return item.Proof{
		Operation: "settle signal", Pk: s.PK, Sk: s.SK, Values: item.Item{"ci": item.Text(s.Commit)},
	}
}

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

// Mailed requires the number of signals as read.
func Mailed(count int64) item.Condition {
	if count == 0 {
		return item.Condition{Text: "attribute_not_exists(#mb)"}
	}
	return item.Equal("mb", item.Num(count))
}

// Count returns the write that counts a signal which resumes nothing: the run is active, and began no wait since it was
// read. The sequence stays, so the run's owner is not disturbed.
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
