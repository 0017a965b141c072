package ddb

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// The rules of Load.
const (
	loadWindow = 500 * time.Millisecond
	// A window with this part of its writes throttled, and this many, begins the limit: not a single busy item.
	loadBad = 0.2
	loadFew = 5
	// loadCalm is the time without a throttle and a refusal after which the limit ends.
	loadCalm = 10 * time.Second
	// loadLeast is the number of triggers that a process may make each second, whatever happens.
	loadLeast    = 1.0
	loadMaxDelay = 30 * time.Second
)

// Load limits triggers by what this process learns of the table: which of its writes were throttled. It counts nothing
// before the first throttle. From then on it judges windows of half a second. A window with throttles lowers the rate of
// triggers by half of the throttled part; one without raises it, by a quarter of what it lacks to the last good rate or
// by a twentieth. Since all processes meet the same part and so lower alike, but raise by a step that does not depend on
// their rate, their shares do not drift far apart. The zero value is ready. Safe for concurrent use.
type Load struct {
	watching atomic.Bool

	mutex           sync.Mutex
	began           time.Time // of the window
	sent, throttled float64   // writes answered in it
	asked, admitted float64   // triggers in it
	rate            float64   // triggers a second; 0: no limit yet
	good            float64   // the rate to return to quickly
	sinking         bool      // the last window lowered the rate
	tokens          float64
	filled          time.Time
	calm            time.Time // since when nothing was throttled or refused
	delay           time.Duration
}

// Admit reports whether somebody may trigger n runs now, else after which time to try again. n may be more than one
// burst: later triggers wait for it.
func (l *Load) Admit(n int) (delay time.Duration, ok bool) {
	if !l.watching.Load() {
		return 0, true
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	now := time.Now()
	if l.roll(now); !l.watching.Load() {
		return 0, true
	}
	l.asked += float64(n)
	if l.rate > 0 {
		l.tokens = min(l.tokens+l.rate*now.Sub(l.filled).Seconds(), max(1, l.rate*loadWindow.Seconds()))
		l.filled = now
		if l.tokens < 1 {
			l.calm = now
			return l.delay, false
		}
		l.tokens -= float64(n)
	}
	l.admitted += float64(n)
	return 0, true
}

// wrote counts a write by its answer.
func (l *Load) wrote(err error) {
	throttled := err != nil && wasThrottled(err)
	if !throttled && !l.watching.Load() {
		return
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	now := time.Now()
	if !l.watching.Load() {
		l.rate, l.calm, l.sinking = 0, now, false
		l.open(now)
		l.watching.Store(true)
	}
	l.roll(now)
	l.sent++
	if throttled {
		l.throttled++
	}
}

func (l *Load) open(now time.Time) {
	l.began, l.sent, l.throttled, l.asked, l.admitted = now, 0, 0, 0, 0
}

// roll judges the window if it is over.
func (l *Load) roll(now time.Time) {
	length := now.Sub(l.began)
	switch {
	case length < loadWindow:
		return
	case length >= loadCalm: // a function that was not asked meanwhile
		l.watching.Store(false)
		return
	}
	part := l.throttled / max(1, l.sent)
	if l.throttled > 0 {
		l.calm = now
	}
	switch {
	case l.rate == 0 && (part < loadBad || l.throttled < loadFew):
	case l.throttled > 0:
		l.lower(part, now, length)
	default:
		l.sinking = false
		l.rate += max((l.good-l.rate)/4, l.rate/20, loadLeast)
	}
	if l.rate > 0 {
		seconds := math.Ceil(l.asked / length.Seconds() / l.rate)
		l.delay = time.Duration(min(max(seconds, 1), loadMaxDelay.Seconds()) * float64(time.Second))
	}
	if now.Sub(l.calm) >= loadCalm {
		l.watching.Store(false)
	}
	l.open(now)
}

func (l *Load) lower(part float64, now time.Time, length time.Duration) {
	if l.rate == 0 {
		l.rate, l.tokens, l.filled = l.admitted/length.Seconds(), 1, now
	}
	if !l.sinking {
		l.good, l.sinking = l.rate*3/4, true
	}
	l.rate = max(loadLeast, l.rate*(1-part/2))
}

// wasThrottled also finds a throttled member of a cancelled transaction.
func wasThrottled(err error) bool {
	if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		for _, r := range cancelled.CancellationReasons {
			if isThrottleReason(aws.ToString(r.Code)) {
				return true
			}
		}
		return false
	}
	return isThrottle(err)
}
