package core

import (
	"strings"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

const (
	// callLook is when a run looks again for runs that no one tells it of: they were there before their call.
	callLook = time.Minute
	// callLookMax bounds how rarely a run looks again that waits for more calls than a suspension can depend on.
	callLookMax = time.Hour
)

// suspension is what the calls of an attempt wait for. Several goroutines of a handler may wait at once: the release
// carries all of it, and any of it resumes the run.
type suspension struct {
	mu    sync.Mutex
	waits []pendingWait // at most one of a name and kind: a handler may ask again
	again bool          // the handler was called before in this attempt
	call  *handlerCall  // the present one; nil: nothing has waited in it
}

// pendingWait is what one call of an attempt waits for.
type pendingWait struct {
	name   string
	wait   *runlane.Waiting
	mailed int64     // how many signals there were at the first look; -1: it waits for none
	called time.Time // when the runs were called whose ends are missing; zero: it waits for none
}

// handlerCall is one call of a handler: an attempt makes several where something comes between a look and the
// suspension. Pointers to it are compared.
type handlerCall struct{ _ byte }

// callWaits is the error of a call without an answer. It means something in that call of its handler alone: another one
// has not looked. What a handler asks for itself, by Release or Block, means the same everywhere: it is in no call.
type callWaits struct {
	*runlane.ReleaseError

	in *handlerCall
}

// Unwrap lets errors.As find what is asked for.
func (e *callWaits) Unwrap() error { return e.ReleaseError }

// names are those of the calls that wait, for the log.
func (s *suspension) names() string {
	names := make([]string, len(s.waits))
	for i := range s.waits {
		names[i] = s.waits[i].name
	}
	return strings.Join(names, ", ")
}

// all is what the calls wait for together, and what they have looked at: the smallest count of the mail, -1 for no
// look, and the calls of which ends were missing. Beyond lane.MaxLookCalls of them the suspension depends on no more,
// and an end may be counted between the look and the suspension: the run looks again by itself, ever more rarely.
func (s *suspension) all(now time.Time) (wait *runlane.Waiting, mailed int64, calls []string) {
	mailed = -1
	for i := range s.waits {
		p := &s.waits[i]
		wait = wait.Union(p.wait)
		if p.mailed >= 0 && (mailed < 0 || p.mailed < mailed) {
			mailed = p.mailed
		}
		switch {
		case p.called.IsZero():
		case len(calls) < lane.MaxLookCalls:
			calls = append(calls, p.name)
		default:
			again := min(max(now.Sub(p.called), callLook), callLookMax)
			wait = wait.Union(&runlane.Waiting{
				For: []runlane.WaitingFor{runlane.WaitingTime}, Until: ceilMillis(now.Add(again)),
			})
		}
	}
	return wait, mailed, calls
}
