package core

import (
	"strings"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

const (
	// callLook is when a run checks again for children that existed before their call: they never notify it.
	callLook = time.Minute
	// callLookMax caps that interval for a run with more calls than a suspension can depend on.
	callLookMax = time.Hour
)

// suspension joins the waits of an attempt's calls. Several goroutines of a handler may wait at once: the release
// carries all waits, and any of them resumes the run.
type suspension struct {
	mu    sync.Mutex
	waits []pendingWait // one per name and kind: a handler may ask again
	again bool          // the handler was called before in this attempt
	call  *handlerCall  // the current call; nil: no wait in it yet
}

type pendingWait struct {
	name   string
	wait   *runlane.Waiting
	mailed int64     // signals at the first look; -1: it waits for none
	called time.Time // when the children with missing ends were called; zero: none
}

// handlerCall identifies one call of a handler by its address. An attempt has several if mail or an end comes between
// a look and the suspension.
type handlerCall struct{ _ byte }

// callWaits is the error of a call without an answer. It is valid only in its own call of the handler: another call has
// not looked. A handler's own Release or Block is valid in any call (in is nil).
type callWaits struct {
	*runlane.ReleaseError

	in *handlerCall
}

// Unwrap lets errors.As find the release.
func (e *callWaits) Unwrap() error { return e.ReleaseError }

func (s *suspension) names() string {
	names := make([]string, len(s.waits))
	for i := range s.waits {
		names[i] = s.waits[i].name
	}
	return strings.Join(names, ", ")
}

// all joins the waits of the calls, and their looks: the smallest count of the mail, -1 for no look, and the calls with
// missing ends. The suspension depends on at most lane.MaxLookCalls of them. Ends of the others may be counted between
// look and suspension, so the run also checks again by itself, less and less often.
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
