package sqlitelane_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/crash"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane"
	"github.com/runlane/runlane-go/sqlitelane/internal/powerloss"
)

// crashLane is one process's way to the file. Every command to the file is an effect.
type crashLane struct {
	path    string
	trap    *crash.Trap     // in the process that dies
	disk    *powerloss.Disk // where power is lost
	storage *sqlitelane.Storage
	sends   *sqlitelane.Transport
}

func crashChildLane(place map[string]string, trap *crash.Trap) crash.Lane {
	return &crashLane{path: place["path"], trap: trap}
}

func (l *crashLane) Place() map[string]string { return map[string]string{"path": l.path} }

func (l *crashLane) Environ() []string { return os.Environ() }

func (l *crashLane) Open(p *crash.Process) (*lane.Lane, error) {
	switch {
	case l.trap != nil:
		l.storage = sqlitelane.NewTracedStorage(l.path, p.Now, func() (durable func()) { return l.trap.Effect(chain(), nil) })
	case l.disk != nil:
		l.storage = sqlitelane.NewStorageOn(l.path, l.disk, false)
		l.storage.SetNow(p.Now)
	default:
		l.storage = sqlitelane.NewRelaxedStorage(l.path, p.Now)
	}
	l.sends = sqlitelane.NewTransport(l.storage, orderedQueue.Name)
	return lane.New(l.storage, l.sends, nil)
}

// workers are the attempts of a process at a time.
const workers = 2

func (l *crashLane) Deliver(ctx context.Context, p *crash.Process, once bool) error {
	if !once {
		return p.Work(ctx, &core.WorkOptions{NoTick: true, Concurrency: workers}, 2*time.Millisecond, l.idle)
	}
	wakeups, _, err := l.sends.Depth(ctx, runlane.DefaultQueue.Name)
	for n := 0; n < wakeups && err == nil; n++ {
		_, err = p.Runtime.ExecuteNext(ctx, nil)
	}
	return err
}

// idle reports that no wakeup can be taken, and none is being handled.
func (l *crashLane) idle(ctx context.Context, _ *crash.Process) (bool, error) {
	for _, name := range []runlane.QueueName{runlane.DefaultQueue.Name, crash.Narrow.Name, crash.Paced.Name, orderedQueue.Name} {
		visible, inFlight, err := l.sends.Depth(ctx, name)
		if err != nil || visible+inFlight > 0 {
			return false, err
		}
	}
	return true, nil
}

func (l *crashLane) Tick(ctx context.Context, p *crash.Process) error {
	_, err := p.Runtime.Tick(ctx, nil)
	return err
}

func (l *crashLane) Advance(time.Duration) {} // the file has no clock

func (l *crashLane) Lose() error { return l.storage.Lose() }

func (l *crashLane) Runs(p *crash.Process) (ids []runlane.RunID, err error) {
	page, err := p.Runtime.Runs().List(context.Background(), nil)
	if err == nil {
		for _, run := range page.Items {
			ids = append(ids, run.ID)
		}
	}
	return ids, err
}

func (l *crashLane) Faults(e *crash.End) {
	if fault, err := l.storage.Sound(); err != nil || fault != "" {
		e.Fault("the file: %s %v", fault, err)
	}
}

// chain are the product's functions on the stack, the outermost first.
func chain() string {
	const module = "github.com/runlane/runlane-go/"
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	var names []string
	for {
		f, more := frames.Next()
		name, ours := strings.CutPrefix(f.Function, module)
		if ours && !strings.HasSuffix(f.File, "_test.go") && !strings.Contains(f.File, "/internal/") {
			name, _, _ = strings.Cut(name, ".func")
			if len(names) == 0 || names[len(names)-1] != name {
				names = append(names, name)
			}
		}
		if !more {
			break
		}
	}
	slices.Reverse(names)
	return strings.Join(names, " > ")
}

// orderedQueue is an ordered queue.
var orderedQueue = runlane.Queue{Name: "turns"}

// queued executes in the order of its runs: they have one key.
var queued = runlane.NewTask("queued", &runlane.TaskOptions[crash.Act]{
	Queue: orderedQueue, ConcurrencyKey: func(crash.Act) string { return "ada" }, Retry: crash.Retry,
})

// crashScenarios are those of all lanes, and of the ordered queue.
func crashScenarios() []crash.Scenario {
	call := queued.With(crash.Act{})
	trigger := crash.Scenario{Name: "trigger in order", Judge: inOrder, Act: func(_ context.Context, p *crash.Process) error {
		for range 3 {
			p.Trigger(call, nil)
		}
		return nil
	}}
	deliver := crash.Delivering("delivery in order", call, call, call)
	deliver.Judge = inOrder
	retry := crash.Delivering("delivery in order that is retried", queued.With(crash.Act{Do: "fail"}), call)
	ordered := []crash.Scenario{trigger, deliver, retry}
	for i := range ordered {
		ordered[i].Options = func(p *crash.Process, o *core.Options) { o.Handlers = append(o.Handlers, queued.Handle(p.Execute)) }
	}
	return append(ordered, crash.Scenarios()...)
}

// inOrder wants every run to have succeeded, and none to have begun before those that were triggered earlier had ended.
func inOrder(e *crash.End) {
	crash.Succeed(e)
	order := e.Effects()
	place := func(one crash.Effect) int {
		if at := slices.Index(e.Promised, one.Run); at >= 0 {
			return at
		}
		return len(e.Promised) // its trigger did not return
	}
	for n := 1; n < len(order); n++ {
		if place(order[n]) < place(order[n-1]) {
			e.Fault("not in the order of their triggers: %v, triggered %v", order, e.Promised)
		}
	}
}

// thorough tests try all that there is. The gate tries every third point of runs that wait, whose every commit is ended by
// a loss of power there, and leaves out what is slow, and losses of power of other runs.
var thorough = false

func TestCrash_SQLite_AtEveryPoint_NothingIsLost(t *testing.T) {
	t.Parallel()
	b := &crash.Bench{
		Scenarios: crashScenarios(), AtOnce: workers,
		Lanes: func(*testing.T, *crash.Scenario) func(*testing.T) crash.Lane {
			return func(t *testing.T) crash.Lane {
				t.Helper()
				return &crashLane{path: filepath.Join(memoryFolder(t), "runlane.db")}
			}
		},
		Every: func(s *crash.Scenario) int {
			if s.Waits && !thorough {
				return 3
			}
			return 1
		},
	}
	b.Scenarios = slices.DeleteFunc(b.Scenarios, func(s crash.Scenario) bool { return s.Slow && !thorough })
	b.Run(t)
}
