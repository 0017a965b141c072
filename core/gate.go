package core

import (
	"context"
	"sync"

	"github.com/runlane/runlane-go"
)

// gate counts calls in progress and rejects new ones once it is closed.
type gate struct {
	mu      sync.Mutex
	closed  chan struct{} // made on demand; closed by close
	shut    bool
	inside  int
	drained chan struct{} // made by a waiter; closed when the last call leaves
}

// enter begins work. Pair it with leave unless it fails.
func (g *gate) enter() error { return g.admit(false) }

// enterLate begins a call that work in progress may need until its end, such as a handler's Trigger.
func (g *gate) enterLate() error { return g.admit(true) }

func (g *gate) admit(late bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut && !(late && g.inside > 0) {
		return &runlane.Error{
			Code:    runlane.ErrConfigurationInvalid,
			Message: "the runtime is closed",
			Hint:    "close it after its last use",
		}
	}
	g.inside++
	return nil
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.inside == 0 && g.drained != nil {
		close(g.drained)
		g.drained = nil
	}
}

func (g *gate) closing() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed == nil {
		g.closed = make(chan struct{})
	}
	return g.closed
}

// close closes the gate, and reports whether it was open.
func (g *gate) close() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return false
	}
	g.shut = true
	if g.closed == nil {
		g.closed = make(chan struct{})
	}
	close(g.closed)
	return true
}

// wait reports whether every call left before ctx ended.
func (g *gate) wait(ctx context.Context) bool {
	g.mu.Lock()
	if g.inside == 0 {
		g.mu.Unlock()
		return true
	}
	if g.drained == nil {
		g.drained = make(chan struct{})
	}
	drained := g.drained
	g.mu.Unlock()
	select {
	case <-drained:
		return true
	case <-ctx.Done():
		return false
	}
}

// onClose calls f when the gate closes. unhook prevents that. Its goroutine ends with either.
func (g *gate) onClose(f func()) (unhook func()) {
	closing, done := g.closing(), make(chan struct{})
	go func() {
		select {
		case <-closing:
			f()
		case <-done:
		}
	}()
	return func() { close(done) }
}
