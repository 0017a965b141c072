package histories

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
)

// slots is a random life of a bounded queue, and who has a slot as a reader of all outcomes would say. Its clock only
// goes forward, so that a reservation which is over stays over.
type slots struct {
	s       lane.Storage
	name    runlane.Environment
	f       *lanetest.Factory
	t       testing.TB
	now     time.Time
	limit   int // 0: none
	order   []runlane.RunID
	current map[runlane.RunID]*runlane.Run
	held    map[runlane.RunID]bool // runs a slot without a limit in time
}

// CheckOffers has a run get the slot that was offered, and wait again from the same millisecond on. The next free slot
// is for the one that has waited longest, which it is by its id.
func CheckOffers(t *testing.T, s lane.Storage) {
	t.Helper()
	const name = "offers"
	f, ctx := lanetest.NewFactory(name), t.Context()
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	const limit = 2
	offered := func() runlane.RunID {
		t.Helper()
		key := ""
		page, err := s.ListRunsNeedingDispatch(ctx, &lane.DueQuery{
			PageQuery: lane.PageQuery{Environment: name, Limit: 1}, At: now, ConcurrencyKey: &key,
			Bounded: []runlane.Queue{{Name: lanetest.Queue, Concurrency: limit}},
		})
		if err != nil || len(page.Items) != 1 {
			t.Fatal(page, err)
		}
		return page.Items[0].RunID
	}
	var runs []*runlane.Run
	for range 2 {
		creation := f.Creation(t, now, lanetest.RunOptions{Concurrency: limit, NoDelivery: true})
		commit, err := s.AppendRunEvents(ctx, creation)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, commit.Run)
	}
	first := runs[0]
	if got := offered(); got != first.ID {
		t.Fatalf("%s was offered before %s", got, first.ID)
	}
	reserved, err := s.ReserveRunDispatch(ctx, f.Reserve(t, first, now, now.Add(time.Minute), limit))
	if err != nil || reserved.Outcome != lane.Acquired {
		t.Fatal(reserved, err)
	}
	claim := f.Claim(t, reserved.Commit.Run, now, now.Add(time.Minute), f.NewToken())
	claim.Queue.Concurrency, claim.Slot = limit, true
	claimed, err := s.ClaimRunLease(ctx, claim)
	if err != nil || claimed.Outcome != lane.Acquired {
		t.Fatal(claimed, err)
	}
	retried := f.Append(t, claimed.Commit.Run, now, lanetest.Retried(claimed.Commit.Run, now))
	retried.Queue.Concurrency = limit
	if _, err := s.AppendRunEvents(ctx, retried); err != nil {
		t.Fatal(err)
	}
	if got := offered(); got != first.ID {
		t.Errorf("%s was offered, not %s, which waits as long and comes first", got, first.ID)
	}
	if got := offered(); got != runs[1].ID {
		t.Errorf("%s was offered again at once", got)
	}
}

// CheckSlots is [Check] for a queue with a limit that changes: slots are what outcomes say.
func CheckSlots(t *testing.T, storage func() lane.Storage) {
	t.Helper()
	lives := 0
	rapid.Check(t, func(r *rapid.T) {
		lives++
		name := runlane.Environment(fmt.Sprint("slots-", lives))
		m := &slots{
			s: storage(), name: name, f: lanetest.NewFactory(name), t: t,
			now:   time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC),
			limit: 2, current: map[runlane.RunID]*runlane.Run{}, held: map[runlane.RunID]bool{},
		}
		for range rapid.IntRange(1, 80).Draw(r, "steps") {
			m.step(r)
			m.checkDispatch(r)
			checker, ok := lane.As[lane.Checker](m.s)
			if !ok {
				r.Fatal("the storage is no lane.Checker")
			}
			page, err := checker.Check(context.Background(), &lane.PageQuery{Environment: m.name})
			if err != nil || len(page.Items) != 0 {
				r.Fatalf("check: %v %v", page, err)
			}
		}
	})
}

// occupies is the contract's rule: running with a slot, or reserved and not over.
func (m *slots) occupies(run *runlane.Run) bool {
	return m.held[run.ID] || lane.ReservationActive(run, m.now)
}

func (m *slots) occupied(key string) int {
	n := 0
	for _, run := range m.current {
		if run.ConcurrencyKey == key && m.occupies(run) {
			n++
		}
	}
	return n
}

func (m *slots) step(r *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.IntRange(0, 15).Draw(r, "seconds")) * time.Second)
	if rapid.IntRange(0, 9).Draw(r, "deploy") == 0 {
		m.limit = rapid.IntRange(0, 3).Draw(r, "limit")
	}
	until := m.now.Add(time.Duration(rapid.IntRange(1, 40).Draw(r, "until")) * time.Second)
	if len(m.order) == 0 || rapid.IntRange(0, 4).Draw(r, "create") == 0 {
		m.create(r, until)
		return
	}
	run := m.current[rapid.SampledFrom(m.order).Draw(r, "run")]
	switch rapid.SampledFrom([]string{"reserve", "claim", "commit"}).Draw(r, "step") {
	case "reserve":
		m.reserve(r, run, until)
	case "claim":
		m.claim(r, run, until)
	default:
		m.commit(r, run, until)
	}
}

