package main

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

const (
	keyLimit = 5  // runs of a key at once
	keyRuns  = 50 // of each key
	// keyLead is how many runs one key may have started more than another that still waits. Each has keyLimit wakeups under way, in the
	// order in which slots came free. A slot whose offers lose all their races waits for the next tick: a key may go on at a part of the
	// pace, or begin with fewer. Served in the order in which they came, the first key would lead by all its runs.
	keyLead = 7 * keyRuns / 10
	// keyWorkers execute at once, half as many as there are slots where that is fewer: keys compete for them.
	keyWorkers = 100
)

// keyWatch is what the handlers see of each other.
type keyWatch struct {
	mu      sync.Mutex
	active  map[string]int
	started map[string]int
	most    int // of one key at once
	lead    int // of one key before another
	ended   int
}

func (k *keyWatch) begins(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.active[key]++
	k.started[key]++
	k.most = max(k.most, k.active[key])
	for _, other := range k.started { // all keys are there from the beginning
		if other < keyRuns {
			k.lead = max(k.lead, k.started[key]-other)
		}
	}
}

func (k *keyWatch) ends(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.active[key]--
	k.ended++
}

func (k *keyWatch) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ended
}

// The runs of each key come as a block, the first key's before all others: a server that kept their order would let the last key
// wait for all the others.
func TestLoad_ManyAtOnceInABoundedQueue_LimitHoldsAndKeysShare(t *testing.T) {
	onEachLane(t, &loadCase{
		name: "10,000 at once, limit 5, 200 keys", embedded: 10_000, dynamoDB: 10_000, short: 150, divisible: keyRuns,
		heap: perRun(8 << 10), requests: 24,
		play: func(w *load) {
			watch := &keyWatch{active: map[string]int{}, started: map[string]int{}}
			task := runlane.NewTask("load.keyed", &runlane.TaskOptions[string]{
				Queue: runlane.Queue{Name: "narrow", Concurrency: keyLimit}, ConcurrencyKey: func(key string) string { return key },
			})
			w.open(&core.Options{Handlers: []runlane.Handler{task.Handle(func(_ context.Context, a *runlane.Attempt, key string) error {
				watch.begins(key)
				defer watch.ends(key)
				// The work: no two take equally long, or all of a key would free their slots in the same moment.
				<-time.After(10*time.Millisecond + time.Duration(a.Run.CreatedAt.UnixMilli()%7)*time.Millisecond)
				return nil
			})}})
			var items []core.BatchItem
			keys := w.runs / keyRuns
			for key := range keys {
				name := fmt.Sprintf("key-%03d", key)
				watch.started[name] = 0
				for range keyRuns {
					items = append(items, core.BatchItem{Call: task.With(name)})
				}
			}
			w.triggerAll(items)
			ticks := w.work("narrow", min(keyWorkers, keyLimit*keys/2), func() bool { return watch.count() == w.runs })
			w.settled(w.runs, once)
			w.note("keys", keys)
			w.note("most_of_a_key", watch.most)
			w.note("lead", watch.lead)
			w.note("ticks", ticks)
			if watch.most > keyLimit {
				w.Errorf("%d runs of one key executed at once, the limit is %d", watch.most, keyLimit)
			}
			if w.virtual && watch.most < keyLimit {
				w.Errorf("at most %d runs of one key executed at once: the limit was never reached, and nothing is shown", watch.most)
			}
			if watch.lead > keyLead {
				w.Errorf("a key had started %d runs more than one that waited, want at most %d", watch.lead, keyLead)
			}
		},
	})
}
