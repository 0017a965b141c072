package linear

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/fault/lanefault"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
)

// linearSubject is how clients act on a subject, and which answers are right when the operations happen one after the
// other.
type linearSubject struct {
	needs   func(lane.StorageCapabilities) bool
	prepare func(h *linearHistory) // before the clients; nil: nothing
	act     func(c *linearClient)  // a few operations of one client
	rounds  int                    // all clients end a round before the next begins; 0 means 1
	settle  func(c *linearClient)  // one client alone, when everybody is done and nothing goes wrong; nil: nothing
	begin   any                    // the state of each key
	meets   []string               // outcomes without which a history proves too little
	// step tells whether the answer is right in a state, and the state afterwards. It accepts linearUnknown always:
	// what cannot take effect there takes none.
	step func(state any, call linearCall, answer linearAnswer) (bool, any)
}

var linearSubjects = map[Subject]linearSubject{
	Singleton:   singletonSubject(),
	Idempotency: idempotencySubject(),
	Lease:       leaseSubject(),
	Slots:       slotSubject(),
	Flows:       flowSubject(),
}

// linearCall is an operation on one key.
type linearCall struct {
	Key   string
	Kind  string
	Run   runlane.RunID
	Token string
	// Expected is the sequence that the caller read.
	Expected int64
	// At and Until are instants of the command, in milliseconds.
	At, Until int64
	// Round of a slot's operation.
	Round int
	// Doubt: an earlier operation on the run has an unknown outcome.
	Doubt bool
	// Quiet: no other client acts, and no fault is injected. Only then, a lost race is no sufficient reason for a
	// refusal.
	Quiet bool
}

// linearAnswer is what the caller heard.
type linearAnswer struct {
	Result   string
	Run      runlane.RunID
	Token    string
	Sequence int64
}

// Results of operations.
const (
	linearDone    = "done"
	linearRefused = "refused"
	linearNone    = "none"
	linearUnknown = "unknown"
)

func (s linearSubject) model() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			byKey := map[string][]porcupine.Operation{}
			for _, operation := range history {
				key := operation.Input.(linearCall).Key
				byKey[key] = append(byKey[key], operation)
			}
			var parts [][]porcupine.Operation
			for _, part := range byKey {
				parts = append(parts, part)
			}
			return parts
		},
		Init: func() any { return s.begin },
		Step: func(state, call, answer any) (bool, any) {
			return s.step(state, call.(linearCall), answer.(linearAnswer))
		},
		DescribeOperation: func(call, answer any) string { return fmt.Sprintf("%+v: %+v", call, answer) },
		DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
	}
}

// noon is the start of virtual time.
var noon = time.Date(2026, time.March, 4, 12, 0, 0, 123_000_000, time.UTC)

// isConflict reports a lost race of the kind.
func isConflict(err error, kind runlane.ConflictKind) bool {
	e, ok := errors.AsType[*runlane.Error](err)
	return ok && e.Code == runlane.ErrStorageConflict && e.Conflict == kind
}

// linearHistory is made by clients and a clock that only counts, so that what one client ended before another began is
// known.
type linearHistory struct {
	*lanetest.Factory
	t         testing.TB
	env       runlane.Environment
	o         Options
	raw       []lane.Storage // one for each process
	processes []lane.Storage // the same, whose calls go wrong
	plan      *lanefault.Plan
	runs      map[string]runlane.RunID // by key
	moment    atomic.Int64
	ticks     atomic.Int64
	round     int

	guard      sync.Mutex
	operations []porcupine.Operation
	open       []int                          // those of unknown outcome
	late       []func()                       // calls on their way
	known      map[runlane.RunID]*runlane.Run // runs as they were created
	problems   []error
}

// Rates of answers that get lost, and of calls that are not carried out.
const (
	linearLost    = 0.05
	linearNever   = 0.03
	linearRefusal = 0.02
)

// Rates of calls that are carried out long after their caller gave up, and of calls that arrive once more when they
// were answered.
const (
	linearLate  = 0.04
	linearTwice = 0.05
)