func (m *slots) create(r *rapid.T, until time.Time) {
	key := rapid.SampledFrom([]string{"", "a"}).Draw(r, "key")
	o := lanetest.RunOptions{Concurrency: m.limit, NoDelivery: true, ConcurrencyKey: key}
	reserving := m.limit > 0 && rapid.Bool().Draw(r, "reserving")
	if reserving {
		o.NoDelivery, o.ReservedUntil = false, until
	}
	full := reserving && m.occupied(o.ConcurrencyKey) >= m.limit
	commit, err := m.s.AppendRunEvents(context.Background(), m.f.Creation(m.t, m.now, o))
	if full != isCapacity(err) || !full && err != nil {
		r.Fatalf("creation with %d of %d slots taken: %v", m.occupied(o.ConcurrencyKey), m.limit, err)
	}
	if err == nil {
		m.order = append(m.order, commit.Run.ID)
		m.current[commit.Run.ID] = commit.Run
	}
}

func isCapacity(err error) bool {
	return errors.Is(err, runlane.ConflictQueueCapacity)
}

func (m *slots) reserve(r *rapid.T, run *runlane.Run, until time.Time) {
	since, ok := lane.RunnableAt(run)
	if m.limit == 0 || !ok || since.After(m.now) {
		return // core does not project it
	}
	want := lane.Acquired
	switch {
	case lane.ReservationActive(run, m.now):
		want = lane.LostEligibility
	case !m.occupies(run) && m.occupied(run.ConcurrencyKey) >= m.limit:
		want = lane.LostCapacity
	}
	got, err := m.s.ReserveRunDispatch(context.Background(), m.f.Reserve(m.t, run, m.now, until, m.limit))
	if err != nil || got.Outcome != want {
		r.Fatalf("reservation of a %s run: %v %v, want %q", run.Status, got, err, want)
	}
	if want == lane.Acquired {
		m.current[run.ID], m.held[run.ID] = got.Commit.Run, false
	}
}

func (m *slots) claim(r *rapid.T, run *runlane.Run, until time.Time) {
	since, ok := lane.RunnableAt(run)
	if !ok || since.After(m.now) {
		return
	}
	c := m.f.Claim(m.t, run, m.now, until, m.f.NewToken())
	c.Queue.Concurrency, c.Slot = m.limit, m.limit > 0 && rapid.Bool().Draw(r, "slot")
	own, want := m.occupies(run), lane.Acquired
	switch {
	case own || m.limit == 0:
	case !c.Slot:
		want = lane.LostReservation
	case m.occupied(run.ConcurrencyKey) >= m.limit:
		want = lane.LostCapacity
	}
	got, err := m.s.ClaimRunLease(context.Background(), c)
	if err != nil || got.Outcome != want {
		r.Fatalf("claim of a %s run: %v %v, want %q", run.Status, got, err, want)
	}
	if want == lane.Acquired {
		m.current[run.ID], m.held[run.ID] = got.Commit.Run, own || m.limit > 0
	}
}

func (m *slots) commit(r *rapid.T, run *runlane.Run, until time.Time) {
	body := rapid.SampledFrom([]runlane.EventBody{
		lanetest.Delivery(run, m.now, m.now), lanetest.Succeeded(run, nil),
		lanetest.Retried(run, until), lanetest.Released(run, until),
		lanetest.Resumed(), &runlane.RunCancellationRequested{}, &runlane.RunCancelled{},
	}).Draw(r, "body")
	event := runlane.Event{
		RunID: run.ID, Environment: run.Environment, OccurredAt: m.now, Actor: runlane.SystemActor, Body: body,
	}
	projected, err := core.ProjectRunEvents(run, run.EventSequence, event)
	if err != nil {
		return // core does not allow it here
	}
	c := &lane.AppendCommand{Transition: lane.Transition{
		ExpectedSequence: run.EventSequence, Events: []runlane.Event{event}, Projected: projected,
		Queue: runlane.Queue{Name: run.Queue, Concurrency: m.limit},
	}}
	commit, err := m.s.AppendRunEvents(context.Background(), c)
	if err != nil {
		r.Fatal(err)
	}
	m.current[run.ID] = commit.Run
	if commit.Run.Status != runlane.StatusCancellationRequested {
		m.held[run.ID] = false
	}
}

// wants is when the run wants a slot, by its projection.
func (m *slots) wants(run *runlane.Run) (time.Time, bool) {
	since, ok := lane.RunnableAt(run)
	if run.DispatchExpiresAt.After(since) {
		since = run.DispatchExpiresAt
	}
	return since, ok && !since.After(m.now)
}

// checkDispatch: those whose lease is over, and of each partition the longest waiting others for whom there is room.
func (m *slots) checkDispatch(r *rapid.T) {
	limit := rapid.IntRange(1, 3).Draw(r, "looking with limit")
	room := map[string]int{"": limit - m.occupied(""), "a": limit - m.occupied("a")}
	type candidate struct {
		id    runlane.RunID
		since time.Time
	}
	var all []candidate
	for _, run := range m.current {
		if since, ok := m.wants(run); ok {
			all = append(all, candidate{run.ID, since})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.id, b.id)) })
	var want, got []runlane.RunID
	for _, c := range all {
		run := m.current[c.id]
		if run.Status == runlane.StatusRunning {
			want = append(want, c.id)
		} else if room[run.ConcurrencyKey]--; room[run.ConcurrencyKey] >= 0 {
			want = append(want, c.id)
		}
	}
	page, err := m.s.ListRunsNeedingDispatch(context.Background(), &lane.DueQuery{
		PageQuery: lane.PageQuery{Environment: m.name, Limit: 100}, At: m.now,
		Bounded: []runlane.Queue{{Name: lanetest.Queue, Concurrency: limit}},
	})
	if err != nil {
		r.Fatal(err)
	}
	for _, ref := range page.Items {
		got = append(got, ref.RunID)
	}
	if !slices.Equal(want, got) {
		r.Fatalf("needing dispatch: %v, want %v", got, want)
	}
}
