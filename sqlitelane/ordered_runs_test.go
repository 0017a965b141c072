package sqlitelane_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane"
)

// turn is the payload of runs of one key in an ordered queue.
type turn struct {
	Name string `json:"name"`
}

var turnTask = runlane.NewTask("turn", &runlane.TaskOptions[turn]{
	Queue:          runlane.Queue{Name: "mail"},
	ConcurrencyKey: func(turn) string { return "ada" },
	Retry:          runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(20 * time.Second), NoJitter: true},
})

// chronicle is what handlers of all programs did, in order.
type chronicle struct {
	mu    sync.Mutex
	lines []string
	news  chan struct{}
}

func newChronicle() *chronicle { return &chronicle{news: make(chan struct{}, 100)} }

func (j *chronicle) say(line string) {
	j.mu.Lock()
	j.lines = append(j.lines, line)
	j.mu.Unlock()
	j.news <- struct{}{}
}

func (j *chronicle) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}

// until waits for a condition that a line brings about.
func (j *chronicle) until(t *testing.T, over func([]string) bool) {
	t.Helper()
	for deadline := time.After(patience.Limit); !over(j.all()); {
		select {
		case <-j.news:
		case <-deadline:
			t.Fatalf("it does not come: %q", j.all())
		}
	}
}

func (j *chronicle) await(t *testing.T, line string) {
	t.Helper()
	j.until(t, func(lines []string) bool { return slices.Contains(lines, line) })
}

// want waits for so many lines.
func (j *chronicle) want(t *testing.T, lines ...string) {
	t.Helper()
	j.until(t, func(got []string) bool { return len(got) >= len(lines) })
	if d := cmp.Diff(lines, j.all()); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// program is a process with a separate clock. Its log's lines "wakeup handed back" are said in the chronicle.
type program struct {
	*core.Runtime

	t      *testing.T
	ahead  atomic.Int64
	sends  *sqlitelane.Transport
	claims func() // is called before each claim; nil: nothing
	stop   func()
}

// claiming is a storage that tells its program of each claim.
type claiming struct {
	*sqlitelane.Storage

	p *program
}

func (s claiming) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	if s.p.claims != nil {
		s.p.claims()
	}
	return s.Storage.ClaimRunLease(ctx, c)
}

type backLog struct {
	slog.Handler
	say func(string)
}

func (b backLog) Enabled(context.Context, slog.Level) bool { return true }

func (b backLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "wakeup handed back" {
		b.say(r.Message)
	}
	return nil
}

// turns starts a program on the file. do is what its handler does, after it said that it begins.
func turns(t *testing.T, path, name string, j *chronicle, do func(context.Context, *runlane.Attempt, turn) error) *program {
	t.Helper()
	p := &program{t: t}
	now := func() time.Time { return time.Now().Add(time.Duration(p.ahead.Load())) }
	storage := sqlitelane.NewRelaxedStorage(path, now)
	p.sends = sqlitelane.NewTransport(storage, "mail")
	p.sends.SetHandBack(time.Millisecond)
	l, err := lane.New(claiming{storage, p}, p.sends, nil)
	if err != nil {
		t.Fatal(err)
	}
	handled := turnTask.Handle(func(ctx context.Context, a *runlane.Attempt, what turn) error {
		j.say(name + " begins " + what.Name)
		defer j.say(name + " ends " + what.Name)
		return do(ctx, a, what)
	})
	p.Runtime, err = core.Open(t.Context(), l, &core.Options{
		Handlers: []runlane.Handler{handled}, World: &core.World{Now: now},
		Logger: slog.New(backLog{slog.DiscardHandler, func(line string) { j.say(name + ": " + line) }}),
	})
	if err != nil {
		t.Fatal(err)
	}
	p.stop = sync.OnceFunc(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(p.stop)
	return p
}

func (p *program) trigger(name string) runlane.RunID {
	p.t.Helper()
	made, err := p.Trigger(p.t.Context(), turnTask.With(turn{name}), nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return made.Run.ID
}

// work begins a worker; end stops it.
func (p *program) work(grace time.Duration) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	worked := make(chan error, 1)
	go func() { worked <- p.Work(ctx, &core.WorkOptions{NoTick: true, Concurrency: 2, Grace: grace}) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-worked; err != nil {
			p.t.Error(err)
		}
	})
	p.t.Cleanup(end)
	return end
}

func (p *program) tick() {
	p.t.Helper()
	if _, err := p.Tick(p.t.Context(), nil); err != nil {
		p.t.Fatal(err)
	}
}

func atOnce(context.Context, *runlane.Attempt, turn) error { return nil }

// stuck is program A, whose attempts go on until end.
func stuck(t *testing.T, path string, j *chronicle) (a *program, end func()) {
	t.Helper()
	over := make(chan struct{})
	a = turns(t, path, "A", j, func(context.Context, *runlane.Attempt, turn) error {
		<-over
		return nil
	})
	end = sync.OnceFunc(func() { close(over) })
	t.Cleanup(end)
	return a, end
}

