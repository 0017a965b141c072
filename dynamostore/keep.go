package dynamostore

import (
	"context"
	"encoding/json"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// GetKeep implements lane.Storage: one strong read.
func (s *Store) GetKeep(ctx context.Context, e runlane.Environment) (*lane.KeepRecord, error) {
	record := &lane.KeepRecord{}
	raw, err := s.db.Get(ctx, "read keep", rows.ConfigPK(e), rows.KeepSK)
	if err != nil || raw == nil {
		return record, err
	}
	if err := json.Unmarshal([]byte(item.TextOf(raw["js"])), record); err != nil {
		return nil, &runlane.Error{
			Code: runlane.ErrInvariantViolation, Message: "the stored record of the removal of old runs does not decode",
			Hint: "update this program; if it is the newest, delete the item", Cause: err,
		}
	}
	return record, nil
}

// PutKeep implements lane.Storage: one plain write.
func (s *Store) PutKeep(ctx context.Context, c *lane.PutKeepCommand) error {
	if _, err := s.shardCounts(ctx, c.Environment); err != nil { // an environment of a newer format is left alone
		return err
	}
	text, err := json.Marshal(c.Record)
	if err != nil {
		return &runlane.Error{Code: runlane.ErrInternal, Message: "a record does not marshal", Cause: err}
	}
	_, _, err = s.db.Update(ctx, "put keep", &item.Update{
		Key:        item.Key(rows.ConfigPK(c.Environment), rows.KeepSK),
		Expression: "SET #js = :js",
		Values:     item.Item{":js": item.Text(string(text))},
	})
	return err
}
