package lanetest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// noon is the start of virtual time. Cases count from it.
var noon = time.Date(2026, time.March, 4, 12, 0, 0, 123_000_000, time.UTC)

// bundle is what a case works with: a storage, a separate environment, and short methods that do and check things.
type bundle struct {
	*Factory
	t       testing.TB
	h       StorageHarness
	storage lane.Storage
	env     runlane.Environment

	first *bundle // the process that verifies what this one made; nil: this one

	mu   sync.Mutex
	made []lane.RunKey // runs to verify at the end

	removed []lane.RunInstance // by the last prunings
}

func newBundle(t testing.TB, h StorageHarness) *bundle {
	t.Helper()
	var random [6]byte
	if _, err := rand.Read(random[:]); err != nil {
		t.Fatal(err)
	}
	env := runlane.Environment("lanetest-" + hex.EncodeToString(random[:]))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the case worked in environment %q", env)
		}
	})
	return &bundle{Factory: NewFactory(env), t: t, h: h, storage: h.New(t), env: env}
}

func (b *bundle) ctx() context.Context { return b.t.Context() }

func (b *bundle) key(id runlane.RunID) lane.RunKey { return lane.RunKey{Environment: b.env, RunID: id} }

func (b *bundle) remember(run *runlane.Run) {
	if b.first != nil {
		b.first.remember(run)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if key := (lane.RunKey{Environment: run.Environment, RunID: run.ID}); !slices.Contains(b.made, key) {
		b.made = append(b.made, key)
	}
}

// append commits a command that must succeed.
func (b *bundle) append(c *lane.AppendCommand) *lane.Commit {
	b.t.Helper()
	commit, err := b.storage.AppendRunEvents(b.ctx(), c)
	mayRefuse := b.h.LosesAnswers && c.Reserves()
	for n := 0; n < capacityTries && mayRefuse && isConflict(err, runlane.ConflictQueueCapacity); n++ {
		commit, err = b.storage.AppendRunEvents(b.ctx(), c)
	}
	b.remember(must(commit, err)(b.t).Run)
	return commit
}

// capacityTries is how often, under faults alone, a creation with a reservation is sent again that got no slot where
// there is one: a storage may say so of a slot that it could not read, or that it met another at. It has written
// nothing then.
const capacityTries = 20

// create makes a run.
func (b *bundle) create(at time.Time, o RunOptions) *runlane.Run {
	b.t.Helper()
	return b.append(b.Creation(b.t, at, o)).Run
}

// push appends bodies to a run.
func (b *bundle) push(run *runlane.Run, at time.Time, bodies ...runlane.EventBody) *runlane.Run {
	b.t.Helper()
	return b.append(b.Append(b.t, run, at, bodies...)).Run
}

// deliver asks for a delivery; initial is the first state of its outbox row.
func (b *bundle) deliver(run *runlane.Run, at, available time.Time, initial lane.InitialOutbox) *lane.Commit {
	b.t.Helper()
	c := b.Append(b.t, run, at, Delivery(run, at, available))
	c.Outbox = initial
	return b.append(c)
}

// claim takes the run, which must succeed.
func (b *bundle) claim(run *runlane.Run, at, leaseEnd time.Time) *runlane.Run {
	b.t.Helper()
	got := must(b.storage.ClaimRunLease(b.ctx(), b.Claim(b.t, run, at, leaseEnd, b.NewToken())))(b.t)
	if got.Outcome != lane.Acquired || got.Commit == nil {
		b.t.Fatalf("claim at %s: outcome %q, want %q", at, got.Outcome, lane.Acquired)
	}
	return got.Commit.Run
}

// running is a run under a lease.
func (b *bundle) running(at, leaseEnd time.Time, o RunOptions) *runlane.Run {
	b.t.Helper()
	return b.claim(b.create(at, o), at, leaseEnd)
}

// get reads a run that must exist.
func (b *bundle) get(id runlane.RunID) *runlane.Run {
	b.t.Helper()
	return must(b.storage.GetRun(b.ctx(), b.key(id)))(b.t)
}

// history reads all events of a run.
func (b *bundle) history(key lane.RunKey) []runlane.EventRecord {
	b.t.Helper()
	q := &lane.EventQuery{
		PageQuery: lane.PageQuery{Environment: key.Environment, Limit: runlane.MaxPageLimit},
		RunID:     key.RunID,
	}
	return collect(b.t, &q.PageQuery, func() (*runlane.Page[runlane.EventRecord], error) {
		return b.storage.ListRunEvents(b.ctx(), q)
	})
}

// outbox claims what is due, at most limit rows in one call.
func (b *bundle) outbox(at time.Time) []lane.OutboxMessage {
	b.t.Helper()
	return must(b.storage.ClaimOutboxMessages(b.ctx(), &lane.ClaimOutboxCommand{
		Environment: b.env, At: at, ClaimUntil: at.Add(claimTime),
	}))(b.t)
}

// outboxOf claims given rows.
func (b *bundle) outboxOf(at time.Time, ids ...string) []lane.OutboxMessage {
	b.t.Helper()
	return must(b.storage.ClaimOutboxMessages(b.ctx(), &lane.ClaimOutboxCommand{
		Environment: b.env,
		IDs:         ids,
		At:          at,
		ClaimUntil:  at.Add(claimTime),
		Limit:       max(len(ids), 1),
	}))(b.t)
}

const claimTime = 30 * time.Second

// collect reads a list to its end. The query must be the one that read uses.
func collect[T any](t testing.TB, q *lane.PageQuery, read func() (*runlane.Page[T], error)) []T {
	t.Helper()
	var items []T
	first := q.After
	defer func() { q.After = first }()
	seen := map[runlane.Cursor]bool{}
	for {
		page := must(read())(t)
		if page == nil {
			t.Fatal("a list returned neither a page nor an error")
		}
		if limit := must(q.PageLimit())(t); len(page.Items) > limit {
			t.Fatalf("a page has %d items, more than the limit %d", len(page.Items), limit)
		}
		items = append(items, page.Items...)
		if page.Next == "" {
			return items
		}
		if seen[page.Next] {
			t.Fatal("a list returned the same cursor twice")
		}
		seen[page.Next] = true
		q.After = page.Next
	}
}

// verify runs after each case: every run is the fold of its history, and the storage finds nothing wrong with itself.
func (b *bundle) verify() {
	b.t.Helper()
	if b.h.Capabilities.ReadsRunHistory {
		for _, key := range b.made {
			b.verifyFold(key)
		}
	}
	environments := []runlane.Environment{b.env}
	for _, key := range b.made {
		if !slices.Contains(environments, key.Environment) {
			environments = append(environments, key.Environment)
		}
	}
	for _, environment := range environments {
		b.eventually(func() string {
			q := &lane.PageQuery{Environment: environment}
			return difference(nil, collect(b.t, q, func() (*runlane.Page[lane.Violation], error) {
				page, err := b.storage.Check(b.ctx(), q)
				if errors.Is(err, runlane.ErrCapabilityUnsupported) {
					return &runlane.Page[lane.Violation]{}, nil // it has no checker
				}
				return page, err
			}))
		})
	}
}

func (b *bundle) verifyFold(key lane.RunKey) {
	b.t.Helper()
	for _, v := range must(CheckFold(b.ctx(), b.storage, key))(b.t) {
		b.t.Fatalf("%s: %s: %s", v.RunID, v.Rule, v.Detail)
	}
}
