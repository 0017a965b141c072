package lives

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
)

// book is what is known of the runs of a life: by callers, handlers and readers. It is safe for concurrent use.
type book struct {
	mu      sync.Mutex
	entries map[runlane.RunID]*entry
	touched map[runlane.RunID]bool
	memory
}

type entry struct {
	run       *runlane.Run    // as it was seen last; nil: never seen
	answered  bool            // a caller was told that it is there
	executed  map[int]int     // how often, by attempt
	suspended map[int]int     // of these, how often its handler returned a suspension
	succeeded map[int]bool    // attempts whose handler returned without an error
	accepted  map[string]bool // signals of which a sender was told that they are kept
	hurried   bool            // an operator resumed it, which ends a sleep
}

// hurries notes runs that are being resumed: one, or all that there are.
func (b *book) hurries(id runlane.RunID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for known, e := range b.entries {
		e.hurried = e.hurried || id == "" || known == id
	}
}

func (b *book) hurried(id runlane.RunID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.entry(id).hurried
}

func newBook() *book {
	return &book{entries: map[runlane.RunID]*entry{}, touched: map[runlane.RunID]bool{}, memory: newMemory()}
}

// entry makes it where there is none. The lock is held.
func (b *book) entry(id runlane.RunID) *entry {
	e := b.entries[id]
	if e == nil {
		e = &entry{
			executed:  map[int]int{},
			suspended: map[int]int{},
			succeeded: map[int]bool{},
			accepted:  map[string]bool{},
		}
		b.entries[id] = e
	}
	return e
}

func (b *book) touch(ids ...runlane.RunID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		b.touched[id] = true
	}
}

// answers notes that a caller was told of a run.
func (b *book) answers(id runlane.RunID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entry(id).answered, b.touched[id] = true, true
}

func (b *book) executes(id runlane.RunID, attempt int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entry(id).executed[attempt]++
	b.touched[id] = true
}

func (b *book) suspends(id runlane.RunID, attempt int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entry(id).suspended[attempt]++
}

func (b *book) succeeds(id runlane.RunID, attempt int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entry(id).succeeded[attempt] = true
}

func (b *book) takeTouched() []runlane.RunID {
	b.mu.Lock()
	defer b.mu.Unlock()
	ids := slices.Sorted(maps.Keys(b.touched))
	clear(b.touched)
	return ids
}

// runs are those that are there, as they were seen last, in the order of their creation.
func (b *book) runs() (runs []*runlane.Run) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.entries {
		if e.run != nil {
			runs = append(runs, e.run)
		}
	}
	slices.SortFunc(
		runs,
		func(a, b *runlane.Run) int { return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID)) },
	)
	return runs
}

// absent judges that a run is not there. Only a prune, in this very step, may have removed it, and only what had ended.
func (b *book) absent(id runlane.RunID, pruning bool) (fault string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(id)
	switch {
	case e.run == nil && e.answered:
		return "is lost: a caller was told that it is there"
	case e.run != nil && (!pruning || !e.run.Status.Terminal()):
		return fmt.Sprintf("is lost: it was %s", e.run.Status)
	case e.run != nil && e.run.Source.Type == runlane.SourceCall && b.calls(&e.run.Source):
		return "is pruned, and what called it has not ended"
	}
	delete(b.entries, id) // a caller may choose its id again
	return ""
}

// calls reports that the run which a source names has not ended. The lock is held.
func (b *book) calls(s *runlane.Source) bool {
	caller := b.entry(s.RunID).run
	return caller != nil && caller.CreatedAt.Equal(s.CreatedAt) && !caller.Status.Terminal()
}

// seen judges a run by what is known of it.
func (b *book) seen(run *runlane.Run) (fault string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.entry(run.ID)
	old := e.run
	e.run = run
	if old != nil && !old.CreatedAt.Equal(run.CreatedAt) {
		return "was made again, and was never removed"
	}
	if old != nil &&
		(run.EventSequence < old.EventSequence || old.Status.Terminal() && run.EventSequence != old.EventSequence) {
		return fmt.Sprintf(
			"was %s after event %d, and is %s after event %d",
			old.Status,
			old.EventSequence,
			run.Status,
			run.EventSequence,
		)
	}
	for attempt, times := range e.executed {
		// what comes while an attempt is about to be suspended has its handler called again in that attempt
		if times-e.suspended[attempt] > 1 || attempt > run.Counters.Attempts {
			return fmt.Sprintf(
				"executed its attempt %d %d times, and counts %d attempts",
				attempt,
				times,
				run.Counters.Attempts,
			)
		}
	}
	if last := run.Counters.Attempts; run.Status == runlane.StatusSucceeded &&
		(!e.succeeded[last] || string(run.Output) != outputOf(last)) {
		return fmt.Sprintf(
			"succeeded in attempt %d with %s, and successful were the attempts %v",
			last,
			run.Output,
			e.succeeded,
		)
	}
	return ""
}

