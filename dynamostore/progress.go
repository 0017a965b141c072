package dynamostore

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// PutProgress implements lane.Storage: one transaction writes the note and checks the lease.
func (s *Store) PutProgress(ctx context.Context, key lane.RunKey, leaseToken string, p runlane.Progress) error {
	writes, err := rows.ProgressWrites(key, leaseToken, p)
	if err != nil {
		return err
	}
	failed, err := s.db.Transact(ctx, &ddb.Transaction{
		Operation: "put progress",
		Token:     randomID(),
		Version:   "sq",
		Writes:    writes,
	})
	for _, f := range failed {
		switch {
		case f.Index != 0:
		case f.Old == nil:
			return rows.NotFound(key)
		default:
			return rows.LeaseLost(key)
		}
	}
	return err
}

// GetProgress implements lane.Storage.
func (s *Store) GetProgress(ctx context.Context, key lane.RunKey) (runlane.Progress, error) {
	raw, err := s.db.Get(ctx, "read progress", rows.RunPK(key), rows.ProgressSK)
	if err != nil || raw == nil {
		return runlane.Progress{}, err
	}
	var note rows.Progress
	if err := rows.Unmarshal(raw, &note); err != nil {
		return runlane.Progress{}, err
	}
	return runlane.Progress{Attempt: note.Attempt, Note: note.Note, At: note.At.Time()}, nil
}
