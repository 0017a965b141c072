package dynamostore

import (
	"context"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Bounds of reading.
const (
	maxBulkTries = 3 // readings of an announced payload or output
)

// GetRun implements lane.Storage.
func (s *Store) GetRun(ctx context.Context, key lane.RunKey) (*runlane.Run, error) {
	run, _, err := s.readWhole(ctx, key)
	if err == nil && run == nil {
		err = notFound(key)
	}
	return run, err
}

// snapshot is the run item at the given sequence, from a recent read or commit, else read now. It may be at another sequence:
// the caller judges. nil: there is no run.
func (s *Store) snapshot(ctx context.Context, key lane.RunKey, sequence int64) (*runItem, error) {
	if known, ok := s.snapshots.get(runPK(key)); ok && known.Sequence == sequence {
		return known, nil
	}
	return s.readRun(ctx, key)
}

func (s *Store) readRun(ctx context.Context, key lane.RunKey) (*runItem, error) {
	raw, err := s.db.Get(ctx, "read run", runPK(key), skRun)
	if err != nil || raw == nil {
		return nil, err
	}
	r, err := unmarshalRun(raw)
	if err == nil {
		s.snapshots.put(r.PK, r)
	}
	return r, err
}

// readWhole reads run and payload in one strong query, and what stands elsewhere: a separate output, a long failure. The run
// item says where they are; announced and not yet visible they are read again. nil: there is no run.
func (s *Store) readWhole(ctx context.Context, key lane.RunKey) (*runlane.Run, *runItem, error) {
	var current *runItem
	var payload item
	err := s.db.Query(ctx, &Query{
		Operation: "read run", Where: "#pk = :pk AND #sk >= :from", Values: item{":pk": text(runPK(key)), ":from": text(skPayload)},
	}, func(it item) (more bool, err error) {
		switch textOf(it[attrSK]) {
		case skRun:
			current, err = unmarshalRun(it)
		case skPayload:
			payload = it
		}
		return true, err
	})
	if err != nil || current == nil {
		return nil, nil, err
	}
	s.snapshots.put(current.PK, current)
	run := current.run()
	if run.Payload, err = s.bulk(ctx, current, current.PayloadPlace, current.Payload, skPayload, payload); err != nil {
		return nil, nil, err
	}
	if run.Output, err = s.bulk(ctx, current, current.OutputPlace, current.Output, skOutput, nil); err != nil {
		return nil, nil, err
	}
	run.Failure, err = s.wholeFailure(ctx, current)
	return run, current, err
}

// bulk is the payload or output of a run. read is its item where it was read already.
func (s *Store) bulk(ctx context.Context, r *runItem, p place, inlined []byte, sk string, read item) ([]byte, error) {
	if !p.separate() {
		if p == nowhere {
			return nil, nil
		}
		b, err := open(p, inlined)
		return slices.Clone(b), err
	}
	for try := 1; read == nil; try++ {
		if try > maxBulkTries {
			return nil, &runlane.Error{
				Code: runlane.ErrStorageUnavailable, RunID: r.key().RunID, Message: "the run's " + sk + " is announced but not visible", Retryable: true,
			}
		}
		var err error
		if read, err = s.db.Get(ctx, "read "+sk, r.PK, sk); err != nil {
			return nil, err
		}
	}
	var stored bulkItem
	if err := unmarshalItem(read, &stored); err != nil {
		return nil, err
	}
	return open(p, stored.Body)
}

// wholeFailure is the failure as it was recorded: on the run item when it is short, else from its commit.
func (s *Store) wholeFailure(ctx context.Context, r *runItem) (runlane.Failure, error) {
	stub := runlane.Failure{Code: runlane.ErrorCode(r.FailureCode), Message: r.FailureMessage}
	if r.FailureLog == 0 {
		return stub, nil
	}
	log, err := s.readLog(ctx, r.key(), r.FailureLog)
	if err != nil || log == nil {
		return stub, err
	}
	records, err := log.records(r.key(), runlane.QueueName(r.Queue), r.FailureLog)
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

func (s *Store) readLog(ctx context.Context, key lane.RunKey, first int64) (*logItem, error) {
	raw, err := s.db.Get(ctx, "read log", runPK(key), logSK(first))
	if err != nil || raw == nil {
		return nil, err
	}
	log := &logItem{}
	return log, unmarshalItem(raw, log)
}

func (s *Store) readDelivery(ctx context.Context, key lane.RunKey, first int64, index int) (*delivery, error) {
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
			runs = append(runs, r.run())
		}
	}
	return runs, nil
}

func (s *Store) getWholeRuns(ctx context.Context, q *lane.RunsQuery) ([]*runlane.Run, error) {
	runs := make([]*runlane.Run, len(q.IDs))
	err := InParallel(ctx, q.IDs, func(ctx context.Context, i int, id runlane.RunID) (err error) {
		runs[i], _, err = s.readWhole(ctx, lane.RunKey{Environment: q.Environment, RunID: id})
		return err
	})
	return slices.DeleteFunc(runs, func(r *runlane.Run) bool { return r == nil }), err
}

// readRuns reads run items strongly, each once, in batches. Runs that a newer program wrote are left out: a scan passes them over as it
// does stale rows, since one of them must not stop what is to be done about all others.
func (s *Store) readRuns(ctx context.Context, e runlane.Environment, ids []runlane.RunID) (map[runlane.RunID]*runItem, error) {
	keys := make([]item, 0, len(ids))
	for _, id := range ids {
		keys = append(keys, itemKey(runPK(lane.RunKey{Environment: e, RunID: id}), skRun))
	}
	found := map[runlane.RunID]*runItem{}
	err := s.db.BatchGet(ctx, "read runs", keys, func(it item) error {
		if newer(it) {
			return nil
		}
		r, err := unmarshalRun(it)
		if err == nil {
			key := r.key()
			s.snapshots.put(r.PK, r)
			found[key.RunID] = r
		}
		return err
	})
	return found, err
}

// InspectRun implements lane.Storage.
func (s *Store) InspectRun(ctx context.Context, q *lane.InspectQuery) (*lane.Inspection, error) {
	run, current, err := s.readWhole(ctx, q.RunKey)
	if err != nil {
		return nil, err
	}
	if run == nil {
		return nil, notFound(q.RunKey)
	}
	inspection := &lane.Inspection{Run: run}
	if q.Queue.Bounded() {
		taken, err := s.slots(ctx, current.partition())
		if err != nil {
			return nil, err
		}
		for _, slot := range taken {
			inspection.Holders = append(inspection.Holders, slot.Run)
		}
	}
	if current.DeliveryLog == 0 {
		return inspection, nil
	}
	row, err := s.readDelivery(ctx, q.RunKey, current.DeliveryLog, current.DeliveryIndex)
	if err != nil || row == nil {
		return inspection, err
	}
	m := row.message(q.RunKey, run.Queue, current.deliveryID())
	inspection.Delivery = &m
	if row.status() == lane.OutboxPublished && run.Status == runlane.StatusQueued {
		inspection.RedeliverAt = row.redeliverAt().time()
	}
	return inspection, nil
}
