package sqlitelane

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
)

// reception is one call of Receive.
type reception struct {
	queues []runlane.QueueName
	now    func() time.Time
	handed chan message  // has room for each worker
	look   chan struct{} // has room for one signal: there may be something to take

	// backlog makes the next idle worker look. Most wakeups are handed over without a look.
	backlog atomic.Bool

	turns map[int64]string // the key that had the last turn, by queue; only the pump uses it

	failing atomic.Bool // the last look failed and was logged

	mu     sync.Mutex
	idle   int             // workers waiting on handed, minus those reserved
	flying map[int64]int64 // wakeups in handlers: number by take
	over   bool
	due    *time.Timer // for wakeups that become visible later
	dueAt  time.Time
}

// message is a taken wakeup.
type message struct {
	n       int64
	take    int64 // see nextTake
	visible int64
	refused int64
	grouped bool // others of its group may be parked behind it
	key     string
	wakeup  lane.Wakeup
}

// Receive calls handle from concurrency goroutines until ctx ends or the transport is closed. Idle goroutines block. A
// refused wakeup is redelivered after a pause, to any receiver of its queue in any process.
func (t *Transport) Receive(
	ctx context.Context, queues []runlane.QueueName, concurrency int, handle func(context.Context, lane.Wakeup) error,
) error {
	if err := embedded.JudgeReceive(queues, concurrency); err != nil {
		return err
	}
	if t.isClosed() {
		return nil
	}
	if f, err := t.storage.opened(); err != nil {
		return err
	} else if err := f.ReadOnly(); err != nil {
		return err
	}
	receiving, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &reception{
		queues: slices.Compact(slices.Sorted(slices.Values(queues))),
		now:    t.storage.now,
		handed: make(chan message, concurrency),
		look:   make(chan struct{}, 1),
		flying: map[int64]int64{},
		turns:  map[int64]string{},
	}
	t.join(r)
	r.nudge()
	var pump, workers sync.WaitGroup
	pump.Go(func() { t.pump(receiving, r) })
	attempt := context.WithoutCancel(ctx)
	for range concurrency { // each ends with ctx or the transport, after its handler returned
		workers.Go(func() {
			for {
				next, ok := t.next(receiving, r)
				if !ok {
					return
				}
				w := next.wakeup
				w.TraceCarrier = maps.Clone(w.TraceCarrier)
				t.settle(r, next, handle(withWakeup(attempt, &next), w))
			}
		})
	}
	workers.Wait()
	cancel()
	pump.Wait()
	t.leave(r)
	return nil
}

// wakeupKey is the context key of a handler's wakeup.
type wakeupKey struct{}

// withWakeup adds a grouped wakeup to the handler's context, for [tx.stillHolds].
func withWakeup(ctx context.Context, m *message) context.Context {
	if !m.grouped {
		return ctx
	}
	return context.WithValue(ctx, wakeupKey{}, m)
}

// stillHolds reports whether the wakeup that the claim answers still belongs to this process. If it was taken again,
// the run had its turn. Claims outside a handler, or for other runs, answer no wakeup.
func (t *tx) stillHolds(ctx context.Context, run runlane.RunID) (bool, error) {
	m, ok := ctx.Value(wakeupKey{}).(*message)
	if !ok || m.wakeup.RunID != run {
		return true, nil
	}
	n, err := t.Number("SELECT count(*) FROM messages WHERE n = ? AND taken = ?", m.n, m.take)
	return n > 0, err
}

func (t *Transport) join(r *reception) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range r.queues {
		t.receptions[name] = append(t.receptions[name], r)
	}
	if t.watched++; t.watched == 1 {
		var ctx context.Context
		ctx, t.unwatch = context.WithCancel(context.Background())
		t.watching.Go(func() { t.watch(ctx) })
	}
}

