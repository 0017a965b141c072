package remote

import (
	"context"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/fail"
)

// Host is the runtime's side of a search. Through Search.Take both calls begin at most one attempt.
type Host interface {
	// Receive takes wakeups until receiving ends. ctx is the client's.
	Receive(ctx, receiving context.Context) error
	// Look takes due runs without wakeups, after the client has waited for a moment.
	Look(receiving context.Context)
	// OnClose calls f when the runtime closes. Leave allows it to close.
	OnClose(f func()) (unhook func())
	Leave()
}

// Search looks for one run for a client.
type Search struct {
	mu    sync.Mutex // held while a run is taken
	over  bool       // a run was taken
	found chan struct{}
	stop  func()
}

func NewSearch() *Search { return &Search{found: make(chan struct{}), stop: func() {}} }

// Take lets a delivery claim a run, unless one was claimed or the caller is gone.
func (s *Search) Take(ctx context.Context, id runlane.RunID, deliver func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || ctx.Err() != nil {
		return fail.Cancelled(ctx, id)
	}
	return deliver()
}

// Found is called by the delivery that has begun the attempt. From then on the client owns it.
func (s *Search) Found() {
	s.over = true
	close(s.found)
	s.stop()
}

func (s *Search) HasFound() bool {
	select {
	case <-s.found:
		return true
	default:
		return false
	}
}

// Run searches until a run is found, ctx ends, or wait is over; a wait of 0 has no limit. Received wakeups are settled
// in the background.
func (s *Search) Run(ctx context.Context, host Host, wait time.Duration) error {
	receiving, stop := context.WithCancel(ctx)
	if wait > 0 {
		receiving, stop = context.WithTimeout(ctx, wait)
	}
	unhook := host.OnClose(stop)
	s.stop = stop
	ended := make(chan error, 1)
	go func() { // ends with receiving, after all wakeups are settled
		defer host.Leave()
		defer unhook()
		defer stop()
		var looking sync.WaitGroup
		looking.Go(func() { host.Look(receiving) })
		err := host.Receive(ctx, receiving)
		stop()
		looking.Wait()
		ended <- err
	}()
	select {
	case <-s.found:
		return nil
	case err := <-ended:
		if err == nil && ctx.Err() != nil && !s.HasFound() {
			err = fail.Cancelled(ctx, "")
		}
		return err
	}
}
