package core

import (
	"context"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
)

const (
	// Wait polls after waitFirst, then at growing intervals up to waitLast.
	waitFirst = 10 * time.Millisecond
	waitLast  = 5 * time.Second
)

// ends wakes those in this process who wait for the end of a run or flow, if this process ends it. The zero value is
// ready; safe for concurrent use.
type ends struct {
	mu      sync.Mutex
	waiting map[endOf]*endWait
}

// endOf names a run or a flow.
type endOf struct {
	run  runlane.RunID
	flow runlane.FlowID
}

type endWait struct {
	ended   chan struct{}
	waiters int
}

// wait returns a channel that is closed by notify. Call stop.
func (e *ends) wait(of endOf) (ended <-chan struct{}, stop func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.waiting[of]
	if w == nil {
		if w = (&endWait{ended: make(chan struct{})}); e.waiting == nil {
			e.waiting = map[endOf]*endWait{}
		}
		e.waiting[of] = w
	}
	w.waiters++
	return w.ended, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if w.waiters--; w.waiters == 0 && e.waiting[of] == w {
			delete(e.waiting, of)
		}
	}
}

func (e *ends) notify(of endOf) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w := e.waiting[of]; w != nil {
		close(w.ended)
		delete(e.waiting, of)
	}
}

// await polls over until it is true: at growing intervals, since another process may end the run, and at once when this
// one does.
func (rt *Runtime) await(ctx context.Context, of endOf, over func() (bool, error)) error {
	ended, stop := rt.ends.wait(of)
	defer stop()
	for wait := waitFirst; ; wait = min(wait*3/2, waitLast) {
		if done, err := over(); done || err != nil {
			return err
		}
		timer := time.NewTimer(rt.world.around(wait))
		select {
		case <-ended:
			ended = nil
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return cancelled(ctx, "")
		}
		timer.Stop()
	}
}