// leave removes the reception from its queues and puts back wakeups that no worker took.
func (t *Transport) leave(r *reception) {
	t.mu.Lock()
	for _, name := range r.queues {
		t.receptions[name] = slices.DeleteFunc(t.receptions[name], func(other *reception) bool { return other == r })
	}
	if t.watched--; t.watched == 0 {
		t.unwatch()
	}
	t.mu.Unlock()
	r.mu.Lock()
	r.over = true
	if r.due != nil {
		r.due.Stop()
	}
	r.mu.Unlock()
	for {
		select {
		case next := <-r.handed:
			t.putBack(next)
		default:
			return
		}
	}
}

// next waits for a wakeup; ok is false when the worker must end.
func (t *Transport) next(ctx context.Context, r *reception) (next message, ok bool) {
	if ctx.Err() != nil || t.isClosed() {
		return message{}, false
	}
	r.mu.Lock()
	r.idle++
	r.mu.Unlock()
	if r.backlog.Load() {
		r.nudge()
	}
	select {
	case next = <-r.handed:
		return next, true
	case <-ctx.Done():
	case <-t.closed:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.idle-- // negative while a wakeup is handed over; leave puts that back
	return message{}, false
}

// reserve reserves an idle worker of the wakeup's queue, or returns nil.
func (t *Transport) reserve(w *lane.Wakeup) *reception {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isClosed() || w.Environment.Name() != t.environment.Name() {
		return nil
	}
	for i, r := range t.receptions[w.Queue] {
		if r.reserve(1) == 1 {
			if all := t.receptions[w.Queue]; len(all) > 1 { // take turns
				t.receptions[w.Queue] = append(append(slices.Clone(all[:i]), all[i+1:]...), r)
			}
			return r
		}
	}
	return nil
}

func (r *reception) reserve(most int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(most, r.idle)
	if r.over || n <= 0 {
		return 0
	}
	r.idle -= n
	return n
}

func (r *reception) unreserve(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.idle += n
}

// handOver gives a wakeup to its reserved worker. If it was not written, the worker is idle again.
func (t *Transport) handOver(r *reception, next message, written bool) {
	if !written {
		r.unreserve(1)
		return
	}
	r.mu.Lock()
	over := r.over
	if !over {
		r.flying[next.take] = next.n
		r.handed <- next // has room for each worker
	}
	r.mu.Unlock()
	if over {
		t.putBack(next)
	}
}

// settle acknowledges a wakeup, or makes a refused one visible after a pause. Nobody waits for the write: after a
// crash the wakeup is redelivered, which is harmless. It changes nothing if the wakeup was taken again while this
// process was suspended or could not write.
func (t *Transport) settle(r *reception, done message, err error) {
	r.mu.Lock()
	delete(r.flying, done.take)
	r.mu.Unlock()
	if err == nil {
		t.later(func(tx *file.Tx) error {
			now := t.storage.now()
			if done.grouped {
				t.announce(tx, done.wakeup.Queue, now)
			}
			return remove(tx, &done, now)
		})
		return
	}
	longest := maxHandBack
	if done.grouped {
		longest = maxOrderedHandBack
	}
	pause := embedded.HandBackPause(t.handBack, longest, done.refused)
	now := t.storage.now()
	t.later(func(tx *file.Tx) error {
		t.announce(tx, done.wakeup.Queue, now.Add(pause))
		return tx.Exec(`UPDATE messages SET visible = ?, told = ?, taken = ?, refused = refused + 1
			WHERE n = ? AND taken = ?`,
			now.Add(pause).UnixMilli(), now.UnixMilli(), int64(handedBack), done.n, done.take)
	})
}

func (t *Transport) putBack(next message) {
	t.later(func(tx *file.Tx) error {
		now := t.storage.now()
		t.announce(tx, next.wakeup.Queue, now)
		return tx.Exec("UPDATE messages SET visible = ?1, told = ?1, taken = 0 WHERE n = ?2 AND taken = ?3",
			now.UnixMilli(), next.n, next.take)
	})
}

func (t *Transport) later(run func(*file.Tx) error) {
	if f, err := t.storage.opened(); err == nil {
		f.Later(run)
	}
}

func (r *reception) nudge() {
	r.backlog.Store(true)
	select {
	case r.look <- struct{}{}:
	default:
	}
}
