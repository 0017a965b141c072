package core_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// catalogd is a storage that counts what its catalog is asked, and refuses to store while told to.
type catalogd struct {
	*memlane.Storage
	lists, puts atomic.Int32
	refuse      atomic.Bool
}

// Capabilities are without pruning, for which ticks ask the catalog, too.
func (c *catalogd) Capabilities() lane.StorageCapabilities {
	has := c.Storage.Capabilities()
	has.PrunesRuns = false
	return has
}

func (c *catalogd) ListTasks(ctx context.Context, q *lane.PageQuery) (*runlane.Page[lane.TaskRecord], error) {
	c.lists.Add(1)
	small := *q
	small.Limit = 2 // catalogs have pages
	return c.Storage.ListTasks(ctx, &small)
}

func (c *catalogd) PutTask(ctx context.Context, command *lane.PutTaskCommand) error {
	c.puts.Add(1)
	if c.refuse.Load() {
		return &runlane.Error{Code: runlane.ErrStorageUnavailable, Message: "no permission to write", Hint: "allow it"}
	}
	return c.Storage.PutTask(ctx, command)
}

// asked are the requests since it was called last.
func (c *catalogd) asked() (lists, puts int32) { return c.lists.Swap(0), c.puts.Swap(0) }

// catalogWorld is an environment in which several programs tick.
type catalogWorld struct {
	*testing.T
	storage *catalogd
	millis  atomic.Int64
	log     bytes.Buffer
}

func newCatalogWorld(t *testing.T) *catalogWorld {
	t.Helper()
	w := &catalogWorld{T: t}
	w.storage = &catalogd{Storage: memlane.NewStorage(&memlane.StorageOptions{Now: w.now})}
	w.millis.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMilli())
	return w
}

func (w *catalogWorld) now() time.Time { return time.UnixMilli(w.millis.Load()).UTC() }

func (w *catalogWorld) pass(d time.Duration) { w.millis.Add(d.Milliseconds()) }

// program is one with tasks, whose clock is ahead by so much.
func (w *catalogWorld) program(ahead time.Duration, tasks ...*runlane.Task[letter]) *core.Runtime {
	w.Helper()
	return w.on(w.storage, ahead, tasks...)
}

func (w *catalogWorld) on(storage lane.Storage, ahead time.Duration, tasks ...*runlane.Task[letter]) *core.Runtime {
	w.Helper()
	options := core.Options{
		Logger: slog.New(slog.NewTextHandler(&w.log, nil)), World: &core.World{Now: func() time.Time { return w.now().Add(ahead) }},
	}
	for _, task := range tasks {
		options.Handlers = append(options.Handlers, task.Handle(func(context.Context, *runlane.Attempt, letter) error { return nil }))
	}
	return openQuiet(w.T, newLane(w, storage, memlane.NewTransport(nil)), options)
}

func (w *catalogWorld) tick(programs ...*core.Runtime) {
	w.Helper()
	for _, rt := range programs {
		if _, err := rt.Tick(w.Context(), nil); err != nil {
			w.Fatal(err)
		}
	}
}