// look reads what the last step touched, and asks for what must hold.
func (l *life) look() {
	l.bury()
	if found := l.book.faults(); len(found) > 0 {
		l.fail("%s", strings.Join(found, "; "))
	}
	for _, id := range l.book.takeTouched() {
		l.lookAt(id)
	}
	l.checkStorage(false)
	l.checkTogether()
	l.checkScans()
	l.pruning = false
}

func (l *life) lookAt(id runlane.RunID) {
	key := lane.RunKey{Environment: l.world.Environment, RunID: id}
	run, err := l.truth.GetRun(l.ctx, key)
	if runlane.CodeOf(err) == runlane.ErrRunNotFound {
		if fault := l.book.absent(id, l.pruning); fault != "" {
			l.fail("run %s %s", id, fault)
		}
		return
	}
	if err != nil {
		l.fail("run %s: %v", id, err)
	}
	if fault := l.book.seen(run); fault != "" {
		l.fail("run %s %s: %+v", id, fault, run)
	}
	found, err := lanetest.CheckFold(l.ctx, l.truth, key)
	if err == nil && len(found) > 0 { // unless a heartbeat came between
		found, err = lanetest.CheckFold(l.ctx, l.truth, key)
	}
	if err != nil || len(found) > 0 {
		l.fail("the history of run %s: %v, %+v", id, err, found)
	}
	l.explain(run)
}

// checkStorage asks the storage for its own invariants.
func (l *life) checkStorage(all bool) {
	found, err := l.world.Check(l.ctx, all)
	if err == nil && len(found) > 0 {
		found, err = l.world.Check(l.ctx, true) // unless a heartbeat came between
	}
	for i := range found {
		seen, err := l.truth.InspectRun(l.ctx, &lane.InspectQuery{RunKey: found[i].RunKey})
		if err == nil {
			l.note("run %+v\ndelivery %+v", seen.Run, seen.Delivery)
		}
	}
	if err != nil || len(found) > 0 {
		l.fail("the storage's own check: %v, %+v", err, found)
	}
}

type owned struct {
	task runlane.TaskID
	key  string
}

type fired struct {
	schedule runlane.ScheduleID
	at       time.Time
}

// checkTogether is what holds for all runs together, whatever went wrong.
func (l *life) checkTogether() {
	now := l.clock.Now()
	slots := map[string][]runlane.RunID{}
	nodes, called := map[runlane.Source]runlane.RunID{}, map[runlane.Source]int{}
	singletons, keys, fires := map[owned]runlane.RunID{}, map[owned]runlane.RunID{}, map[fired]runlane.RunID{}
	for _, run := range l.book.runs() {
		if run.Queue == slotQueue &&
			(lane.HoldsSlot(run) && run.Status != runlane.StatusQueued || lane.ReservationActive(run, now)) {
			slots[run.ConcurrencyKey] = append(slots[run.ConcurrencyKey], run.ID)
		}
		if byHand := len(run.ID) < len("run_")+32; run.Source.Type == runlane.SourceSchedule && !byHand {
			twice(l, "occurrence", fires, fired{run.Source.ScheduleID, run.Source.FireTime}, run.ID)
		}
		if run.Source.Type == runlane.SourceFlow {
			twice(l, "node of a flow", nodes, run.Source, run.ID)
		}
		if called[run.Source]++; run.Source.Type == runlane.SourceCall && called[run.Source] > mostCalled {
			l.fail("%+v made more runs than it calls", run.Source)
		}
		if run.Status.Terminal() {
			continue
		}
		if run.SingletonKey != "" {
			twice(l, "singleton key", singletons, owned{run.TaskID, run.SingletonKey}, run.ID)
		}
		if run.IdempotencyKey != "" {
			twice(l, "idempotency key", keys, owned{run.TaskID, run.IdempotencyKey}, run.ID)
		}
	}
	for key, holders := range slots {
		if l.limit > 0 && len(holders) > l.limit {
			l.fail("the runs %v of key %q have slots, and no deployment ever admitted more than %d",
				holders, key, l.limit)
		}
	}
}

func twice[K comparable](l *life, what string, owners map[K]runlane.RunID, key K, id runlane.RunID) {
	if other, taken := owners[key]; taken {
		l.fail("the runs %s and %s have the same %s %v", other, id, what, key)
	}
	owners[key] = id
}
