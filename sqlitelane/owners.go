package sqlitelane

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

// The kinds of keys. The numbers are stored.
const (
	idempotency int64 = 1
	singleton   int64 = 2
)

var kindNames = map[int64]string{idempotency: "idempotency", singleton: "singleton"}

// owner returns the run that owns a key, or nil.
func owner(
	c *file.Conn, env, kind int64, environment runlane.Environment, task runlane.TaskID, key string,
) (*entry, error) {
	if env == 0 || key == "" {
		return nil, nil
	}
	// The sums keep SQLite from planning the query again when a value changes.
	row, err := c.One(`SELECT runs.n, runs.queue, runs.id, runs.record FROM owners JOIN runs ON runs.n = owners.run
		WHERE owners.env = ? + 0 AND owners.kind = ? + 0 AND owners.task = ? AND owners.key = ?`,
		env, kind, string(task), key)
	if err != nil || row == nil {
		return nil, err
	}
	r, err := record.Decode(runlane.Environment(environment.Name()), runlane.RunID(text(row[2])), blob(row[3]))
	if err != nil {
		return nil, err
	}
	return &entry{Record: r, n: number(row[0]), env: env, queue: number(row[1])}, nil
}

// judgeOwners refuses a new run if one of its keys has an owner, the idempotency key first. An import creates runs in
// the past, when a key may have had an owner that has expired since.
func (t *tx) judgeOwners(env int64, p *prepared) error {
	to := p.Projected
	holder, err := owner(t.Conn, env, idempotency, to.Environment, to.TaskID, to.IdempotencyKey)
	if err != nil {
		return err
	}
	if holder != nil && holder.Retains(max(t.s.clock(), embedded.At(p.Events[0].OccurredAt))) {
		return embedded.IdempotencyOwned(holder.Run.ID)
	}
	if holder, err = owner(t.Conn, env, singleton, to.Environment, to.TaskID, to.SingletonKey); err != nil {
		return err
	}
	if holder != nil {
		return embedded.SingletonOwned(holder.Run.ID)
	}
	return nil
}

// own takes the keys of a new run. It may replace an expired owner.
func (t *tx) own(e *entry) error {
	for kind, key := range map[int64]string{idempotency: e.Run.IdempotencyKey, singleton: e.Run.SingletonKey} {
		if key == "" {
			continue
		}
		err := t.Exec(`INSERT INTO owners(env, kind, task, key, run) VALUES(?, ?, ?, ?, ?)
			ON CONFLICT(env, kind, task, key) DO UPDATE SET run = excluded.run`,
			e.env, kind, string(e.Run.TaskID), key, e.n)
		if err != nil {
			return err
		}
	}
	return nil
}

// disown frees the keys that a finished run does not retain. A key with a time to live stays; lookups check the time.
func (t *tx) disown(e *entry) error {
	if e.Run.IdempotencyKey != "" && !e.Retains(embedded.At(e.Run.FinishedAt)) {
		if err := t.release(e, idempotency, e.Run.IdempotencyKey); err != nil {
			return err
		}
	}
	if e.Run.SingletonKey != "" {
		return t.release(e, singleton, e.Run.SingletonKey)
	}
	return nil
}

// release frees a key unless another run owns it.
func (t *tx) release(e *entry, kind int64, key string) error {
	return t.Exec("DELETE FROM owners WHERE env = ? AND kind = ? AND task = ? AND key = ? AND run = ?",
		e.env, kind, string(e.Run.TaskID), key, e.n)
}

// GetRunByIdempotencyKey returns the key's owner. It changes nothing.
func (s *Storage) GetRunByIdempotencyKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	return s.ownerOf(ctx, idempotency, key)
}

// GetRunBySingletonKey returns the active run that owns the key.
func (s *Storage) GetRunBySingletonKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	return s.ownerOf(ctx, singleton, key)
}

func (s *Storage) ownerOf(ctx context.Context, kind int64, key lane.OwnerKey) (run *runlane.Run, err error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	now := s.clock()
	err = s.read(ctx, true, func(c *file.Conn) error {
		env, err := s.names.known(c, key.Environment.Name())
		if err != nil {
			return err
		}
		holder, err := owner(c, env, kind, key.Environment, key.TaskID, key.Key)
		if err != nil {
			return err
		}
		if holder == nil || !holder.Retains(now) {
			return embedded.NoOwner(kindNames[kind])
		}
		run, err = holder.fullRun(c)
		return err
	})
	return run, err
}

// ResetIdempotencyKey frees the key of a finished run.
func (s *Storage) ResetIdempotencyKey(ctx context.Context, key lane.OwnerKey) error {
	if err := embedded.Ended(ctx); err != nil {
		return err
	}
	now := s.clock()
	return s.write(ctx, func(t *tx) error {
		env, err := s.names.find(t.Conn, key.Environment.Name())
		if err != nil {
			return err
		}
		holder, err := owner(t.Conn, env, idempotency, key.Environment, key.TaskID, key.Key)
		switch {
		case err != nil:
			return err
		case holder == nil || !holder.Retains(now):
			return embedded.NoOwner(kindNames[idempotency])
		}
		if err := embedded.JudgeReset(holder.known(), holder.Run.ID); err != nil {
			return err
		}
		return t.release(holder, idempotency, key.Key)
	})
}
