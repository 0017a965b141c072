package lives

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// process is one program of several that share storage and mail: a runtime, with what stands between it and them. Once
// it is dead
// nothing that it does arrives.
type process struct {
	life  *life
	name  string
	sound bool // nothing happens to it
	limit int
	tasks map[runlane.TaskID]*runlane.Task[payload]
	rt    *core.Runtime
	dead  atomic.Bool
	over  chan struct{} // closed with its death
	end   sync.Once

	mu   sync.Mutex
	next *visit // what the next execution is to do; nil succeeds
}

// errDead is what a dead process is told, so that it ends: there is no caller whom it could tell.
func errDead() *runlane.Error {
	return &runlane.Error{Code: runlane.ErrInternal, Message: "this process is dead"}
}

func (p *process) die() {
	p.end.Do(func() {
		p.dead.Store(true)
		close(p.over)
	})
}

// dies reports a process that is dead, or dies of this call.
func (p *process) dies(f fault, method, about string) bool {
	if p.meets(f, method, about) {
		p.die()
	}
	return p.dead.Load()
}

func (p *process) meets(f fault, method, about string) bool {
	return !p.sound && !p.dead.Load() && p.life.trouble.strikes(f, method, about)
}

// open starts a process with a limit of the bounded queue. A sound one is how the life looks at things.
func (l *life) open(limit int, sound bool) *process {
	p := &process{
		life:  l,
		name:  fmt.Sprint("process-", len(l.opened)),
		sound: sound,
		limit: limit,
		tasks: definitions()[limit],
		over:  make(chan struct{}),
	}
	l.opened = append(l.opened, p)
	options := &core.Options{
		Environment: l.world.Environment, Logger: slog.New(slog.DiscardHandler), MaxAbandoned: l.maxAbandoned,
		World: &core.World{Now: l.clock.Now, Rand: func() uint64 { return l.random }, NewID: l.newID},
	}
	for _, t := range everyTask {
		if !t.strange {
			options.Handlers = append(options.Handlers, p.tasks[t.id].Handle(p.handle))
		}
	}
	if l.schedule != nil {
		options.Schedules = []runlane.Schedule{l.schedule.define(p)}
	}
	joined, err := lane.New(newDoor(p, l.world.Storage(sound)), &post{p: p}, nil)
	if err != nil {
		l.fail("no lane: %v", err)
	}
	if p.rt, err = core.Open(l.ctx, joined, options); err != nil {
		l.fail("no runtime: %v", err)
	}
	return p
}

var anyOutcome = []string{
	succeeds,
	succeeds,
	succeeds,
	triggers,
	fails,
	fails,
	failsFinal,
	retryAfter,
	releases,
	releases,
	blocks,
	panics,
	stops,
	kills,
}

// visit is one execution: what it is to do, and its outcome.
type visit struct {
	outcome  outcome
	after    int  // how many parts of a program come before the outcome
	waits    bool // for a step to say the outcome
	decision chan outcome
	begun    chan struct{}
	// ctx is of the handler, once it has begun: the life asks whether it has ended.
	ctx    context.Context // see above
	token  string          // of its lease
	done   chan struct{}   // the delivery is over
	cancel context.CancelFunc

	p      *process
	letter letter
	result *core.DeliveryResult
	err    error
}

// cancelled reports that the handler was told of a requested cancellation.
func (v *visit) cancelled() bool { return errors.Is(context.Cause(v.ctx), runlane.ErrCancelRequested) }

func (p *process) prepare(v *visit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = v
}

func (p *process) takeNext() *visit {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := p.next
	p.next = nil
	if v == nil {
		v = &visit{outcome: outcome{kind: succeeds}}
	}
	return v
}

// outputOf is what an attempt leaves when it succeeds.
func outputOf(attempt int) string { return fmt.Sprintf(`{"attempt": %d}`, attempt) }

func (p *process) handle(ctx context.Context, a *runlane.Attempt, load payload) error {
	p.life.book.executes(a.Run.ID, a.Number)
	err := p.lives(ctx, a, load)
	switch {
	case err == nil:
		p.life.book.succeeds(a.Run.ID, a.Number)
	case runlane.Suspended(err):
		p.life.book.suspends(a.Run.ID, a.Number)
	}
	return err
}

// lives does what the payload's program says, and in its midst what a step has drawn.
func (p *process) lives(ctx context.Context, a *runlane.Attempt, load payload) error {
	v := p.takeNext()
	p.judgeNode(ctx, &a.Run)
	performs := p.performs(a)
	first := load.Program[:min(v.after, len(load.Program))]
	if err := performs.all(ctx, first, 0); err != nil {
		return err
	}
	if err := a.SetOutput(json.RawMessage(outputOf(a.Number))); err != nil {
		return err
	}
	o := v.outcome
	if v.waits {
		var dead bool
		if o, dead = v.await(ctx, a); dead {
			return errDead()
		}
	}
	if err := p.act(ctx, a, o); err != nil {
		return err
	}
	return performs.all(ctx, load.Program[len(first):], len(first))
}

// await is the handler of an attempt that lasts until a step ends it, its context, or the process.
func (v *visit) await(ctx context.Context, a *runlane.Attempt) (o outcome, dead bool) {
	v.ctx, v.token = ctx, a.Run.Lease.Token
	close(v.begun)
	select {
	case o = <-v.decision:
		return o, false
	case <-v.p.over:
		return o, true
	case <-ctx.Done():
	}
	if !v.cancelled() {
		return outcome{kind: stops}, false
	}
	select { // it would race the step that cancelled its run: settle says when it returns
	case o = <-v.decision:
		return o, false
	case <-v.p.over:
		return o, true
	}
}

// act is what a handler does beside its program: unless it succeeds, that is its end.
func (p *process) act(ctx context.Context, a *runlane.Attempt, o outcome) error {
	switch o.kind {
	case triggers:
		result, err := a.Trigger(context.WithoutCancel(ctx), p.tasks["once"].With(payload{N: 77}), nil)
		if err != nil {
			return err
		}
		p.life.book.answers(result.Run.ID)
	case kills:
		if !p.sound {
			p.life.tally.fault(string(deathInside))
			p.die()
			return errDead()
		}
	}
	return o.returns(ctx)
}
