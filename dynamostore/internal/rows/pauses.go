package rows

import (
	"encoding/json"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

// Pauses is the item with all pauses of an environment. Its version is its sequence.
type Pauses struct {
	Version int64  `dynamodbav:"sq"`
	Entries string `dynamodbav:"pe,omitempty"` // JSON
	Change  string `dynamodbav:"ci"`           // ID of the put, by which a repeated put recognizes itself
}

// ReadPauses returns the pauses of an item, none for nil.
func ReadPauses(raw item.Item) (p lane.Pauses, err error) {
	if raw == nil {
		return p, nil
	}
	var stored Pauses
	if err := Unmarshal(raw, &stored); err != nil {
		return p, err
	}
	p.Version = stored.Version
	if stored.Entries == "" {
		return p, nil
	}
	if err := json.Unmarshal([]byte(stored.Entries), &p.Entries); err != nil {
		return p, &runlane.Error{
			Code: runlane.ErrInvariantViolation, Message: "the stored pauses do not decode", Cause: err,
			Hint: "update this program",
		}
	}
	return p, nil
}

// PutPauses is the write of the next version.
func PutPauses(c *lane.PutPausesCommand, change string) (*item.Update, error) {
	u := &item.Update{
		Key:        item.Key(ConfigPK(c.Environment), PausesSK),
		Expression: "SET #sq = :sq, #pe = :pe, #ci = :ci",
		Values: item.Item{
			":sq": item.Num(c.Pauses.Version + 1), ":pe": item.Text(""), ":ci": item.Text(change),
		},
		Condition: item.Equal("sq", item.Num(c.Pauses.Version)),
		Wrote:     func(now item.Item) bool { return item.TextOf(now["ci"]) == change },
	}
	if c.Pauses.Version == 0 {
		u.Condition = item.Condition{Text: "attribute_not_exists(#pk)"}
	}
	if put := c.Pauses.AtRest(); len(put.Entries) > 0 {
		raw, err := json.Marshal(put.Entries)
		if err != nil {
			return nil, &runlane.Error{Code: runlane.ErrInternal, Message: "pauses do not marshal", Cause: err}
		}
		u.Values[":pe"] = item.Text(string(raw))
	}
	return u, nil
}
