package core

import (
	"sync"
	"time"

	"github.com/runlane/runlane-go"
)

const sweepInterval = time.Second

// executionSet holds attempts in progress, to end them together and to renew their leases, with one timer for all. The
// timer runs only while there are attempts, so short attempts cost none.
type executionSet struct {
	mu    sync.Mutex
	all   map[*execution]struct{}
	down  bool
	timer *time.Timer
	armed bool
}

func (s *executionSet) add(x *execution, firstBeat time.Duration) {
	s.mu.Lock()
	if s.all == nil {
		s.all = make(map[*execution]struct{})
	}
	x.beatAt = time.Now().Add(firstBeat)
	s.all[x] = struct{}{}
	switch {
	case s.armed:
	case s.timer == nil:
		s.timer = time.AfterFunc(sweepInterval, s.sweep)
	default:
		s.timer.Reset(sweepInterval)
	}
	s.armed = true
	down := s.down
	s.mu.Unlock()
	if down {
		x.end(runlane.ErrShutdown)
	}
}

// localAttempts finds attempts here by lease token, for cancellations requested here.
type localAttempts struct {
	mu      sync.Mutex
	byToken map[string]*execution // nil: the claim is in progress; cancelledEarly: also, and the run was cancelled
}

var cancelledEarly = new(execution)

// expect announces a claim: the run may be cancelled before the claim is answered. Pair it with forget.
func (l *localAttempts) expect(token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byToken == nil {
		l.byToken = make(map[string]*execution)
	}
	l.byToken[token] = nil
}

func (l *localAttempts) add(x *execution) {
	l.mu.Lock()
	early := l.byToken[x.token] == cancelledEarly
	l.byToken[x.token] = x
	l.mu.Unlock()
	if early {
		x.end(runlane.ErrCancelRequested)
	}
}

func (l *localAttempts) forget(token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byToken, token)
}

// cancel ends the context of the attempt with this lease, if it is here. The request is stored already: the commit of
// the outcome finds it like any other commit in between.
func (l *localAttempts) cancel(token string) {
	l.mu.Lock()
	x, here := l.byToken[token]
	if here && x == nil {
		l.byToken[token] = cancelledEarly
	}
	l.mu.Unlock()
	if x != nil && x != cancelledEarly {
		x.end(runlane.ErrCancelRequested)
	}
}

func (s *executionSet) remove(x *execution) {
	s.mu.Lock()
	delete(s.all, x)
	s.mu.Unlock()
}

// sweep starts due heartbeats, each in a goroutine that ends with it. It runs in the timer's goroutine.
func (s *executionSet) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.armed = len(s.all) > 0; !s.armed {
		return
	}
	s.timer.Reset(sweepInterval)
	now := time.Now()
	for x := range s.all {
		if !x.beatAt.IsZero() && !now.Before(x.beatAt) {
			x.beatAt = time.Time{} // until this heartbeat is over
			go x.beat()
		}
	}
}

func (s *executionSet) beatLater(x *execution, d time.Duration) {
	s.mu.Lock()
	x.beatAt = time.Now().Add(d)
	s.mu.Unlock()
}

// shutDown ends every attempt, including later ones.
func (s *executionSet) shutDown() {
	s.mu.Lock()
	s.down = true
	all := make([]*execution, 0, len(s.all))
	for x := range s.all {
		all = append(all, x)
	}
	s.mu.Unlock()
	for _, x := range all {
		x.end(runlane.ErrShutdown)
	}
}
