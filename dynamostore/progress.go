package dynamostore

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

const skProgress = "note"

// progressItem is the last note of a run, beside its history. It sorts before what is read with a run, and before the run item, like
// everything that pruning takes first.
type progressItem struct {
	PK      string `dynamodbav:"pk"`
	SK      string `dynamodbav:"sk"`
	At      millis `dynamodbav:"at"`
	Attempt int    `dynamodbav:"an"`
	Note    string `dynamodbav:"nt"`
}

// progressWrites are the note, and a check of the lease under which it is written. A note that was written later is not overwritten.
func progressWrites(key lane.RunKey, leaseToken string, p runlane.Progress) ([]member, error) {
	note, err := marshalItem(progressItem{PK: runPK(key), SK: skProgress, At: toMillis(p.At), Attempt: p.Attempt, Note: p.Note})
	if err != nil {
		return nil, err
	}
	run := itemKey(runPK(key), skRun)
	return []member{
		{before: run, after: run, condition: equal("lt", text(leaseToken)), check: true},
		{after: note, condition: condition{text: "attribute_not_exists(#pk) OR #at <= :at", values: item{":at": note["at"]}}},
	}, nil
}

// PutProgress implements lane.ProgressKeeper: the note, and a look at the lease in the same transaction.
func (s *Store) PutProgress(ctx context.Context, key lane.RunKey, leaseToken string, p runlane.Progress) error {
	writes, err := progressWrites(key, leaseToken, p)
	if err != nil {
		return err
	}
	failed, err := s.db.Transact(ctx, &Transaction{Operation: "put progress", Token: randomID(), Version: "sq", Writes: writes})
	for _, f := range failed {
		switch {
		case f.index != 0:
		case f.old == nil:
			return notFound(key)
		default:
			return leaseLost(key)
		}
	}
	return err
}

// GetProgress implements lane.ProgressKeeper.
func (s *Store) GetProgress(ctx context.Context, key lane.RunKey) (runlane.Progress, error) {
	raw, err := s.db.Get(ctx, "read progress", runPK(key), skProgress)
	if err != nil || raw == nil {
		return runlane.Progress{}, err
	}
	var note progressItem
	if err := unmarshalItem(raw, &note); err != nil {
		return runlane.Progress{}, err
	}
	return runlane.Progress{Attempt: note.Attempt, Note: note.Note, At: note.At.time()}, nil
}