// seen are the stored definitions, as a program without tasks sees them: "id queue seen".
func (w *catalogWorld) seen() map[runlane.TaskID]core.TaskState {
	w.Helper()
	states, err := w.program(0).Tasks().List(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	seen := map[runlane.TaskID]core.TaskState{}
	for _, state := range states {
		seen[state.ID] = state
	}
	w.storage.asked()
	return seen
}

func (w *catalogWorld) wantAsked(what string, lists, puts int32) {
	w.Helper()
	if l, p := w.storage.asked(); l != lists || p != puts {
		w.Errorf("%s: %d lists and %d puts, want %d and %d", what, l, p, lists, puts)
	}
}

type letter struct {
	To string `json:"to"`
}

func letters(id runlane.TaskID, queue runlane.QueueName) *runlane.Task[letter] {
	return runlane.NewTask(id, &runlane.TaskOptions[letter]{Queue: runlane.Queue{Name: queue}})
}

func TestTick_StoresWhatATriggerOfItsTasksNeeds(t *testing.T) {
	t.Parallel()
	w := newCatalogWorld(t)
	key := func(l letter) string { return l.To }
	full := runlane.NewTask("mail.full", &runlane.TaskOptions[letter]{
		ConcurrencyKey: key, IdempotencyKey: key, SingletonKey: key, IdempotencyTTL: runlane.WhileActive, ErrorMessages: true,
		Queue: runlane.Queue{Name: "slow", Concurrency: 3, DispatchTimeout: time.Minute}, Timeout: time.Hour,
		Retry: runlane.Retry{MaxAttempts: 4, Backoff: runlane.Fixed(time.Minute)},
	})
	plain := runlane.NewTask[letter]("mail.plain", nil)
	w.tick(w.program(0, full, plain))
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	want := map[runlane.TaskID]core.TaskState{
		"mail.full": {TaskRecord: lane.TaskRecord{
			ID: "mail.full", Queue: runlane.Queue{Name: "slow", Concurrency: 3, DispatchTimeout: time.Minute}, IdempotencyTTL: runlane.WhileActive,
			Keys: runlane.TaskKeys{Concurrency: true, Idempotency: true, Singleton: true}, MaxAttempts: 4, Backoff: "fixed, 1m", Timeout: time.Hour,
			ErrorMessages: true, SeenAt: at,
		}},
		"mail.plain": {TaskRecord: lane.TaskRecord{
			ID: "mail.plain", Queue: runlane.DefaultQueue, IdempotencyTTL: runlane.DefaultIdempotencyTTL, MaxAttempts: 1, SeenAt: at,
		}},
	}
	if diff := cmp.Diff(want, w.seen()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTick_TellsBackoffsInWords(t *testing.T) {
	t.Parallel()
	w := newCatalogWorld(t)
	want := map[runlane.TaskID]string{}
	var tasks []*runlane.Task[letter]
	for text, backoff := range map[string]runlane.Backoff{
		"exponential, 1s to 5m": nil, "exponential, 10s to 1h": runlane.Exponential{Base: 10 * time.Second, Max: time.Hour},
		"fixed, 1m30s": runlane.Fixed(90 * time.Second), "a function": runlane.BackoffFunc(func(int) time.Duration { return time.Second }),
		"core_test.oddBackoff": oddBackoff{},
	} {
		id := runlane.TaskID(strings.ReplaceAll(text, " ", "-"))
		want[id] = text
		tasks = append(tasks, runlane.NewTask(id, &runlane.TaskOptions[letter]{Retry: runlane.Retry{MaxAttempts: 2, Backoff: backoff}}))
	}
	w.tick(w.program(0, tasks...))
	for id, state := range w.seen() {
		if state.Backoff != want[id] {
			t.Errorf("%s: %q", id, state.Backoff)
		}
	}
}

type oddBackoff struct{}

func (oddBackoff) Delay(n int) time.Duration { return time.Duration(n%2+1) * time.Second }

// A runtime that has stored its tasks, or found them stored, asks nothing again for half a day.
func TestTick_AsksTheCatalogOnceAndThenTwiceADay(t *testing.T) {
	t.Parallel()
	w := newCatalogWorld(t)
	first := w.program(0, letters("a", "one"), letters("b", "one"), letters("c", "one"))
	w.tick(first)
	w.wantAsked("the first tick of the first program", 1, 3)
	for range 5 {
		w.pass(time.Minute)
		w.tick(first)
	}
	w.wantAsked("its next ticks", 0, 0)
	second := w.program(0, letters("a", "one"), letters("b", "one"), letters("c", "one"))
	w.tick(second, second)
	w.wantAsked("the first tick of its second process", 2, 0) // two pages
	w.pass(11 * time.Hour)
	w.tick(first, second)
	w.wantAsked("eleven hours later", 0, 0)
	w.pass(time.Hour)
	w.tick(first, second)
	w.wantAsked("after half a day", 4, 3) // the first program stores them anew
	seen := w.seen()
	for id, state := range seen {
		if !state.SeenAt.Equal(w.now()) || state.Gone(w.now()) {
			t.Errorf("%s was seen at %v", id, state.SeenAt)
		}
	}
	w.tick(w.program(0))
	w.wantAsked("a program without tasks", 0, 0)
}

func TestTick_ProgramsOfOneEnvironment_KeepEachOthersTasks(t *testing.T) {
	t.Parallel()
	w := newCatalogWorld(t)
	mail, reports := w.program(0, letters("mail", "mail"), letters("shared", "mail")), w.program(0, letters("reports", "slow"))
	w.tick(mail, reports)
	w.pass(time.Hour)
	// A later version of the first one: a task is new, one has changed, one is gone.
	later := w.program(0, letters("mail", "fast"), letters("new", "mail"))
	w.tick(later, mail, reports)
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := range 10 {
		seen := w.seen()
		if len(seen) != 4 || seen["mail"].Queue.Name != "fast" || seen["shared"].Queue.Name != "mail" || seen["reports"].Queue.Name != "slow" {
			t.Fatalf("after %v: %+v", w.now().Sub(start), seen)
		}
		if i == 9 {
			if !seen["shared"].SeenAt.Equal(start.Add(time.Hour+3*12*time.Hour)) || !seen["shared"].Gone(w.now()) {
				t.Errorf("the task that no program has any more was seen at %v", seen["shared"].SeenAt)
			}
			if seen["mail"].Gone(w.now()) || seen["reports"].Gone(w.now()) {
				t.Errorf("tasks whose programs tick are gone: %+v", seen)
			}
		}
		w.pass(12 * time.Hour)
		w.tick(later, reports)
		if i < 3 {
			w.tick(mail) // still there for a while, as in a slow deployment; it never takes its definition back
		}
	}
}

func TestTick_ClocksThatDisagree_NeitherLoseNorRepeatDefinitions(t *testing.T) {
	t.Parallel()
	w := newCatalogWorld(t)
	ahead, behind := w.program(1250*time.Millisecond, letters("a", "one")), w.program(-1250*time.Millisecond, letters("a", "one"))
	w.tick(ahead, behind)
	w.wantAsked("both", 2, 1)
	w.pass(12 * time.Hour)
	w.tick(behind, ahead)
	w.wantAsked("half a day later", 2, 1)
	if seen := w.seen()["a"].SeenAt; w.now().Sub(seen).Abs() > 2*time.Second {
		t.Errorf("seen at %v", seen)
	}
	// A clock that was wrong by a year leaves no definition that looks alive for a year.
	w.tick(w.program(365*24*time.Hour, letters("a", "two")))
	w.tick(w.program(0, letters("a", "two")))
	if seen := w.seen()["a"]; !seen.SeenAt.Equal(w.now()) {
		t.Errorf("seen at %v", seen.SeenAt)
	}
}

// The catalog is a convenience: a storage that refuses it takes nothing from a tick, is named once, and is not asked every minute.
func TestTick_ACatalogThatFails_FailsNoTick(t *testing.T) {
	t.Parallel()
	w := newCatalogWorld(t)
	rt := w.program(0, letters("a", "one"), letters("b", "one"))
	w.storage.refuse.Store(true)
	for range 10 {
		w.tick(rt)
		w.pass(time.Minute - time.Millisecond)
	}
	w.wantAsked("refused", 1, 2)
	if log := w.log.String(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "level=WARN") || !strings.Contains(log, "code=storage_unavailable") {
		t.Errorf("the log is %s", log)
	}
	w.storage.refuse.Store(false)
	w.pass(time.Minute)
	w.tick(rt, rt)
	w.wantAsked("allowed again", 1, 2)
	if seen := w.seen(); len(seen) != 2 {
		t.Errorf("stored are %v", seen)
	}
}

func TestTick_OutOfTime_StoresTheDefinitionsNextTime(t *testing.T) {
	t.Parallel()
	w := newCatalogWorld(t)
	rt := w.program(0, letters("a", "one"))
	if _, err := rt.Tick(t.Context(), &core.TickOptions{Deadline: w.now()}); err != nil {
		t.Fatal(err)
	}
	w.wantAsked("without time", 0, 0)
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := rt.Tick(ended, nil); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, runlane.ErrOperationCancelled) {
		t.Fatal(err)
	}
	w.wantAsked("with an ended context", 0, 0)
	w.tick(rt)
	w.wantAsked("with time", 1, 1)
}

func TestTick_AStorageWithoutACatalog_IsAskedForNone(t *testing.T) {
	t.Parallel()
	w := newCatalogWorld(t)
	limited := limitedStorage{Storage: w.storage, capabilities: w.storage.Capabilities()}
	limited.capabilities.KeepsTasks = false
	rt := w.on(limited, 0, letters("a", "one"))
	w.tick(rt)
	w.wantAsked("a tick", 0, 0)
	states, err := rt.Tasks().List(t.Context())
	if err != nil || len(states) != 1 || states[0].ID != "a" || !states[0].Known || !states[0].SeenAt.IsZero() {
		t.Errorf("listed are %+v, %v", states, err)
	}
	w.wantAsked("a list", 0, 0)
}
