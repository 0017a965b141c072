package sqlitelane

import (
	"cmp"
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
)

// PutProgress stores the last note of a run's owner.
func (s *Storage) PutProgress(ctx context.Context, key lane.RunKey, leaseToken string, p runlane.Progress) error {
	if err := embedded.Ended(ctx); err != nil {
		return err
	}
	return s.write(ctx, func(t *tx) error {
		_, e, err := t.run(key.Environment, key.RunID)
		if err := cmp.Or(err, embedded.JudgeProgress(e.known(), key.RunID, leaseToken)); err != nil {
			return err
		}
		return t.Exec(`INSERT INTO notes(run, attempt, at, note) VALUES(?, ?, ?, ?) ON CONFLICT(run) DO UPDATE
			SET attempt = excluded.attempt, at = excluded.at, note = excluded.note WHERE excluded.at >= notes.at`,
			e.n, int64(p.Attempt), int64(embedded.At(p.At)), p.Note)
	})
}

// GetProgress returns the last note.
func (s *Storage) GetProgress(ctx context.Context, key lane.RunKey) (p runlane.Progress, err error) {
	if err := embedded.Ended(ctx); err != nil {
		return runlane.Progress{}, err
	}
	err = s.read(ctx, true, func(c *file.Conn) error {
		env, err := s.names.known(c, key.Environment.Name())
		if err != nil {
			return err
		}
		row, err := c.One(`SELECT attempt, at, note FROM notes
			WHERE run = (SELECT n FROM runs WHERE env = ? AND id = ?)`, env, string(key.RunID))
		if err == nil && row != nil {
			p = runlane.Progress{
				Attempt: int(number(row[0])), At: embedded.Millis(number(row[1])).Time(), Note: text(row[2]),
			}
		}
		return err
	})
	return p, err
}
