package lanetest

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"sync"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// StorageHarness is what [RunStorage] has to know of a storage.
type StorageHarness struct {
	// New returns a storage that is started and is closed by t.Cleanup. Several may share one backend: every case keeps to
	// environments of its own. Required.
	New func(t testing.TB) lane.Storage
	// Capabilities are what the storage is expected to promise.
	Capabilities lane.StorageCapabilities
	// Checker: the storage is expected to be a lane.Checker.
	Checker bool
	// EventuallyConsistent: scans and lists may show a write late. Their cases then repeat a read until it is as expected, for a
	// few seconds. Without it the first read must be right.
	EventuallyConsistent bool
	// PlantUnknownEvent, when set, appends an event of a type that this version does not know to a run, as a newer version would
	// have done, behind the contract's back.
	PlantUnknownEvent func(t testing.TB, s lane.Storage, key lane.RunKey, event runlane.UnknownEvent)
}

// storageCase proves one rule. The comment above each names the section that states it.
type storageCase struct {
	name string
	// needs tells whether the storage promises what the case is about; nil: every storage does.
	needs func(lane.StorageCapabilities) bool
	run   func(t *testing.T, b *bundle)
}

type storageGroup struct {
	name  string
	cases []storageCase
}

func storageGroups() []storageGroup {
	return []storageGroup{
		{"Capabilities", capabilityCases()},
		{"Append", appendCases()},
		{"Bytes", byteCases()},
		{"Copies", copyCases()},
		{"Owners", ownerCases()},
		{"Claim", claimCases()},
		{"Lease", leaseCases()},
		{"Outbox", outboxCases()},
		{"Marks", markCases()},
		{"DeadLetters", deadLetterCases()},
		{"Scans", scanCases()},
		{"Redelivery", redeliveryCases()},
		{"Paging", pagingCases()},
		{"Reads", readCases()},
		{"Environments", environmentCases()},
	}
}

// RunStorage proves the contract of lane.Storage.
func RunStorage(t *testing.T, h StorageHarness) {
	t.Helper()
	for _, group := range storageGroups() {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range group.cases {
				if c.needs != nil && !c.needs(h.Capabilities) {
					continue // Capabilities proves that its methods say so
				}
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					b := newBundle(t, h)
					c.run(t, b)
					b.verify()
				})
			}
		})
	}
}

// What cases need.
func needsHistory(c lane.StorageCapabilities) bool     { return c.ReadsRunHistory }
func needsLeases(c lane.StorageCapabilities) bool      { return c.LeasesRuns }
func needsOutbox(c lane.StorageCapabilities) bool      { return c.PersistsOutbox }
func needsIdempotency(c lane.StorageCapabilities) bool { return c.EnforcesIdempotency }
func needsSingleton(c lane.StorageCapabilities) bool   { return c.EnforcesSingleton }
func needsDeadLetters(c lane.StorageCapabilities) bool { return c.KeepsDeadLetters && c.PersistsOutbox }
func needsRedelivery(c lane.StorageCapabilities) bool  { return c.FindsLostWakeups && c.PersistsOutbox }

func needsBoth(a, b func(lane.StorageCapabilities) bool) func(lane.StorageCapabilities) bool {
	return func(c lane.StorageCapabilities) bool { return a(c) && b(c) }
}

// noon is where virtual time begins. Cases count from it.
var noon = time.Date(2026, time.March, 4, 12, 0, 0, 123_000_000, time.UTC)

// bundle is what a case works with: a storage, an environment of its own, and short ways to do and to demand things.
type bundle struct {
	*Factory
	t       testing.TB
	h       StorageHarness
	storage lane.Storage
	env     runlane.Environment

	mu   sync.Mutex
	made []lane.RunKey // runs to verify at the end
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

// must ends the case on an error.
func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatalf("unexpected error: %v", err)
		}
		return v
	}
}

func (b *bundle) remember(run *runlane.Run) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if key := (lane.RunKey{Environment: run.Environment, RunID: run.ID}); !slices.Contains(b.made, key) {
		b.made = append(b.made, key)
	}
}

// append commits a command that must succeed.
func (b *bundle) append(c *lane.AppendCommand) *lane.Commit {
	b.t.Helper()
	commit := must(b.storage.AppendRunEvents(b.ctx(), c))(b.t)
	b.remember(commit.Run)
	return commit
}

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

