package lives

import (
	"context"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lane"
)

// life is one random sequence of steps without an oracle.
type life struct {
	driver[*life]

	ctx     context.Context // the life is one call
	world   *World
	truth   lane.Storage // where no request goes wrong
	weather *weather
	trouble *trouble
	clock   *scenarios.Clock
	mail    *mail
	book    *book
	seed    uint64 // of what goes wrong
	random  uint64 // what every runtime's World.Rand returns

	schedule     *scheduleKind
	maxAbandoned int
	limit        int // the largest limit so far; 0: there was none, or a deployment without
	processes    []*process
	observer     *process // to which nothing happens
	opened       []*process
	flying       []*visit // attempts that last until a step ends them
	keys         []owned  // idempotency keys in use
	sent         []sending
	graphs       []*graph
	pruning      bool // since the last look
	tried        int  // steps
	ids          idMaker
}

// beginning is when every life begins.
var beginning = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// newLife draws what does not change in a life. makeWorld makes its world.
func newLife(ctx context.Context, f fate, t *tally, makeWorld func(*life) *World) *life {
	l := &life{ctx: ctx, clock: scenarios.NewClock(beginning), mail: &mail{}, book: newBook()}
	l.driver = driver[*life]{
		self:     l,
		fate:     f,
		tally:    t,
		steps:    allSteps,
		now:      l.clock.Now,
		before:   l.before,
		after:    l.after,
		conclude: l.conclude,
		soon:     2 * time.Second,
		delays:   delays,
	}
	l.seed = uint64(l.below("seed of faults", 1<<16)) + 1 // positive
	l.random = pick(l, "jitter", []uint64{0, 1 << 63, 1<<64 - 1})
	l.weather = pick(l, "weather", []*weather{&weathers[0], &weathers[1], &weathers[1], &weathers[2]})
	l.habit = pick(l, "habit", habits)
	l.trouble = newTrouble(l.seed, t)
	l.note("%s weather, %s, faults of seed %d", l.weather.name, l.habit.name, l.seed)
	l.maxAbandoned = 2 + l.below("abandoned", 3)
	if l.habit.scheduled || l.chance("scheduled", 6) {
		l.schedule = pick(l, "schedule", scheduleKinds)
	}
	l.world = makeWorld(l)
	l.truth = l.world.Storage(true)
	l.limit = 1 + l.below("limit", mostSlots)
	l.observer = l.open(l.limit, true)
	for range 2 {
		l.processes = append(l.processes, l.open(l.limit, false))
	}
	return l
}

// close ends whatever is still under way, also where the context has ended.
func (l *life) close() error {
	for _, p := range l.opened {
		p.die()
	}
	for _, v := range l.flying {
		<-v.done
	}
	for _, p := range l.opened {
		_ = p.rt.Close(context.Background())
	}
	return l.world.Close(context.WithoutCancel(l.ctx))
}

// before says what may go wrong in the next step.
func (l *life) before() {
	l.tried++
	rates := map[fault]float64{}
	for f, rate := range l.weather.calls {
		if l.world.DoorMeets || f != failedCall && f != unheard && f != repeated {
			rates[f] = rate
		}
	}
	if l.chance("danger", 10) {
		rates[deathBefore], rates[deathAfter] = 0.1, 0.1
	}
	l.trouble.begin(l.tried, rates)
	l.world.Begin(l.tried)
}

// after looks at what a step left.
func (l *life) after() {
	l.settle()
	l.trouble.begin(l.tried, nil)
	l.look()
}

// allows judges the error of a call. A dead process has none; where things go wrong a call may fail for that, and it is
// unknown what
// came of it.
func (l *life) allows(p *process, what string, err error, codes ...runlane.ErrorCode) {
	if err == nil || p.dead.Load() {
		return
	}
	l.note("  %s: %v", what, err)
	code := runlane.CodeOf(err)
	if slices.Contains(codes, code) {
		return
	}
	if l.weather.calls != nil && slices.Contains(outages, code) {
		return
	}
	l.fail("%s: %v", what, err)
}

var outages = []runlane.ErrorCode{
	runlane.ErrStorageUnavailable,
	runlane.ErrTransportUnavailable,
	runlane.ErrTransportPublishFailed,
}

const toldStep = "(told of a cancellation)"

// settle lets handlers return that this step, or a heartbeat during it, told of a requested cancellation.
func (l *life) settle() {
	l.flying = slices.DeleteFunc(l.flying, func(v *visit) bool {
		if v.p.dead.Load() || !v.cancelled() {
			return false
		}
		l.note("  %s: told of the cancellation", v.p.name)
		l.tally.add("seen", toldStep, 1)
		l.finish(v, outcome{kind: stops})
		return true
	})
}

// bury removes dead processes with all that they had under way, and starts others.
func (l *life) bury() {
	l.flying = slices.DeleteFunc(l.flying, func(v *visit) bool {
		if v.p.dead.Load() {
			<-v.done
			l.handBack(v)
		}
		return v.p.dead.Load()
	})
	for i, p := range l.processes {
		if p.dead.Load() {
			l.note("  %s is dead", p.name)
			l.processes[i] = l.open(p.limit, false)
		}
	}
}

// handBack returns a wakeup that was not acknowledged: its time of invisibility ends.
func (l *life) handBack(v *visit) {
	if v.letter.wakeup.RunID != "" {
		v.letter.arrives = l.clock.Now().Add(30 * time.Second)
		l.mail.put(v.letter)
	}
}

// explain asks why a run is where it is: there is always a reason with a name.
func (l *life) explain(run *runlane.Run) *core.Explanation {
	got, err := l.observer.rt.Runs().Explain(l.ctx, run.ID)
	if err != nil {
		l.fail("explain %s: %v", run.ID, err)
	}
	if !slices.Contains(core.Waits(), got.Wait) || got.Next == "" ||
		(got.Wait == core.WaitNone) != run.Status.Terminal() {
		l.fail("it is unknown what run %s waits for: %+v, %+v", run.ID, got, run)
	}
	if !got.Until.Before(runlane.FarMoment()) { // a tick moves it on: the clock does not go there
		got.Until = time.Time{}
	}
	return got
}

func (l *life) process() *process { return pick(l, "process", l.processes) }

// someRun draws one of the runs that a step is about, now and then any; nil when there is none.
func (l *life) someRun(wanted func(*runlane.Run) bool) *runlane.Run {
	return someOf(l, l.book.runs(), wanted)
}
