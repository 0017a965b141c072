package dynamostore

import (
	"context"
	"errors"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

func (s *Store) readDeliveries(ctx context.Context, runs []*rows.Run) (map[runlane.RunID]*rows.Delivery, error) {
	index := map[string]*rows.Run{}
	var keys []item.Item
	for _, r := range runs {
		index[r.PK] = r
		keys = append(keys, item.Key(r.PK, rows.LogSK(r.DeliveryLog)))
	}
	entries := map[runlane.RunID]*rows.Delivery{}
	err := s.db.BatchGet(ctx, "read deliveries", keys, func(it item.Item) error {
		var log rows.Log
		if err := rows.Unmarshal(it, &log); err != nil {
			return err
		}
		if r := index[log.PK]; r != nil && r.DeliveryIndex < len(log.Deliveries) {
			entries[r.Key().RunID] = &log.Deliveries[r.DeliveryIndex]
		}
		return nil
	})
	return entries, err
}

const (
	maxBulkTries = 3 // reads of a payload or output that the run item names
)

// GetRun implements lane.Storage.
func (s *Store) GetRun(ctx context.Context, key lane.RunKey) (*runlane.Run, error) {
	run, _, err := s.readWhole(ctx, key)
	if err == nil && run == nil {
		err = rows.NotFound(key)
	}
	return run, err
}

// readSnapshot returns the transition's run item, from memory if possible, or nil. The caller checks its sequence and
// creation.
func (s *Store) readSnapshot(ctx context.Context, t *lane.Transition) (*rows.Run, error) {
	if known := s.knownRun(t); known != nil {
		return known, nil
	}
	return s.readRun(ctx, t.Key())
}

// readAtSequence returns the run that a claim or a reservation expects, or nil if it changed.
func (s *Store) readAtSequence(ctx context.Context, t *lane.Transition) (*rows.Run, error) {
	run, err := s.readSnapshot(ctx, t)
	if err != nil || run == nil || !run.ExpectedBy(t) {
		return nil, err
	}
	return run, nil
}

func (s *Store) readRun(ctx context.Context, key lane.RunKey) (*rows.Run, error) {
	raw, err := s.db.Get(ctx, "read run", rows.RunPK(key), rows.RunSK)
	if err != nil || raw == nil {
		return nil, err
	}
	r, err := rows.UnmarshalRun(raw)
	if err == nil {
		s.snapshots.put(r.PK, r)
	}
	return r, err
}

// readWhole reads run and payload in one strong query, then a separate output and a long failure. It reads again if an
// item that the run names is not visible yet. Without a run the result is nil.
func (s *Store) readWhole(ctx context.Context, key lane.RunKey) (run *runlane.Run, current *rows.Run, err error) {
	for range maxBulkTries {
		if run, current, err = s.readOnce(ctx, key); !errors.Is(err, errReplaced) {
			return run, current, err
		}
	}
	return nil, nil, replaced(key.RunID)
}

func replaced(run runlane.RunID) error {
	return &runlane.Error{
		Code: runlane.ErrStorageUnavailable, RunID: run, Retryable: true,
		Message: "the run's payload was replaced during the read", Hint: "read again",
	}
}

// errReplaced reports that the separate payload is not that of the run item: another trigger replaced it.
var errReplaced = errors.New("the payload was replaced")

func (s *Store) readOnce(ctx context.Context, key lane.RunKey) (*runlane.Run, *rows.Run, error) {
	var current *rows.Run
	var payload item.Item
	err := s.db.Query(ctx, &ddb.Query{
		Operation: "read run", Where: "#pk = :pk AND #sk >= :from",
		Values: item.Item{":pk": item.Text(rows.RunPK(key)), ":from": item.Text(rows.PayloadSK)},
	}, func(it item.Item) (more bool, err error) {
		switch item.TextOf(it[item.SK]) {
		case rows.RunSK:
			current, err = rows.UnmarshalRun(it)
		case rows.PayloadSK:
			payload = it
		}
		return true, err
	})
	if err != nil || current == nil {
		return nil, nil, err
	}
	s.snapshots.put(current.PK, current)
	run := current.Projection()
	if run.Payload, err = s.bulk(
		ctx,
		current,
		current.PayloadPlace,
		current.Payload,
		rows.PayloadSK,
		payload,
	); err != nil {
		return nil, nil, err
	}
	if run.Output, err = s.bulk(ctx, current, current.OutputPlace, current.Output, rows.OutputSK, nil); err != nil {
		return nil, nil, err
	}
	run.Failure, err = s.wholeFailure(ctx, current)
	return run, current, err
}

// bulk is the payload or output of a run. read is its separate item if already read.
func (s *Store) bulk(
	ctx context.Context, r *rows.Run, p rows.Place, inlined []byte, sk string, read item.Item,
) ([]byte, error) {
	if !p.Separate() {
		if p == rows.Nowhere {
			return nil, nil
		}
		b, err := rows.Open(p, inlined)
		return slices.Clone(b), err
	}
	for try := 1; read == nil; try++ {
		if try > maxBulkTries {
			return nil, &runlane.Error{
				Code:      runlane.ErrStorageUnavailable,
				RunID:     r.Key().RunID,
				Message:   "the run's " + sk + " is announced but not visible",
				Retryable: true,
			}
		}
		var err error
		if read, err = s.db.Get(ctx, "read "+sk, r.PK, sk); err != nil {
			return nil, err
		}
	}
	var stored rows.Bulk
	if err := rows.Unmarshal(read, &stored); err != nil {
		return nil, err
	}
	if sk == rows.PayloadSK && r.PayloadCommit != "" && r.PayloadCommit != stored.Commit {
		return nil, errReplaced
	}
	return rows.Open(p, stored.Body)
}

// wholeFailure is the recorded failure: short ones are on the run item, others in their commit.
func (s *Store) wholeFailure(ctx context.Context, r *rows.Run) (runlane.Failure, error) {
	stub := runlane.Failure{Code: runlane.ErrorCode(r.FailureCode), Message: r.FailureMessage}
	if r.FailureLog == 0 {
		return stub, nil
	}
	log, err := s.readLog(ctx, r.Key(), r.FailureLog)
	if err != nil || log == nil {
		return stub, err
	}
	records, err := log.Records(r.Key(), runlane.QueueName(r.Queue), r.FailureLog)
	if err != nil {
		return stub, err
	}
	for _, record := range slices.Backward(records) {
		switch body := record.Body.(type) {
		case *runlane.RunFailed:
			return body.Failure, nil
		case *runlane.RunRetryScheduled:
			return body.Failure, nil
		}
	}
	return stub, nil
}

func (s *Store) readLog(ctx context.Context, key lane.RunKey, first int64) (*rows.Log, error) {
	raw, err := s.db.Get(ctx, "read log", rows.RunPK(key), rows.LogSK(first))
	if err != nil || raw == nil {
		return nil, err
	}
	log := &rows.Log{}
	return log, rows.Unmarshal(raw, log)
}

func (s *Store) readDelivery(ctx context.Context, key lane.RunKey, first int64, index int) (*rows.Delivery, error) {
	log, err := s.readLog(ctx, key, first)
	if err != nil || log == nil || index >= len(log.Deliveries) {
		return nil, err
	}
	return &log.Deliveries[index], nil
}

// GetRuns implements lane.Storage.
func (s *Store) GetRuns(ctx context.Context, q *lane.RunsQuery) ([]*runlane.Run, error) {
	if !q.WithoutPayload {
		return s.getWholeRuns(ctx, q)
	}
	items, err := s.readRuns(ctx, q.Environment, q.IDs)
	if err != nil {
		return nil, err
	}
	var runs []*runlane.Run
	for _, id := range q.IDs {
		if r := items[id]; r != nil {
			runs = append(runs, r.Projection())
		}
	}
	return runs, nil
}

func (s *Store) getWholeRuns(ctx context.Context, q *lane.RunsQuery) ([]*runlane.Run, error) {
	runs := make([]*runlane.Run, len(q.IDs))
	err := ddb.InParallel(ctx, q.IDs, func(ctx context.Context, i int, id runlane.RunID) (err error) {
		runs[i], _, err = s.readWhole(ctx, lane.RunKey{Environment: q.Environment, RunID: id})
		return err
	})
	return slices.DeleteFunc(runs, func(r *runlane.Run) bool { return r == nil }), err
}

// readRuns reads run items strongly, each once, in batches. It leaves out runs of a newer program: one of them must not
// stop the work on all others.
func (s *Store) readRuns(
	ctx context.Context, e runlane.Environment, ids []runlane.RunID,
) (map[runlane.RunID]*rows.Run, error) {
	keys := make([]item.Item, 0, len(ids))
	for _, id := range ids {
		keys = append(keys, item.Key(rows.RunPK(lane.RunKey{Environment: e, RunID: id}), rows.RunSK))
	}
	byID := map[runlane.RunID]*rows.Run{}
	err := s.db.BatchGet(ctx, "read runs", keys, func(it item.Item) error {
		if rows.Newer(it) {
			return nil
		}
		r, err := rows.UnmarshalRun(it)
		if err == nil {
			key := r.Key()
			s.snapshots.put(r.PK, r)
			byID[key.RunID] = r
		}
		return err
	})
	return byID, err
}
