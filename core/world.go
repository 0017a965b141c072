package core

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	"golang.org/x/sync/errgroup"

	"github.com/runlane/runlane-go"
)

// World holds the sources of nondeterminism. A nil field means the real one. The functions are called from many
// goroutines at once. Timers (heartbeats, timeouts, waits) always use the real clock: only their length is computed
// from Now.
type World struct {
	// Now returns the current time.
	Now func() time.Time
	// Rand returns 64 uniform random bits.
	Rand func() uint64
	// NewID returns prefix and a suffix that is unique in the environment for ever, for run ids, lease tokens and
	// worker ids. The default is a ULID, increasing within a process.
	NewID func(prefix string) string
}

func (w *World) withDefaults() World {
	filled := World{}
	if w != nil {
		filled = *w
	}
	if filled.Now == nil {
		filled.Now = time.Now
	}
	if filled.Rand == nil {
		filled.Rand = rand.Uint64
	}
	if filled.NewID == nil {
		filled.NewID = newULIDs(filled.Now)
	}
	return filled
}

// fraction is uniform in [0, 1).
func (w *World) fraction() float64 { return float64(w.Rand()>>11) / (1 << 53) }

// around varies d by up to 20 %, so that processes started together drift apart.
func (w *World) around(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*w.fraction()))
}

// newULIDs returns ids that increase within the process, also inside one millisecond, where the entropy grows by a
// random step. The operating system seeds the entropy: no two processes share a sequence.
func newULIDs(now func() time.Time) func(prefix string) string {
	var mu sync.Mutex
	var last ulid.ULID
	return func(prefix string) string {
		at := ulid.Timestamp(now())
		mu.Lock()
		if at != last.Time() || !step(&last) {
			last = fresh(at)
		}
		id := last
		mu.Unlock()
		var text [64]byte
		out := append(text[:0], prefix...)
		out = append(out, "00000000000000000000000000"...)
		_ = id.MarshalTextTo(out[len(prefix):]) // fails only for a buffer of another size
		return string(out)
	}
}

// fresh leaves the highest bit of the entropy free, as room for steps.
func fresh(at uint64) ulid.ULID {
	var id ulid.ULID
	_ = id.SetTime(at) // fails only beyond the year 10889
	binary.BigEndian.PutUint16(id[6:], uint16(rand.Uint32())>>1)
	binary.BigEndian.PutUint64(id[8:], rand.Uint64())
	return id
}

// step adds 1 to 2^32 to the 80 bits of entropy, and reports whether they did not overflow.
func step(id *ulid.ULID) bool {
	low := binary.BigEndian.Uint64(id[8:])
	next := low + uint64(rand.Uint32()) + 1
	binary.BigEndian.PutUint64(id[8:], next)
	if next > low {
		return true
	}
	high := binary.BigEndian.Uint16(id[6:]) + 1
	binary.BigEndian.PutUint16(id[6:], high)
	return high != 0
}

// newWorkerID returns <host>-<pid>-<ulid>, with the host's name cut and cleaned to a valid id.
func newWorkerID(newID func(string) string) string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	host = strings.Map(func(r rune) rune {
		if r == ':' || r <= ' ' || r > '~' {
			return '_'
		}
		return r
	}, host)
	if len(host) > 100 {
		host = host[:100]
	}
	return newID(host + "-" + strconv.Itoa(os.Getpid()) + "-")
}

// parallel limits concurrent writes to runs.
const parallel = 8

// now is the world's time in the precision of storages.
func (rt *Runtime) now() time.Time { return runlane.UTCMillis(rt.world.Now()) }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// earliest returns the earlier time. A zero a is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// ceilMillis rounds t up to whole milliseconds.
func ceilMillis(t time.Time) time.Time {
	down := runlane.UTCMillis(t)
	if down.Before(t) {
		return down.Add(time.Millisecond)
	}
	return down
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// inParallel calls do n times, some at once, and returns the first error.
func inParallel(n int, do func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(parallel)
	for i := range n {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}
