package core

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/runlane/runlane-go"
)

const (
	// hookBuffer bounds the changes that wait for a hook.
	hookBuffer = 1024
	// hookDrain is how long Close lets hooks see the buffered changes.
	hookDrain = 2 * time.Second
)

// Hook sees every commit to a run by this process, once durable, in the order of the run's commits. Each hook has a
// separate goroutine and a bounded buffer. A slow hook loses changes, which are counted ([MetricChangesDropped]) and
// logged; a panic is recovered. A hook cannot stop, slow or change a commit. It may miss commits with a lost answer,
// and sees none of other processes: use hooks for watching, not for work that must happen.
type Hook func(Change)

// Change is one commit. The hook owns this copy.
type Change struct {
	// Run is the run after the commit, without payload and output.
	Run runlane.Run
	// Events are the appended events, in order.
	Events []runlane.EventRecord
}

func newChange(run *runlane.Run, events []runlane.EventRecord) Change {
	bare := *run
	bare.Payload, bare.Output = nil, nil
	c := Change{Run: *bare.Clone(), Events: make([]runlane.EventRecord, len(events))}
	for i, e := range events {
		c.Events[i] = e.Clone()
	}
	return c
}

type watcher struct {
	hook    Hook
	changes chan Change
	done    chan struct{} // closed when the goroutine has ended
	dropped atomic.Int64
	panics  atomic.Int64
}

type watchers struct {
	all    []*watcher
	logger *slog.Logger

	mu     sync.RWMutex // read-locked while changes are passed on
	closed bool
}

// newWatchers starts a goroutine for each hook; close ends them.
func newWatchers(hooks []Hook, logger *slog.Logger) *watchers {
	w := &watchers{logger: logger}
	for _, hook := range hooks {
		one := &watcher{hook: hook, changes: make(chan Change, hookBuffer), done: make(chan struct{})}
		w.all = append(w.all, one)
		go one.run()
	}
	return w
}

// run ends with the changes. After a hook has ended its goroutine, a new one continues with the next change.
func (w *watcher) run() {
	ended := false
	defer func() {
		if ended {
			close(w.done)
			return
		}
		w.panics.Add(1)
		go w.run()
	}()
	for change := range w.changes {
		w.call(change)
	}
	ended = true
}

func (w *watcher) call(c Change) {
	defer func() {
		if recover() != nil {
			w.panics.Add(1)
		}
	}()
	w.hook(c)
}

// pass hands a commit to every hook with room, and returns how many had none. It never blocks.
func (w *watchers) pass(run *runlane.Run, events []runlane.EventRecord) (dropped int) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.closed {
		return 0
	}
	for _, one := range w.all {
		if len(one.changes) == cap(one.changes) { // avoids the copy; the channel decides
			one.dropped.Add(1)
			dropped++
			continue
		}
		select {
		case one.changes <- newChange(run, events):
		default:
			one.dropped.Add(1)
			dropped++
		}
	}
	return dropped
}

// close lets hooks see the buffered changes, for a while. A hook that blocks is left behind with its goroutine.
func (w *watchers) close(ctx context.Context) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return
	}
	w.closed = true
	w.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, hookDrain)
	defer cancel()
	for i, one := range w.all {
		close(one.changes)
		select {
		case <-one.done:
		case <-limited.Done():
			w.logger.LogAttrs(ctx, slog.LevelWarn, "a hook does not return; it is left running", slog.Int("hook", i))
		}
		if dropped, panics := one.dropped.Load(), one.panics.Load(); dropped > 0 || panics > 0 {
			w.logger.LogAttrs(
				ctx,
				slog.LevelWarn,
				"a hook missed changes",
				slog.Int("hook", i),
				slog.Int64("dropped", dropped),
				slog.Int64("panics", panics),
			)
		}
	}
}
