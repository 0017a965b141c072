package sqlitelane

import (
	"context"
	"encoding/json"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
)

// GetKeep returns where the removal of old runs stands.
func (s *Storage) GetKeep(ctx context.Context, e runlane.Environment) (*lane.KeepRecord, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	record := &lane.KeepRecord{}
	err := s.read(ctx, true, func(c *file.Conn) error {
		env, err := s.names.known(c, e.Name())
		if err != nil {
			return err
		}
		return c.Each("SELECT record FROM keeping WHERE env = ?", func(row []driverValue) (bool, error) {
			if err := json.Unmarshal([]byte(text(row[0])), record); err != nil {
				return false, damagedRecord("the removal of old runs", err)
			}
			return true, nil
		}, env)
	})
	if err != nil {
		return nil, err
	}
	return record, nil
}

// PutKeep stores where it stands.
func (s *Storage) PutKeep(ctx context.Context, c *lane.PutKeepCommand) error {
	if err := embedded.Ended(ctx); err != nil {
		return err
	}
	stored, err := json.Marshal(c.Record)
	if err != nil {
		return &runlane.Error{Code: runlane.ErrInternal, Message: "a record does not marshal", Cause: err}
	}
	return s.write(ctx, func(t *tx) error {
		env, err := s.names.ensure(t.Tx, c.Environment.Name())
		if err != nil {
			return err
		}
		return t.Exec(`INSERT INTO keeping(env, record) VALUES(?, ?)
			ON CONFLICT(env) DO UPDATE SET record = excluded.record`, env, string(stored))
	})
}