// deliver asks for a delivery whose row begins as birth says.
func (b *bundle) deliver(run *runlane.Run, at, available time.Time, birth lane.OutboxBirth) *lane.Commit {
	b.t.Helper()
	c := b.Append(b.t, run, at, Delivery(run, at, available))
	c.Outbox = birth
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
	q := &lane.EventQuery{PageQuery: lane.PageQuery{Environment: key.Environment, Limit: runlane.MaxPageLimit}, RunID: key.RunID}
	return collect(b.t, &q.PageQuery, func() (*runlane.Page[runlane.EventRecord], error) { return b.storage.ListRunEvents(b.ctx(), q) })
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
		Environment: b.env, IDs: ids, At: at, ClaimUntil: at.Add(claimTime), Limit: max(len(ids), 1),
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

// eventually runs check until it returns "", where the harness allows that reads are late; elsewhere once.
func (b *bundle) eventually(check func() string) {
	b.t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for {
		problem := check()
		if problem == "" {
			return
		}
		if !b.h.EventuallyConsistent || time.Now().After(deadline) {
			b.t.Fatal(problem)
		}
		select {
		case <-b.t.Context().Done():
			b.t.Fatal(problem)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// wantError demands an error of the code.
func wantError(t testing.TB, err error, code runlane.ErrorCode) {
	t.Helper()
	if got := runlane.CodeOf(err); got != code {
		t.Fatalf("error is %v (code %q), want %q", err, got, code)
	}
}

// wantConflict demands a conflict of the kind, and its run where id is set.
func wantConflict(t testing.TB, err error, kind runlane.ConflictKind, id runlane.RunID) {
	t.Helper()
	e, ok := asError(err)
	if !ok || e.Code != runlane.ErrStorageConflict || e.Conflict != kind {
		t.Fatalf("error is %v, want conflict %q", err, kind)
	}
	if id != "" && e.RunID != id {
		t.Fatalf("conflict %q names run %q, want %q", kind, e.RunID, id)
	}
}

// equal demands that two values are the same. Absent and empty maps and slices are.
func equal[T any](t testing.TB, what string, want, got T) {
	t.Helper()
	if d := difference(want, got); d != "" {
		t.Fatalf("%s (-want +got):\n%s", what, d)
	}
}

func difference[T any](want, got T) string {
	return diff.Diff(want, got, cmpopts.EquateEmpty())
}

// verify runs after each case: every run is the fold of its history, and the storage finds nothing wrong with itself.
func (b *bundle) verify() {
	b.t.Helper()
	if b.h.Capabilities.ReadsRunHistory {
		for _, key := range b.made {
			b.verifyFold(key)
		}
	}
	checker, ok := lane.As[lane.Checker](b.storage)
	if !ok {
		return
	}
	b.eventually(func() string {
		q := &lane.PageQuery{Environment: b.env}
		return difference(nil, collect(b.t, q, func() (*runlane.Page[lane.Violation], error) { return checker.Check(b.ctx(), q) }))
	})
}

func (b *bundle) verifyFold(key lane.RunKey) {
	b.t.Helper()
	stored := must(b.storage.GetRun(b.ctx(), key))(b.t)
	records := b.history(key)
	events := make([]runlane.Event, len(records))
	for i, r := range records {
		events[i] = r.Event
		if r.Sequence != int64(i)+1 || r.ID == "" {
			b.t.Fatalf("event %d of run %s has sequence %d and id %q", i, key.RunID, r.Sequence, r.ID)
		}
		if _, unknown := r.Body.(*runlane.UnknownEvent); unknown {
			return // cannot be folded by this version
		}
	}
	folded, err := core.ProjectRunEvents(nil, 0, events...)
	if err != nil {
		b.t.Fatalf("the history of run %s does not fold: %v", key.RunID, err)
	}
	equal(b.t, "run "+string(key.RunID)+" is not the fold of its history", folded, stored)
}

// ids of runs, in order.
func refIDs(refs []lane.RunRef) []runlane.RunID {
	ids := make([]runlane.RunID, len(refs))
	for i, r := range refs {
		ids[i] = r.RunID
	}
	return ids
}

func sorted[T cmp.Ordered](items []T) []T { return slices.Sorted(slices.Values(items)) }