func newLinearHistory(t testing.TB, storages []lane.Storage, o Options) *linearHistory {
	t.Helper()
	for o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	env := runlane.Environment(fmt.Sprintf("linear-%x", rand.Uint64())) // a name, not a choice: nothing depends on it
	h := &linearHistory{
		Factory: lanetest.NewFactory(env),
		t:       t,
		env:     env,
		o:       o,
		raw:     storages,
		plan: lanefault.New(t, o.Seed, lanefault.Pace{},
			lanefault.Rule{Kind: lanefault.After, Rate: linearLost},
			lanefault.Rule{Kind: lanefault.Before, Rate: linearNever},
			lanefault.Rule{Kind: lanefault.Conflict, Rate: linearRefusal},
		),
		runs:  map[string]runlane.RunID{},
		known: map[runlane.RunID]*runlane.Run{},
	}
	for _, s := range storages {
		h.processes = append(h.processes, lanefault.Storage(s, h.plan))
	}
	return h
}

func (h *linearHistory) ctx() context.Context { return h.t.Context() }

func (h *linearHistory) runKey(id runlane.RunID) lane.RunKey {
	return lane.RunKey{Environment: h.env, RunID: id}
}

func (h *linearHistory) owner(key string) lane.OwnerKey {
	return lane.OwnerKey{Environment: h.env, TaskID: lanetest.TaskID, Key: key}
}

// create makes a run before the clients begin, which must succeed.
func (h *linearHistory) create() *lane.Commit {
	h.t.Helper()
	commit, err := h.raw[0].AppendRunEvents(h.ctx(), h.Creation(h.t, noon, lanetest.RunOptions{}))
	if err != nil {
		h.t.Fatalf("unexpected error: %v", err)
	}
	return commit
}

func (h *linearHistory) run(about linearSubject) {
	if about.prepare != nil {
		about.prepare(h)
	}
	clients := make([]*linearClient, h.o.Clients)
	for i := range clients {
		clients[i] = h.client(i)
	}
	rounds := max(about.rounds, 1)
	for h.round = range rounds {
		var group sync.WaitGroup
		for _, c := range clients {
			group.Go(func() {
				for range (h.o.Operations + rounds - 1) / rounds {
					about.act(c)
					h.deliverOne()
				}
			})
		}
		group.Wait()
		for h.deliverOne() {
		}
	}
	if about.settle != nil {
		h.plan.Stop()
		h.round = rounds
		last := h.client(h.o.Clients)
		last.quiet = true
		for _, c := range clients {
			for key, ids := range c.mine {
				last.mine[key] = append(last.mine[key], ids...)
			}
		}
		about.settle(last)
	}
	for _, i := range h.open { // may take effect whenever, also after everything else
		h.operations[i].Return = h.moment.Add(1)
	}
}

func (h *linearHistory) deliverLater(call func()) {
	h.guard.Lock()
	defer h.guard.Unlock()
	h.late = append(h.late, call)
}

// deliverOne carries out one of the calls whose callers gave up.
func (h *linearHistory) deliverOne() bool {
	h.guard.Lock()
	if len(h.late) == 0 {
		h.guard.Unlock()
		return false
	}
	call := h.late[0]
	h.late = h.late[1:]
	h.guard.Unlock()
	call()
	return true
}

func (h *linearHistory) keyName(n int) string { return fmt.Sprintf("key-%d", n) }

// tick is a new instant of virtual time, a second after the last.
func (h *linearHistory) tick() time.Time {
	return noon.Add(time.Duration(h.ticks.Add(1)) * time.Second)
}

// actor of every event: no history depends on it.
var actor = runlane.Actor{Type: runlane.ActorWorker, ID: "linear"}

// project is the transition of a run as its client knows it. ok is false where core refuses it.
func (h *linearHistory) project(
	run *runlane.Run, at time.Time, bodies ...runlane.EventBody,
) (t lane.Transition, ok bool) {
	events := make([]runlane.Event, len(bodies))
	for i, body := range bodies {
		events[i] = runlane.Event{RunID: run.ID, Environment: run.Environment, OccurredAt: at, Actor: actor, Body: body}
	}
	projected, err := core.ProjectRunEvents(run, run.EventSequence, events...)
	return lane.Transition{
		ExpectedSequence: run.EventSequence,
		Events:           events,
		Projected:        projected,
		Queue:            runlane.Queue{Name: run.Queue},
	}, err == nil
}
