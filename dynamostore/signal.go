package dynamostore

import (
	"context"
	"slices"

	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// ReadMail implements lane.Storage. It reads the run item with its count before the signals, or with an ID both in one
// request.
func (s *Store) ReadMail(ctx context.Context, q *lane.MailQuery) (*lane.Mail, error) {
	if q.ID != "" {
		return s.readMailOf(ctx, q)
	}
	r, err := s.readRun(ctx, q.RunKey)
	if err == nil && r == nil {
		err = rows.NotFound(q.RunKey)
	}
	if err != nil {
		return nil, err
	}
	mail := &lane.Mail{Run: r.Projection(), Count: r.Signals}
	if r.Signals == 0 {
		return mail, nil
	}
	found := make([]*lane.Signal, len(q.Names))
	err = ddb.InParallel(ctx, q.Names, func(ctx context.Context, i int, name string) error {
		raw, err := s.firstSignal(ctx, r.PK, name)
		if err == nil && raw != nil {
			found[i], err = rows.ReadSignal(raw, !q.WithoutBodies)
		}
		return err
	})
	for _, signal := range slices.DeleteFunc(found, func(s *lane.Signal) bool { return s == nil }) {
		mail.Signals = append(mail.Signals, *signal)
	}
	return mail, err
}

// firstSignal is the first signal sent under a name, or nil. It reads all signals of the name, usually one: keys are in
// the order of IDs.
func (s *Store) firstSignal(ctx context.Context, pk, name string) (first item.Item, err error) {
	err = s.db.Query(ctx, &ddb.Query{
		Operation: "read signals",
		Where:     "#pk = :pk AND #sk BETWEEN :from AND :until",
		Values: item.Item{
			":pk":    item.Text(pk),
			":from":  item.Text(rows.InboxSpan(name)),
			":until": item.Text(rows.InboxSpan(name) + item.BeyondKeys),
		},
	}, func(raw item.Item) (more bool, err error) {
		number := item.Number(raw["nr"])
		if first == nil || number < item.Number(first["nr"]) {
			first = raw
		}
		return number > 1, nil // number 1 is the first
	})
	return first, err
}

func (s *Store) readMailOf(ctx context.Context, q *lane.MailQuery) (*lane.Mail, error) {
	pk := rows.RunPK(q.RunKey)
	keys := []item.Item{item.Key(pk, rows.RunSK)}
	for _, name := range q.Names {
		keys = append(keys, item.Key(pk, rows.InboxSpan(name)+q.ID))
	}
	mail, found := &lane.Mail{}, map[string]*lane.Signal{}
	err := s.db.BatchGet(ctx, "read signals", keys, func(raw item.Item) error {
		if item.TextOf(raw[item.SK]) == rows.RunSK {
			r, err := rows.UnmarshalRun(raw)
			if err != nil {
				return err
			}
			s.snapshots.put(r.PK, r)
			mail.Run, mail.Count = r.Projection(), r.Signals
			return nil
		}
		signal, err := rows.ReadSignal(raw, !q.WithoutBodies)
		if err == nil {
			found[signal.Name] = signal
		}
		return err
	})
	if err == nil && mail.Run == nil {
		err = rows.NotFound(q.RunKey)
	}
	if err != nil {
		return nil, err
	}
	for _, name := range q.Names {
		if signal := found[name]; signal != nil {
			mail.Signals = append(mail.Signals, *signal)
		}
	}
	return mail, nil
}

// SendSignal implements lane.Storage: one transaction stores the signal and counts it, or commits the run that it
// resumes.
func (s *Store) SendSignal(ctx context.Context, c *lane.SignalCommand) (*lane.Commit, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Resume == nil {
		return nil, s.putSignal(ctx, c)
	}
	t := &c.Resume.Transition
	before, err := s.readExpected(ctx, t)
	if err != nil {
		return nil, err
	}
	if err := t.Validate(); err != nil {
		return nil, err
	}
	count := c.Count
	change := &rows.Change{
		Transition: t,
		Before:     before,
		Initial:    c.Resume.Outbox,
		Signal:     c,
		Looked:     &count,
	}
	commit, refused, err := s.commit(ctx, change)
	switch {
	case err != nil || refused == nil:
		return commit, err
	case refused.Signal() != nil:
		return nil, c.Exists()
	}
	if current := refused.Run(); current != nil && change.Mailed(current) &&
		item.Number(current["sq"]) == t.ExpectedSequence {
		return nil, lane.Moved(c.RunID)
	}
	return nil, s.raceError(ctx, t, "", refused)
}

func (s *Store) putSignal(ctx context.Context, c *lane.SignalCommand) error {
	r, err := s.readCounted(ctx, c)
	if err != nil {
		return err
	}
	signal, err := rows.NewSignal(c, randomID())
	if err != nil {
		return err
	}
	put, err := signal.Put()
	if err != nil {
		return err
	}
	lost, err := s.db.Transact(ctx, &ddb.Transaction{
		Operation: "send signal",
		Token:     signal.Commit,
		Writes:    []item.Write{r.Count(c), put},
		Version:   "mb",
		Proof:     signal.Proof(),
	})
	switch {
	case err != nil:
		return err
	case len(lost) == 0:
		return nil
	case item.OldOf(lost, 1) != nil:
		return c.Exists()
	default:
		return lane.Moved(c.RunID)
	}
}

// readCounted returns the run with the number of signals that the command expects, from memory if possible.
func (s *Store) readCounted(ctx context.Context, c *lane.SignalCommand) (*rows.Run, error) {
	expected := func(r *rows.Run) bool {
		return r != nil && r.Signals == c.Count && r.CreatedAt == rows.ToMillis(c.CreatedAt)
	}
	if known, ok := s.snapshots.get(rows.RunPK(c.RunKey)); ok && expected(known) {
		return known, nil
	}
	r, err := s.readRun(ctx, c.RunKey)
	if err != nil {
		return nil, err
	}
	if !expected(r) {
		return nil, lane.Moved(c.RunID)
	}
	return r, nil
}
