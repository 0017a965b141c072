package sqlitelane

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
)

// schedule reads a schedule's record, or nil.
func (s *Storage) schedule(c *file.Conn, env int64, id runlane.ScheduleID) (*runlane.ScheduleRecord, error) {
	row, err := c.One("SELECT record FROM schedules WHERE env = ? AND id = ?", env, string(id))
	if err != nil || row == nil {
		return nil, err
	}
	r := &runlane.ScheduleRecord{}
	if err := json.Unmarshal([]byte(text(row[0])), r); err != nil {
		return nil, damagedRecord(string(id), err)
	}
	return r, nil
}

func (t *tx) putSchedule(env int64, r *runlane.ScheduleRecord) error {
	stored, err := json.Marshal(r)
	if err != nil {
		return &runlane.Error{Code: runlane.ErrInternal, Message: "a schedule's record does not marshal", Cause: err}
	}
	return t.Exec(`INSERT INTO schedules(env, id, record) VALUES(?, ?, ?)
		ON CONFLICT(env, id) DO UPDATE SET record = excluded.record`, env, string(r.ID), string(stored))
}

// PutSchedule implements [lane.Storage].
func (s *Storage) PutSchedule(ctx context.Context, c *lane.PutScheduleCommand) (*runlane.ScheduleRecord, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	var put runlane.ScheduleRecord
	err := s.write(ctx, func(t *tx) error {
		put = embedded.ScheduleAtRest(c.Record)
		env, err := s.names.find(t.Conn, c.Environment.Name())
		if err != nil {
			return err
		}
		known, err := s.schedule(t.Conn, env, put.ID)
		if err := cmp.Or(err, embedded.JudgeSchedule(known, &put)); err != nil {
			return err
		}
		if env, err = s.names.ensure(t.Tx, c.Environment.Name()); err != nil {
			return err
		}
		put.Version++
		return t.putSchedule(env, &put)
	})
	if err != nil {
		return nil, err
	}
	return &put, nil
}

// GetSchedule returns the record.
func (s *Storage) GetSchedule(ctx context.Context, key lane.ScheduleKey) (r *runlane.ScheduleRecord, err error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	if err := key.ScheduleID.Validate(); err != nil {
		return nil, err
	}
	err = s.read(ctx, true, func(c *file.Conn) error {
		env, err := s.names.known(c, key.Environment.Name())
		if err != nil {
			return err
		}
		if r, err = s.schedule(c, env, key.ScheduleID); err == nil && r == nil {
			err = embedded.ScheduleNotFound(key.ScheduleID)
		}
		return err
	})
	return r, err
}

// ListSchedules pages the records by ID.
func (s *Storage) ListSchedules(ctx context.Context, q *lane.PageQuery) (*runlane.Page[runlane.ScheduleRecord], error) {
	return listRecords[runlane.ScheduleRecord](ctx, s, "ListSchedules", q,
		"SELECT id, record FROM schedules WHERE env = ? AND id > ? ORDER BY id LIMIT ?")
}
