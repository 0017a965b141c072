package lives

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
)

// fault is one thing that goes wrong.
type fault string

const (
	deathBefore fault = "process dies before a call"
	deathAfter  fault = "process dies after a call"
	deathInside fault = "process dies in a handler"

	// Of a memory storage.
	failedCall fault = "error before"
	unheard    fault = "lost answer"
	repeated   fault = "repeated call"

	// Of a request to DynamoDB. They depend on the seed, the operation and the number of the call, and on no clock, as those of a front do.
	conflict   fault = "conflict"             // a write meets another transaction and is not carried out
	throttle   fault = "throttle"             // a write is refused for its rate and not carried out
	outage     fault = "outage"               // a write never arrives; the caller cannot tell that from a lost answer
	lostAnswer fault = "lost answer"          // a write is carried out, and the connection breaks
	lateAnswer fault = "timeout after commit" // a write is carried out, and its answer does not come within the request's time
	staleIndex fault = "stale index"          // an index lacks new entries and has old ones

	// Of the transport.
	transportOut     fault = "transport out"
	transportUnheard fault = "transport's answer lost"
	refused          fault = "wakeup refused"
	rejected         fault = "wakeup rejected for good"
	lostWakeup       fault = "wakeup lost"
	doubledWakeup    fault = "wakeup doubled"
	lateWakeup       fault = "wakeup late"
)

// trouble decides what goes wrong in a life. The decision about a call depends on the seed, the step, the call and what
// it is about, not
// on the calls that others make at the same time: the same life meets the same faults.
type trouble struct {
	mu    sync.Mutex
	seed  uint64
	step  int
	rates map[fault]float64
	calls map[string]int // in this step
	tally *tally
}

func newTrouble(seed uint64, tally *tally) *trouble {
	return &trouble{seed: seed, calls: map[string]int{}, tally: tally}
}

// begin sets what may happen in the next step.
func (t *trouble) begin(step int, rates map[fault]float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.step, t.rates = step, maps.Clone(rates)
	clear(t.calls)
}

func (t *trouble) strikes(f fault, method, about string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	rate := t.rates[f]
	if rate == 0 {
		return false
	}
	name := fmt.Sprint(f, " ", method, " ", about)
	t.calls[name]++
	if chanceOf(t.seed, strconv.Itoa(t.step)+" "+name+" "+strconv.Itoa(t.calls[name])) >= rate {
		return false
	}
	t.tally.fault(string(f))
	return true
}

// chanceOf is a number in [0, 1) that belongs to a seed and a name.
func chanceOf(seed uint64, name string) float64 {
	return rand.New(rand.NewPCG(seed, hashOf(name))).Float64() // repeatable
}

func hashOf(name string) uint64 {
	hash := fnv.New64a()
	hash.Write([]byte(name)) // never fails
	return hash.Sum64()
}

// weather is how often things go wrong in a life.
type weather struct {
	name     string
	calls    map[fault]float64 // between a process and its lane
	requests map[fault]float64 // between a storage and DynamoDB
}

var weathers = []weather{
	{name: "calm"},
	{
		name: "rough",
		calls: map[fault]float64{
			failedCall:       0.02,
			unheard:          0.02,
			repeated:         0.01,
			transportOut:     0.02,
			transportUnheard: 0.02,
			refused:          0.03,
			rejected:         0.01,
			lostWakeup:       0.05,
			doubledWakeup:    0.05,
			lateWakeup:       0.05,
		},
		requests: map[fault]float64{
			conflict:   0.04,
			throttle:   0.02,
			outage:     0.01,
			lostAnswer: 0.03,
			lateAnswer: 0.01,
			staleIndex: 0.1,
		},
	},
	{
		name: "stormy",
		calls: map[fault]float64{
			failedCall:       0.08,
			unheard:          0.08,
			repeated:         0.04,
			transportOut:     0.1,
			transportUnheard: 0.05,
			refused:          0.1,
			rejected:         0.03,
			lostWakeup:       0.15,
			doubledWakeup:    0.1,
			lateWakeup:       0.15,
		},
		requests: map[fault]float64{
			conflict:   0.15,
			throttle:   0.08,
			outage:     0.04,
			lostAnswer: 0.08,
			lateAnswer: 0.04,
			staleIndex: 0.3,
		},
	},
}