// A process is suspended, or dies, with the first run of a key. Its wakeup comes to another process when its lease still
// stands: the second run waits, until the first has ended there or was taken over.
func TestOrdered_LeaseOfAProcessThatIsSilent_HoldsTheNextRunBack(t *testing.T) {
	t.Parallel()
	for name, dies := range map[string]bool{"suspended": false, "dead": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, j := newPath(t), newChronicle()
			a, end := stuck(t, path, j)
			a.trigger("first")
			a.work(time.Minute)
			j.await(t, "A begins first")
			a.trigger("second")
			b := turns(t, path, "B", j, atOnce)
			b.ahead.Store(int64(31 * time.Second)) // its wakeup comes again after 30 s, its lease is over after 60 s
			b.work(time.Minute)
			j.await(t, "B: wakeup handed back")
			if dies {
				b.ahead.Store(int64(61 * time.Second))
				j.await(t, "B ends second")
			} else {
				end()
				j.await(t, "A ends first")
				j.await(t, "B ends second")
			}
			want := []string{"A begins first", "B begins first", "B ends first", "B begins second", "B ends second"}
			if !dies {
				want = []string{"A begins first", "A ends first", "B begins second", "B ends second"}
			}
			got := slices.DeleteFunc(j.all(), func(line string) bool { return line == "B: wakeup handed back" })
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// A run is asked to stop, and its owner is suspended until the lease is over. The owner may extend the lease when it goes
// on, so the next run waits until the first has ended: by its owner, or by a tick.
func TestOrdered_CancelledRunOfASilentProcess_HoldsTheNextRunBack(t *testing.T) {
	t.Parallel()
	for name, ticks := range map[string]bool{"its owner goes on": false, "a tick ends it": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, j := newPath(t), newChronicle()
			a, end := stuck(t, path, j)
			first := a.trigger("first")
			a.work(time.Minute)
			j.await(t, "A begins first")
			a.trigger("second")
			b := turns(t, path, "B", j, atOnce)
			if _, err := b.Runs().Cancel(t.Context(), first, nil); err != nil {
				t.Fatal(err)
			}
			b.ahead.Store(int64(61 * time.Second))
			b.work(time.Minute)
			j.until(t, func(lines []string) bool { return len(lines) >= 2 })
			want := []string{"A begins first", "A ends first", "B begins second", "B ends second"}
			if ticks {
				b.tick()
				want = slices.Delete(want, 1, 2)
			} else {
				end()
			}
			j.await(t, "B ends second")
			got := slices.DeleteFunc(j.all(), func(line string) bool { return line == "B: wakeup handed back" })
			end()
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// A process is suspended between taking a wakeup and claiming its run, for longer than it holds the wakeup. Another one
// executes an attempt, and the next run begins. When the first process goes on, the run's retry is due, and has to wait
// for its turn all the same: a claim counts only while its wakeup is its process's.
func TestOrdered_ClaimOfAProcessThatWasSuspended_ComesBehindTheNextRun(t *testing.T) {
	t.Parallel()
	path, j := newPath(t), newChronicle()
	suspended, goOn := make(chan struct{}), make(chan struct{})
	a := turns(t, path, "A", j, atOnce)
	a.claims = sync.OnceFunc(func() {
		close(suspended)
		<-goOn
	})
	resume := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(resume)
	over := make(chan struct{})
	b := turns(t, path, "B", j, func(_ context.Context, at *runlane.Attempt, what turn) error {
		switch {
		case what.Name == "second":
			<-over
		case at.Number == 1:
			return errors.New("again")
		}
		return nil
	})
	end := sync.OnceFunc(func() { close(over) })
	t.Cleanup(end)
	a.trigger("first")
	a.trigger("second")
	a.work(time.Minute)
	<-suspended
	b.ahead.Store(int64(31 * time.Second))
	b.work(time.Minute)
	j.await(t, "B begins second")
	a.ahead.Store(int64(52 * time.Second)) // the retry is due
	resume()
	j.await(t, "A: wakeup handed back")
	end()
	j.want(t, "B begins first", "B ends first", "B begins second", "A: wakeup handed back", "B ends second")
}

// A retry gives its place up: the next run begins, and the retry, when it is due, waits for that to end.
func TestOrdered_RetryComesBackInItsGroup(t *testing.T) {
	t.Parallel()
	j, over := newChronicle(), make(chan struct{})
	p := turns(t, newPath(t), "A", j, func(_ context.Context, a *runlane.Attempt, what turn) error {
		switch {
		case what.Name == "second":
			<-over
		case a.Number == 1:
			return errors.New("again")
		}
		return nil
	})
	end := sync.OnceFunc(func() { close(over) })
	t.Cleanup(end)
	p.trigger("first")
	p.trigger("second")
	p.work(time.Minute)
	j.await(t, "A begins second")
	p.ahead.Store(int64(21 * time.Second))
	p.tick()
	depth(t, p.sends, 1, 1) // the retry's wakeup is there, and waits
	end()
	j.want(t, "A begins first", "A ends first", "A begins second", "A ends second", "A begins first", "A ends first")
}

// A run that no program has a handler for keeps its place, until it is cancelled.
func TestOrdered_RunWithoutAHandler_HoldsTheNextRunBack(t *testing.T) {
	t.Parallel()
	j := newChronicle()
	p := turns(t, newPath(t), "A", j, atOnce)
	gone := runlane.NewTask("gone", &runlane.TaskOptions[turn]{
		Queue:          runlane.Queue{Name: "mail"},
		ConcurrencyKey: func(turn) string { return "ada" },
	})
	made, err := p.Trigger(t.Context(), gone.With(turn{"first"}), nil)
	if err != nil {
		t.Fatal(err)
	}
	p.trigger("second")
	p.work(time.Minute)
	j.until(t, func(lines []string) bool { return len(lines) >= 3 }) // it is handed back again and again
	if slices.Contains(j.all(), "A begins second") {
		t.Fatal(j.all())
	}
	if _, err := p.Runs().Cancel(t.Context(), made.Run.ID, nil); err != nil {
		t.Fatal(err)
	}
	p.ahead.Store(int64(10 * time.Second))
	p.sends.Look()
	j.await(t, "A ends second")
}

// Runs that become due before one tick come back in the order in which they are due.
func TestOrdered_TickKeepsTheOrderInWhichRunsAreDue(t *testing.T) {
	t.Parallel()
	const runs = 12
	j := newChronicle()
	p := turns(t, newPath(t), "A", j, func(_ context.Context, a *runlane.Attempt, what turn) error {
		if a.Number > 1 {
			return nil
		}
		n, err := strconv.Atoi(what.Name)
		return errors.Join(err, runlane.Release(time.Duration(runs-n)*time.Minute, "not yet"))
	})
	var want []string
	for n := range runs {
		p.trigger(strconv.Itoa(n))
		want = append(want, "A begins "+strconv.Itoa(runs-1-n), "A ends "+strconv.Itoa(runs-1-n))
	}
	end := p.work(time.Minute)
	j.until(t, func(lines []string) bool { return len(lines) == 2*runs })
	end() // the last release is recorded
	p.ahead.Store(int64(runs * time.Minute))
	p.tick()
	p.work(time.Minute)
	j.until(t, func(lines []string) bool { return len(lines) == 4*runs })
	if d := cmp.Diff(want, j.all()[2*runs:]); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// A worker that is shut down hands the wakeup of the run back that it releases: the run goes on before the next one begins,
// also where the clock is set back meanwhile.
func TestOrdered_ShutdownKeepsThePlace(t *testing.T) {
	t.Parallel()
	path, j := newPath(t), newChronicle()
	a := turns(t, path, "A", j, func(ctx context.Context, _ *runlane.Attempt, _ turn) error {
		<-ctx.Done()
		return ctx.Err()
	})
	a.ahead.Store(int64(3 * time.Second))
	a.trigger("first")
	a.trigger("second")
	end := a.work(time.Millisecond)
	j.await(t, "A begins first")
	end()
	a.stop() // what it hands back is in the file
	turns(t, path, "B", j, atOnce).work(time.Minute)
	j.want(t, "A begins first", "A ends first", "A: wakeup handed back",
		"B begins first", "B ends first", "B begins second", "B ends second")
}

// What operators see of a run that waits for its turn.
func TestOrdered_OperatorsSeeThatARunHasToWaitForItsTurn(t *testing.T) {
	t.Parallel()
	path, j := newPath(t), newChronicle()
	a, end := stuck(t, path, j)
	a.trigger("first")
	second := a.trigger("second")
	a.work(time.Minute)
	j.await(t, "A begins first")
	e, err := a.Runs().Explain(t.Context(), second)
	if err != nil || e.Wait != core.WaitWakeup || !strings.Contains(e.Next, "Its queue is ordered") {
		t.Errorf("%+v %v", e, err)
	}
	for _, q := range a.Queues().List() {
		if q.Ordered != (q.Queue.Name == "mail") {
			t.Errorf("%+v", q)
		}
	}
	end()
	j.await(t, "A ends second")
}

// A drain takes runs from the storage, which does not know the order of wakeups.
func TestOrdered_DrainIsRefused(t *testing.T) {
	t.Parallel()
	j := newChronicle()
	p := turns(t, newPath(t), "A", j, atOnce)
	p.trigger("first")
	if err := p.Work(t.Context(), &core.WorkOptions{Drain: true}); !errors.Is(err, core.ErrOrdered) {
		t.Error(err)
	}
	if got := j.all(); len(got) > 0 {
		t.Error(got)
	}
}
