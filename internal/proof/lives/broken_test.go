package lives

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// Lives are worth what they find. Each of these storages is right but for one thing.

// losesRows loses every third wakeup of a new run before anybody sent it, and never finds it again.
type losesRows struct {
	lane.Storage

	mu   sync.Mutex
	made int
	lost []runlane.RunID
}

func (s *losesRows) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	if c.Creates() && c.Projected.Status == runlane.StatusQueued {
		s.mu.Lock()
		if s.made++; s.made%3 == 0 {
			s.lost = append(s.lost, c.Projected.ID)
			without := *c
			without.Outbox = lane.InitialOutbox{Published: true}
			c = &without
		}
		s.mu.Unlock()
	}
	return s.Storage.AppendRunEvents(ctx, c)
}

func (s *losesRows) without(page *runlane.Page[lane.RunRef], err error) (*runlane.Page[lane.RunRef], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		page.Items = slices.DeleteFunc(page.Items, func(ref lane.RunRef) bool { return slices.Contains(s.lost, ref.RunID) })
	}
	return page, err
}

func (s *losesRows) ListRunsNeedingRedelivery(ctx context.Context, q *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return s.without(s.Storage.ListRunsNeedingRedelivery(ctx, q))
}

// leaksSlots does not give every second slot back that a run had.
type leaksSlots struct {
	lane.Storage

	mu    sync.Mutex
	freed map[string]int // by concurrency key
}

func (s *leaksSlots) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	before, _ := s.GetRun(ctx, c.Key())
	commit, err := s.Storage.AppendRunEvents(ctx, c)
	if err == nil && before != nil && before.Queue == slotQueue && lane.HoldsSlot(before) && !lane.HoldsSlot(c.Projected) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.freed[before.ConcurrencyKey]++
	}
	return commit, err
}

// left is the limit without what leaked.
func (s *leaksSlots) left(t *lane.Transition) (full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.Queue.Bounded() {
		t.Queue.Concurrency -= s.freed[t.Projected.ConcurrencyKey] / 2
	}
	return t.Queue.Concurrency < 0 || t.Queue.Concurrency == 0 && s.freed[t.Projected.ConcurrencyKey] > 1
}

func (s *leaksSlots) ReserveRunDispatch(ctx context.Context, c *lane.ReserveCommand) (*lane.Acquisition, error) {
	less := *c
	if s.left(&less.Transition) {
		return &lane.Acquisition{Outcome: lane.LostCapacity}, nil
	}
	return s.Storage.ReserveRunDispatch(ctx, &less)
}

func (s *leaksSlots) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	less := *c
	if c.Slot && s.left(&less.Transition) {
		return &lane.Acquisition{Outcome: lane.LostCapacity}, nil
	}
	return s.Storage.ClaimRunLease(ctx, &less)
}

// admitsMore lets one more run than the limit have a slot.
type admitsMore struct{ lane.Storage }

func (s admitsMore) ReserveRunDispatch(ctx context.Context, c *lane.ReserveCommand) (*lane.Acquisition, error) {
	more := *c
	if more.Queue.Bounded() {
		more.Queue.Concurrency++
	}
	return s.Storage.ReserveRunDispatch(ctx, &more)
}

func (s admitsMore) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	more := *c
	if more.Queue.Bounded() {
		more.Queue.Concurrency++
	}
	return s.Storage.ClaimRunLease(ctx, &more)
}

// fencesNothing lets the last writer win: what an owner says of its attempt counts for whichever attempt is under way.
type fencesNothing struct{ lane.Storage }

func (s fencesNothing) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	current, err := s.GetRun(ctx, c.Key())
	if c.LeaseToken == "" || err != nil || current.EventSequence == c.ExpectedSequence || current.Status != runlane.StatusRunning {
		return s.Storage.AppendRunEvents(ctx, c)
	}
	forced := *c
	forced.LeaseToken, forced.ExpectedSequence = current.Lease.Token, current.EventSequence
	forced.Events = slices.Clone(c.Events)
	for i := range forced.Events {
		if done, ok := forced.Events[i].Body.(*runlane.RunSucceeded); ok {
			forced.Events[i].Body = &runlane.RunSucceeded{Attempt: current.Counters.Attempts, Output: done.Output}
		}
	}
	if forced.Projected, err = core.ProjectRunEvents(current, current.EventSequence, forced.Events...); err != nil {
		return s.Storage.AppendRunEvents(ctx, c)
	}
	return s.Storage.AppendRunEvents(ctx, &forced)
}

