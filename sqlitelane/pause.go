package sqlitelane

import (
	"context"
	"encoding/json"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
)

// pauses reads the pauses of an environment.
func pauses(c *file.Conn, env int64) (p lane.Pauses, err error) {
	row, err := c.One("SELECT version, entries FROM pauses WHERE env = ?", env)
	if err != nil || row == nil {
		return p, err
	}
	p.Version = number(row[0])
	if entries := text(row[1]); entries != "" {
		if err := json.Unmarshal([]byte(entries), &p.Entries); err != nil {
			return p, damagedRecord("the pauses", err)
		}
	}
	return p, nil
}

// GetPauses implements [lane.Storage]. It is always exact.
func (s *Storage) GetPauses(ctx context.Context, q lane.PausesQuery) (p lane.Pauses, err error) {
	if err := embedded.Ended(ctx); err != nil {
		return p, err
	}
	err = s.read(ctx, false, func(c *file.Conn) error {
		env, err := s.names.known(c, q.Environment.Name())
		if err != nil || env == 0 {
			return err
		}
		p, err = pauses(c, env)
		return err
	})
	return p, err
}

// PutPauses implements [lane.Storage].
func (s *Storage) PutPauses(ctx context.Context, c *lane.PutPausesCommand) (version int64, err error) {
	if err := embedded.Ended(ctx); err != nil {
		return 0, err
	}
	if err := c.Validate(); err != nil {
		return 0, err
	}
	entries := ""
	if put := c.Pauses.AtRest(); len(put.Entries) > 0 {
		raw, err := json.Marshal(put.Entries)
		if err != nil {
			return 0, &runlane.Error{Code: runlane.ErrInternal, Message: "pauses do not marshal", Cause: err}
		}
		entries = string(raw)
	}
	err = s.write(ctx, func(t *tx) error {
		env, err := s.names.ensure(t.Tx, c.Environment.Name())
		if err != nil {
			return err
		}
		stored, err := pauses(t.Conn, env)
		if err != nil {
			return err
		}
		if stored.Version != c.Pauses.Version {
			return lane.PausesChanged(stored.Version, c)
		}
		version = stored.Version + 1
		return t.Exec(`INSERT INTO pauses(env, version, entries) VALUES(?, ?, ?)
			ON CONFLICT(env) DO UPDATE SET version = excluded.version, entries = excluded.entries`, env, version, entries)
	})
	return version, err
}
