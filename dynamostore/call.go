package dynamostore

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// BeginCall implements lane.Storage: one transaction writes the call and marks its run, under the lease.
func (s *Store) BeginCall(ctx context.Context, c *lane.CallCommand) (*lane.RunCall, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	r, err := s.readLeased(ctx, c)
	if err != nil {
		return nil, err
	}
	call := rows.NewCall(c, randomID())
	put, err := call.Put()
	if err != nil {
		return nil, err
	}
	lost, err := s.db.Transact(ctx, &ddb.Transaction{
		Operation: "begin call",
		Token:     call.Commit,
		Writes:    []item.Write{r.Calling(c), put},
		Proof:     call.Proof(),
	})
	if err != nil {
		return nil, err
	}
	if len(lost) == 0 {
		s.snapshots.put(r.PK, r.Called())
		return call.Call(), nil
	}
	if current := item.OldOf(lost, 0); current != nil || item.OldOf(lost, 1) == nil {
		if item.Number(current["ca"]) != int64(rows.ToMillis(c.CreatedAt)) {
			return nil, rows.NotFound(c.RunKey)
		}
		return nil, rows.LeaseLost(c.RunKey)
	}
	kept, err := rows.ReadCall(item.OldOf(lost, 1))
	if err != nil {
		return nil, err
	}
	return kept.Call(), nil
}

// readLeased returns the run under the command's lease, from memory if possible.
func (s *Store) readLeased(ctx context.Context, c *lane.CallCommand) (*rows.Run, error) {
	created := rows.ToMillis(c.CreatedAt)
	known, ok := s.snapshots.get(rows.RunPK(c.RunKey))
	if ok && known.LeaseToken == c.LeaseToken && known.CreatedAt == created {
		return known, nil
	}
	r, err := s.readRun(ctx, c.RunKey)
	switch {
	case err != nil:
		return nil, err
	case r == nil || r.CreatedAt != created:
		return nil, rows.NotFound(c.RunKey)
	case r.LeaseToken != c.LeaseToken:
		return nil, rows.LeaseLost(c.RunKey)
	}
	return r, nil
}

// ReadCalls implements lane.Storage. One read is enough for a run that has called none.
func (s *Store) ReadCalls(ctx context.Context, q *lane.CallQuery) (*lane.CallsRead, error) {
	r, err := s.readRun(ctx, q.RunKey)
	if err == nil && r == nil {
		err = rows.NotFound(q.RunKey)
	}
	if err != nil {
		return nil, err
	}
	read := &lane.CallsRead{Run: r.Projection(), NotificationPending: r.NotificationPending()}
	if r.Calls == 0 {
		return read, nil
	}
	if q.Name != "" {
		call, err := s.readCall(ctx, q.RunKey, r.CreatedAt, q.Name)
		if call != nil {
			read.Calls = append(read.Calls, *call.Call())
		}
		return read, err
	}
	err = s.db.Query(ctx, &ddb.Query{
		Operation: "read calls",
		Where:     "#pk = :pk AND #sk BETWEEN :from AND :until",
		Values: item.Item{
			":pk":    item.Text(r.PK),
			":from":  item.Text(rows.CallSpan(r.CreatedAt)),
			":until": item.Text(rows.CallSpan(r.CreatedAt) + item.BeyondKeys),
		},
	}, func(raw item.Item) (bool, error) {
		call, err := rows.ReadCall(raw)
		if err == nil {
			read.Calls = append(read.Calls, *call.Call())
		}
		return true, err
	})
	return read, err
}

func (s *Store) readCall(
	ctx context.Context, run lane.RunKey, createdAt rows.Millis, name string,
) (*rows.Call, error) {
	key := rows.CallKey(run, createdAt, name)
	raw, err := s.db.Get(ctx, "read call", item.TextOf(key[item.PK]), item.TextOf(key[item.SK]))
	if err != nil || raw == nil {
		return nil, err
	}
	return rows.ReadCall(raw)
}

// ListRunsToNotify implements lane.Storage.
func (s *Store) ListRunsToNotify(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return s.scanRefs(ctx, q, rows.Notifying)
}

// NotifyEnd implements lane.Storage: one transaction removes the marker, counts the end, and for the last end resumes
// the caller.
func (s *Store) NotifyEnd(ctx context.Context, c *lane.NotifyCommand) (*lane.Commit, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	end, err := s.readNotifiedEnd(ctx, c)
	if err != nil {
		return nil, err
	}
	if c.Resume == nil {
		return nil, s.countEnd(ctx, c, end)
	}
	t := &c.Resume.Transition
	before, err := s.readExpected(ctx, t)
	if err != nil {
		return nil, err
	}
	if err := t.Validate(); err != nil {
		return nil, err
	}
	commit, refused, err := s.commit(ctx, &rows.Change{
		Transition: t, Before: before, Initial: c.Resume.Outbox, Notification: end,
	})
	switch {
	case err != nil || refused == nil:
		return commit, err
	case refused.Run() == nil:
		return nil, c.AlreadyNotified()
	default:
		return nil, s.raceError(ctx, t, "", refused)
	}
}

// readNotifiedEnd reads the ended run and its call, and checks that they are as the command expects.
func (s *Store) readNotifiedEnd(ctx context.Context, c *lane.NotifyCommand) (*rows.NotifiedEnd, error) {
	r, err := s.readRun(ctx, c.RunKey)
	if err != nil {
		return nil, err
	}
	if r == nil || r.CreatedAt != rows.ToMillis(c.CreatedAt) || !r.NotificationPending() {
		return nil, c.AlreadyNotified()
	}
	end := &rows.NotifiedEnd{Ended: r}
	if c.To == nil {
		return end, nil
	}
	caller := lane.RunKey{Environment: c.Environment, RunID: c.To.RunID}
	end.Call, err = s.readCall(ctx, caller, rows.ToMillis(c.To.CreatedAt), c.To.Name)
	if err != nil {
		return nil, err
	}
	if end.Call == nil || end.Call.Ended != c.To.Ended || end.Call.Count != c.To.Count {
		return nil, c.AlreadyNotified()
	}
	return end, nil
}

// countEnd counts an end that resumes no run.
func (s *Store) countEnd(ctx context.Context, c *lane.NotifyCommand, end *rows.NotifiedEnd) error {
	writes := []item.Write{end.Ended.Notified()}
	if end.Call != nil {
		writes = append(writes, end.Call.Counted())
	}
	if end.Call != nil && c.To.Last() {
		caller, err := s.readRun(ctx, lane.RunKey{Environment: c.Environment, RunID: c.To.RunID})
		if err != nil {
			return err
		}
		if caller == nil {
			return c.AlreadyNotified()
		}
		writes = append(writes, caller.NotBegun(c.To))
	}
	lost, err := s.db.Transact(ctx, &ddb.Transaction{
		Operation: "notify end",
		Token:     randomID(),
		Writes:    writes,
		Version:   "sq",
		Proof:     end.Ended.NotifiedProof(),
	})
	if err == nil && len(lost) > 0 {
		err = c.AlreadyNotified()
	}
	return err
}
