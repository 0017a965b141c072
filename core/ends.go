package core

import (
	"context"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
)

const (
	// Wait asks again after waitFirst, then at growing distance up to waitLast.
	waitFirst = 10 * time.Millisecond
	waitLast  = 5 * time.Second
)

// ends wakes those that wait in this process for what it ends itself. The zero value is ready; safe for concurrent use.
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
	told    chan struct{}
	waiters int
}

// wait returns a channel that is closed once the end is told. stop has to be called.
func (e *ends) wait(of endOf) (told <-chan struct{}, stop func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w := e.waiting[of]
	if w == nil {
		if w = (&endWait{told: make(chan struct{})}); e.waiting == nil {
			e.waiting = map[endOf]*endWait{}
		}
		e.waiting[of] = w
	}
	w.waiters++
	return w.told, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if w.waiters--; w.waiters == 0 && e.waiting[of] == w {
			delete(e.waiting, of)
		}
	}
}

func (e *ends) tell(of endOf) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w := e.waiting[of]; w != nil {
		close(w.told)
		delete(e.waiting, of)
	}
}

// await asks whether something has ended: at once, when this process has ended it, and at growing distance, since
// another process may. over reports that it has.
func (rt *Runtime) await(ctx context.Context, of endOf, over func() (bool, error)) error {
	told, stop := rt.ends.wait(of)
	defer stop()
	for wait := waitFirst; ; wait = min(wait*3/2, waitLast) {
		if done, err := over(); done || err != nil {
			return err
		}
		timer := time.NewTimer(rt.world.around(wait))
		select {
		case <-told:
			told = nil
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return cancelled(ctx, "")
		}
		timer.Stop()
	}
}
