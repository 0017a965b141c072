package memlane_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/lives/linear"
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

// twoOwners gives a run to the second who comes for it as well.
type twoOwners struct{ *liar }

func (s twoOwners) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	got, err := s.liar.ClaimRunLease(ctx, c)
	if err == nil && got.Outcome == lane.LostSequence && s.now() {
		return &lane.Acquisition{Outcome: lane.Acquired, Commit: &lane.Commit{Run: c.Projected}}, nil
	}
	return got, err
}

// oneTooMany has a slot more than the limit says.
type oneTooMany struct{ *liar }

func (s oneTooMany) ReserveRunDispatch(ctx context.Context, c *lane.ReserveCommand) (*lane.Acquisition, error) {
	wide := *c
	wide.Queue.Concurrency++
	return s.liar.ReserveRunDispatch(ctx, &wide)
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
		"shares keys":     {10, func(l *liar) lane.Storage { return sharesKeys{l} }, []linear.Subject{linear.Singleton, linear.Idempotency}},
		"has two owners":  {5, func(l *liar) lane.Storage { return twoOwners{l} }, []linear.Subject{linear.Lease}},
		"a slot too many": {1, func(l *liar) lane.Storage { return oneTooMany{l} }, []linear.Subject{linear.Slots}},
		"makes always":    {1, func(l *liar) lane.Storage { return makesAlways{l} }, []linear.Subject{linear.Flows}},
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
