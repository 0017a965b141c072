package sqlitelane

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

// owner returns the run that owns a key, or nil.
func owner(
	c *file.Conn, env int64, kind embedded.KeyKind, environment runlane.Environment, task runlane.TaskID, key string,
) (*entry, error) {
	if env == 0 || key == "" {
		return nil, nil
	}
	// The sums keep SQLite from planning the query again when a value changes.
	row, err := c.One(`SELECT runs.n, runs.queue, runs.id, runs.record FROM owners JOIN runs ON runs.n = owners.run
		WHERE owners.env = ? + 0 AND owners.kind = ? + 0 AND owners.task = ? AND owners.key = ?`,
		env, int64(kind), string(task), key)
	if err != nil || row == nil {
		return nil, err
	}
	r, err := record.Decode(runlane.Environment(environment.Name()), runlane.RunID(text(row[2])), blob(row[3]))
	if err != nil {
		return nil, err
	}
	return &entry{Record: r, n: number(row[0]), env: env, queue: number(row[1])}, nil
}

// asOwner returns the run as the owner of a key, none for nil.
func (e *entry) asOwner() embedded.Owner {
	if e == nil {
		return embedded.Owner{}
	}
	return embedded.Owner{ID: e.Run.ID, State: e.known(), Retention: e.Run.Retention}
}

func (t *tx) judgeOwners(env int64, p *prepared) error {
	return embedded.JudgeOwners(p.Transition, t.s.clock(), func(kind embedded.KeyKind, key string) (embedded.Owner, error) {
		holder, err := owner(t.Conn, env, kind, p.Projected.Environment, p.Projected.TaskID, key)
		return holder.asOwner(), err
	})
}

// own takes the keys of a new run. It may replace an expired owner.
func (t *tx) own(e *entry) error {
	for kind, key := range embedded.Keys(&e.Run) {
		err := t.Exec(`INSERT INTO owners(env, kind, task, key, run) VALUES(?, ?, ?, ?, ?)
			ON CONFLICT(env, kind, task, key) DO UPDATE SET run = excluded.run`,
			e.env, int64(kind), string(e.Run.TaskID), key, e.n)
		if err != nil {
			return err
		}
	}
	return nil
}

// disown frees the keys that a finished run does not retain. A key with a time to live stays; lookups check the time.
func (t *tx) disown(e *entry) error {
	if e.Run.IdempotencyKey != "" && !e.Retains(embedded.At(e.Run.FinishedAt)) {
		if err := t.release(e, embedded.IdempotencyKey, e.Run.IdempotencyKey); err != nil {
			return err
		}
	}
	if e.Run.SingletonKey != "" {
		return t.release(e, embedded.SingletonKey, e.Run.SingletonKey)
	}
	return nil
}

// release frees a key unless another run owns it.
func (t *tx) release(e *entry, kind embedded.KeyKind, key string) error {
	return t.Exec("DELETE FROM owners WHERE env = ? AND kind = ? AND task = ? AND key = ? AND run = ?",
		e.env, int64(kind), string(e.Run.TaskID), key, e.n)
}

// GetRunByIdempotencyKey returns the key's owner. It changes nothing.
func (s *Storage) GetRunByIdempotencyKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	return s.ownerOf(ctx, embedded.IdempotencyKey, key)
}

// GetRunBySingletonKey returns the active run that owns the key.
func (s *Storage) GetRunBySingletonKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	return s.ownerOf(ctx, embedded.SingletonKey, key)
}

func (s *Storage) ownerOf(
	ctx context.Context, kind embedded.KeyKind, key lane.OwnerKey,
) (run *runlane.Run, err error) {
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
		if err := embedded.FindOwner(holder.asOwner(), kind, now); err != nil {
			return err
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
		holder, err := owner(t.Conn, env, embedded.IdempotencyKey, key.Environment, key.TaskID, key.Key)
		if err != nil {
			return err
		}
		if err := embedded.JudgeReset(holder.asOwner(), now); err != nil {
			return err
		}
		return t.release(holder, embedded.IdempotencyKey, key.Key)
	})
}
