package memlane_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/linear"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

func TestStorage_Linearizability(t *testing.T) {
	t.Parallel()
	linear.Run(t, linear.Harness{
		New:     func(testing.TB) []lane.Storage { return []lane.Storage{memlane.NewStorage(nil)} },
		Options: &linear.Options{Operations: 24, Keys: 32},
	})
}

// liar is sound but for one thing, and that in one of so many calls only.
type liar struct {
	*memlane.Storage
	often int

	mu    sync.Mutex
	calls int
}

func (l *liar) Unwrap() lane.Storage { return l.Storage }

func (l *liar) now() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	return l.calls%l.often == 0
}

// sharesKeys lets a second run have a key.
type sharesKeys struct{ *liar }

func (s sharesKeys) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	if created, ok := c.Events[0].Body.(*runlane.RunCreated); ok && s.now() {
		other, projected, body := *c, *c.Projected, *created
		body.SingletonKey += string(projected.ID) // another key, so that no run is in the way
		if projected.SingletonKey == "" {
			body.SingletonKey = ""
			body.IdempotencyKey += string(projected.ID)
		}
		projected.SingletonKey, projected.IdempotencyKey = body.SingletonKey, body.IdempotencyKey
		other.Projected, other.Events = &projected, slices.Clone(c.Events)
		other.Events[0].Body = &body
		c = &other
	}
	return s.liar.AppendRunEvents(ctx, c)
}

// forgets says that it wrote, and did not.
type forgets struct{ *liar }

func (s forgets) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	if s.now() {
		return &lane.Commit{Run: c.Projected}, nil
	}
	return s.liar.AppendRunEvents(ctx, c)
}

// keepsKeys says that it reset a key, and did not.
type keepsKeys struct{ *liar }

func (s keepsKeys) ResetIdempotencyKey(ctx context.Context, key lane.OwnerKey) error {
	if run, err := s.GetRunByIdempotencyKey(ctx, key); err == nil && run.Status.Terminal() && s.now() {
		return nil
	}
	return s.liar.ResetIdempotencyKey(ctx, key)
}

// looksBack reads what was true a moment ago.
type looksBack struct {
	*liar
	old map[lane.RunKey]*runlane.Run
}

func (s looksBack) GetRun(ctx context.Context, key lane.RunKey) (*runlane.Run, error) {
	back := s.now()
	run, err := s.liar.GetRun(ctx, key)
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := s.old[key]
	if known && back {
		return before, nil
	}
	if err == nil && !known {
		s.old[key] = run
	}
	return run, err
}

// unfenced lets an owner write that was replaced.
type unfenced struct{ *liar }

func (s unfenced) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	open := *c
	open.LeaseToken = ""
	return s.liar.AppendRunEvents(ctx, &open)
}

// twoOwners gives a run to the second who comes for it as well.
type twoOwners struct{ *liar }

func (s twoOwners) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	got, err := s.liar.ClaimRunLease(ctx, c)
	if err == nil && got.Outcome == lane.LostSequence && s.now() {
		return &lane.Acquisition{Outcome: lane.Acquired, Commit: &lane.Commit{Run: c.Projected}}, nil
	}
	return got, err
}

// claimsEarly takes a lease for over that lasts a little longer.
type claimsEarly struct{ *liar }

func (s claimsEarly) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	early := *c
	early.At = c.At.Add(time.Hour)
	return s.liar.ClaimRunLease(ctx, &early)
}

// oneTooMany has a slot more than the limit says.
type oneTooMany struct{ *liar }

func (s oneTooMany) ReserveRunDispatch(ctx context.Context, c *lane.ReserveCommand) (*lane.Acquisition, error) {
	wide := *c
	wide.Queue.Concurrency++
	return s.liar.ReserveRunDispatch(ctx, &wide)
}

// leaksSlots does not free the slot of a run that ends.
type leaksSlots struct{ *liar }