// forgetsCancellations never finds a run whose worker died after it was asked to stop.
type forgetsCancellations struct{ lane.Storage }

func (s forgetsCancellations) ListRunsNeedingCancellationFinalization(context.Context, *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return &runlane.Page[lane.RunRef]{}, nil
}

// answersTooEarly says that it has made a run, and loses one in ten.
type answersTooEarly struct {
	lane.Storage

	mu   sync.Mutex
	made int
}

func (s *answersTooEarly) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	s.mu.Lock()
	s.made++
	lost := s.made%10 == 0
	s.mu.Unlock()
	if c.Creates() && lost {
		return &lane.Commit{Run: lane.RunAtRest(c.Projected)}, nil
	}
	return s.Storage.AppendRunEvents(ctx, c)
}

// forgetsSteps says that it keeps every second record of a step, and does not.
type forgetsSteps struct {
	lane.Storage

	mu   sync.Mutex
	kept int
}

func (s *forgetsSteps) KeepRecord(ctx context.Context, c *lane.KeepCommand) (*lane.StepRecord, error) {
	s.mu.Lock()
	s.kept++
	lost := s.kept%2 == 0
	s.mu.Unlock()
	if lost {
		record := c.Record
		return &record, nil
	}
	return s.Storage.KeepRecord(ctx, c)
}

// losesSignals says that it keeps a signal, and wakes no run with it.
type losesSignals struct{ lane.Storage }

func (s losesSignals) SendSignal(ctx context.Context, c *lane.SignalCommand) (*lane.Commit, error) {
	asleep := *c
	asleep.Resume = nil
	return s.Storage.SendSignal(ctx, &asleep)
}

// tellsNothing never finds an end that was not told by who brought it about.
type tellsNothing struct{ lane.Storage }

func (s tellsNothing) ListRunsToTell(context.Context, *lane.DueQuery) (*runlane.Page[lane.RunRef], error) {
	return &runlane.Page[lane.RunRef]{}, nil
}

func TestLives_FindWhatIsWrongWithAStorage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		wrong func(lane.Storage) lane.Storage
		says  string // what is found is about this; "" means that nothing is
		most  int    // lives until then
	}{
		{"nothing", untouched, "", 15},
		{"a row of the outbox is lost", func(s lane.Storage) lane.Storage { return &losesRows{Storage: s} }, "does not end", 40},
		{"slots are not given back", func(s lane.Storage) lane.Storage { return &leaksSlots{Storage: s, freed: map[string]int{}} }, "does not end", 200},
		{"one slot too many", func(s lane.Storage) lane.Storage { return admitsMore{s} }, "have slots", 200},
		{"no fence", func(s lane.Storage) lane.Storage { return fencesNothing{s} }, "succeeded in attempt", 400},
		{"a dead worker's cancellation", func(s lane.Storage) lane.Storage { return forgetsCancellations{s} }, "does not end", 200},
		{"an answer before the commit", func(s lane.Storage) lane.Storage { return &answersTooEarly{Storage: s} }, "is lost", 40},
		{"a step is forgotten", func(s lane.Storage) lane.Storage { return &forgetsSteps{Storage: s} }, "does its step", 100},
		{"a signal wakes no run", func(s lane.Storage) lane.Storage { return losesSignals{s} }, "which it has", 100},
		{"ends are told once", func(s lane.Storage) lane.Storage { return tellsNothing{s} }, "does not end", 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			lived, found := livesUntil(t, c.most, c.wrong)
			if c.says == "" && found != "" || c.says != "" && !strings.Contains(found, c.says) {
				t.Errorf("after %d lives was found: %q", lived, found)
			}
			t.Logf("%d lives: %s", lived, strings.SplitN(found, ":", 2)[0])
		})
	}
}

// livesUntil lives the lives of fixed seeds until one fails.
func livesUntil(t *testing.T, most int, wrong func(lane.Storage) lane.Storage) (lived int, found string) {
	t.Helper()
	for lived = 1; lived <= most && found == ""; lived++ {
		synctest.Test(t, func(*testing.T) {
			found = oneSeed(uint64(lived), newTally(), func(*life) *World { return memoryWorld(wrong) })
		}) // positive
	}
	return lived - 1, found
}