func (s leaksSlots) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	if c.Projected.Status == runlane.StatusSucceeded && s.now() {
		return &lane.Commit{Run: c.Projected}, nil
	}
	return s.liar.AppendRunEvents(ctx, c)
}

// sharesRows gives one claim to two publishers.
type sharesRows struct {
	*liar
	given map[string][]lane.OutboxMessage
}

func (s sharesRows) ClaimOutboxMessages(ctx context.Context, c *lane.ClaimOutboxCommand) ([]lane.OutboxMessage, error) {
	rows, err := s.liar.ClaimOutboxMessages(ctx, c)
	again := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && len(rows) > 0 {
		s.given[c.IDs[0]] = rows
	}
	if err == nil && len(rows) == 0 && again {
		return s.given[c.IDs[0]], nil
	}
	return rows, err
}

// marksForAnybody says that a mark counted whose claim was over.
type marksForAnybody struct{ *liar }

func (s marksForAnybody) MarkOutboxMessagesFailed(ctx context.Context, c *lane.MarkFailedCommand) error {
	err := s.liar.MarkOutboxMessagesFailed(ctx, c)
	if errors.Is(err, runlane.ConflictOutboxClaim) && s.now() {
		return nil
	}
	return err
}

// tellsOwn answers with the caller's record, whichever is kept.
type tellsOwn struct{ *liar }

func (s tellsOwn) KeepRecord(ctx context.Context, c *lane.KeepCommand) (*lane.StepRecord, error) {
	kept, err := s.liar.KeepRecord(ctx, c)
	if err == nil && s.now() {
		return lane.RecordAtRest(&c.Record), nil
	}
	return kept, err
}

// replacesAll lets a late worker overwrite a checkpoint.
type replacesAll struct{ *liar }

func (s replacesAll) KeepRecord(ctx context.Context, c *lane.KeepCommand) (*lane.StepRecord, error) {
	late := *c
	if c.Replace {
		late.Record.Attempt, late.Record.At = 9, c.Record.At.Add(time.Hour)
	}
	return s.liar.KeepRecord(ctx, &late)
}

// sendsTwice tells who sends an id again that it was taken.
type sendsTwice struct{ *liar }

func (s sendsTwice) SendSignal(ctx context.Context, c *lane.SignalCommand) (*lane.Commit, error) {
	commit, err := s.liar.SendSignal(ctx, c)
	if errors.Is(err, runlane.ConflictSignal) && s.now() {
		return nil, nil
	}
	return commit, err
}

// losesSignals tells who sends that it was taken, and keeps nothing.
type losesSignals struct{ *liar }

func (s losesSignals) SendSignal(ctx context.Context, c *lane.SignalCommand) (*lane.Commit, error) {
	if s.now() {
		return nil, nil
	}
	return s.liar.SendSignal(ctx, c)
}

// losesEnds tells an end and does not count it.
type losesEnds struct{ *liar }

func (s losesEnds) TellEnd(ctx context.Context, c *lane.TellCommand) (*lane.Commit, error) {
	if s.now() {
		lost := *c
		lost.To = nil
		c = &lost
	}
	return s.liar.TellEnd(ctx, c)
}

// tellsTwice says that it told an end that was told before.
type tellsTwice struct{ *liar }

func (s tellsTwice) TellEnd(ctx context.Context, c *lane.TellCommand) (*lane.Commit, error) {
	commit, err := s.liar.TellEnd(ctx, c)
	if errors.Is(err, runlane.ConflictWait) && s.now() {
		return nil, nil
	}
	return commit, err
}

// changesAny changes whichever version of a flow there is.
type changesAny struct{ *liar }

func (s changesAny) PutFlow(ctx context.Context, c *lane.FlowCommand) (*lane.FlowRecord, error) {
	late := *c
	f, err := s.GetFlow(ctx, &lane.FlowRead{FlowKey: lane.FlowKey{Environment: c.Environment, FlowID: c.Flow.ID}})
	if err == nil && c.Flow.Version > 0 {
		late.Flow.Version = f.Version
	}
	return s.liar.PutFlow(ctx, &late)
}

// makesAlways makes runs of flows that are closed, or in another round.
type makesAlways struct{ *liar }

func (s makesAlways) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	free := *c
	free.Flow = nil
	return s.liar.AppendRunEvents(ctx, &free)
}

// The check is worth what it catches. Each storage is broken in one way, and the history of the subject beside it shows it.
func TestStorage_Linearizability_CatchesEachLie(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		often    int
		lies     func(l *liar) lane.Storage
		subjects []linear.Subject
	}{
		"changes any":   {1, func(l *liar) lane.Storage { return changesAny{l} }, []linear.Subject{linear.Flows}},
		"makes always":  {1, func(l *liar) lane.Storage { return makesAlways{l} }, []linear.Subject{linear.Flows}},
		"sends twice":   {10, func(l *liar) lane.Storage { return sendsTwice{l} }, []linear.Subject{linear.Mail}},
		"loses ends":    {10, func(l *liar) lane.Storage { return losesEnds{l} }, []linear.Subject{linear.Ends}},
		"tells twice":   {10, func(l *liar) lane.Storage { return tellsTwice{l} }, []linear.Subject{linear.Ends}},
		"loses signals": {10, func(l *liar) lane.Storage { return losesSignals{l} }, []linear.Subject{linear.Mail}},
		"shares keys":   {10, func(l *liar) lane.Storage { return sharesKeys{l} }, []linear.Subject{linear.Singleton, linear.Idempotency}},
		"forgets writes": {10, func(l *liar) lane.Storage { return forgets{l} }, []linear.Subject{
			linear.Singleton, linear.Idempotency, linear.Lease,
		}},
		"keeps keys":        {2, func(l *liar) lane.Storage { return keepsKeys{l} }, []linear.Subject{linear.Idempotency}},
		"looks back":        {10, func(l *liar) lane.Storage { return looksBack{l, map[lane.RunKey]*runlane.Run{}} }, []linear.Subject{linear.Lease}},
		"does not fence":    {1, func(l *liar) lane.Storage { return unfenced{l} }, []linear.Subject{linear.Lease}},
		"has two owners":    {5, func(l *liar) lane.Storage { return twoOwners{l} }, []linear.Subject{linear.Lease}},
		"claims early":      {1, func(l *liar) lane.Storage { return claimsEarly{l} }, []linear.Subject{linear.Lease}},
		"a slot too many":   {1, func(l *liar) lane.Storage { return oneTooMany{l} }, []linear.Subject{linear.Slots}},
		"leaks slots":       {5, func(l *liar) lane.Storage { return leaksSlots{l} }, []linear.Subject{linear.Slots}},
		"shares rows":       {5, func(l *liar) lane.Storage { return sharesRows{l, map[string][]lane.OutboxMessage{}} }, []linear.Subject{linear.Outbox}},
		"tells its caller":  {5, func(l *liar) lane.Storage { return tellsOwn{l} }, []linear.Subject{linear.Records}},
		"replaces all":      {1, func(l *liar) lane.Storage { return replacesAll{l} }, []linear.Subject{linear.Records}},
		"marks for anybody": {2, func(l *liar) lane.Storage { return marksForAnybody{l} }, []linear.Subject{linear.Outbox}},
	} {
		for _, subject := range c.subjects {
			t.Run(name+"/"+string(subject), func(t *testing.T) {
				t.Parallel()
				storage := c.lies(&liar{Storage: memlane.NewStorage(nil), often: c.often})
				verdict := linear.Check(t, []lane.Storage{storage}, subject, nil)
				if verdict.Linearizable || verdict.TimedOut {
					t.Error(verdict, verdict.Outcomes)
				}
			})
		}
	}
}
