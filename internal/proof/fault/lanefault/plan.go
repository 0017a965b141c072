// Package lanefault injects faults between core and a storage or a transport. Package lanetest shows it to authors of
// adapters, as FaultPlan; what package scenarios needs besides is here.
package lanefault

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Kind is what goes wrong in a call of a storage or a transport.
type Kind string

// The faults.
const (
	// Before: the backend is out; nothing was carried out, and the error says so.
	Before Kind = "error before"
	// After: the call is carried out and its answer gets lost: the error says that its outcome is unknown.
	After Kind = "error after success"
	// Delay: the call begins later, or fails with its context.
	Delay Kind = "delay"
	// Duplicate: the call is made twice, as by a network that repeats requests; the first answer counts. It does
	// not happen to ClaimOutboxMessages and PruneRuns, which do more when they are called again.
	Duplicate Kind = "duplicate"
	// Conflict: a storage met other transactions until it gave up; nothing was carried out.
	Conflict Kind = "transaction conflict"
	// Throttle: the backend refuses the call for its rate. A transport refuses every message of the call; none of
	// them counts a failed attempt.
	Throttle Kind = "throttle"
	// Loss: a transport accepts wakeups and loses them. It happens to PublishWakeups and SendWakeups alone.
	Loss Kind = "lost wakeup"
)

// Rule says how often one thing goes wrong.
type Rule struct {
	// Method is the one it happens to, by its name in lane.Storage or lane.Transport. "" means all
	// but the life cycle: Capabilities, Queues, MaxDelay, Start and Close never fail.
	Method string
	// Kind of the fault.
	Kind Kind
	// Rate is how often, from 0 to 1.
	Rate float64
	// Times bounds how often in all; 0 means no bound.
	Times int
	// Delay of the kind Delay.
	Delay time.Duration
}

// Plan decides which calls fail. One plan may serve a storage and a transport. Whether a call fails depends on the
// seed, the rule and how many calls of its method came before, so the same calls always get the same faults. If several
// rules apply to a call, the first counts. Make it with [New]. It is safe for concurrent use.
type Plan struct {
	seed  uint64
	rules []Rule
	pace  Pace

	mu sync.Mutex
	// scripted report methods whose answers a script decides: no faults are injected into them.
	scripted []func(method string) bool

	all     int // calls of all methods
	last    int // the one that went wrong last; 0: none yet
	stopped bool
	calls   map[string]uint64 // by method
	struck  []int             // by rule
	unheard map[string]int    // by method: calls that were carried out without an answer
}

// Pace says which calls a plan leaves alone, whatever its rules. The zero value leaves none alone.
type Pace struct {
	// Apart is how many calls lie between two faults at least.
	Apart int
	// From is the number of the first call that may go wrong, of all methods; 0 and 1 mean the first.
	From int
	// Spare are methods to which a kind does not happen.
	Spare map[string]Kind
}

// New is a plan of its rules. Seed 0 chooses one; a test that fails prints it. A rule that could never strike
// fails the test.
func New(t testing.TB, seed uint64, pace Pace, rules ...Rule) *Plan {
	t.Helper()
	kinds := []Kind{Before, After, Delay, Duplicate, Conflict, Throttle, Loss}
	for _, r := range rules {
		known := r.Method == "" || slices.Contains(Methods(), r.Method) && (r.Kind != Loss || sends(r.Method))
		if !known || !slices.Contains(kinds, r.Kind) || r.Rate <= 0 || r.Rate > 1 {
			t.Fatalf("no call can meet the fault %+v", r)
		}
	}
	for seed == 0 {
		seed = rand.Uint64()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the faults had seed %d", seed)
		}
	})
	return &Plan{
		seed:    seed,
		rules:   rules,
		pace:    pace,
		calls:   map[string]uint64{},
		struck:  make([]int, len(rules)),
		unheard: map[string]int{},
	}
}

// sound are the methods that never go wrong: what belongs to no run, or only tells of it.
var sound = []string{
	"Capabilities", "Queues", "MaxDelay", "Start", "Close", "CheckOutput", "CheckPayload", "Check", "CountRuns",
	"PutTask", "ListTasks", "GetPauses", "PutPauses", "PutProgress", "GetProgress", "BeginFeed", "ReadFeed", "Carrier",
	"Ordered", "Fair", "Depth",
}

// Methods are the names of the methods that can go wrong.
func Methods() []string {
	var names []string
	for _, t := range []reflect.Type{
		reflect.TypeFor[lane.Storage](),
		reflect.TypeFor[lane.Transport](),
	} {
		for i := range t.NumMethod() {
			if name := t.Method(i).Name; !slices.Contains(sound, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// Stop ends the faults: calls from now on go through.
func (p *Plan) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
}

// Struck counts the faults of a kind so far.
func (p *Plan) Struck(kind Kind) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for i, r := range p.rules {
		if r.Kind == kind {
			n += p.struck[i]
		}
	}
	return n
}

// Count is the number of all faults so far.
func (p *Plan) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, struck := range p.struck {
		n += struck
	}
	return n
}

// Leave exempts the methods that one of the functions reports: their calls are not counted either.
func (p *Plan) Leave(scripted ...func(method string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scripted = append(p.scripted, scripted...)
}

// Unheard counts the calls of a method so far that were carried out without an answer.
func (p *Plan) Unheard(method string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.unheard[method]
}

func (p *Plan) unheardOf(method string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unheard[method]++
}

// next is the rule that the method's next call meets; the zero rule means that all is well.
func (p *Plan) next(method string) Rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return Rule{}
	}
	if slices.ContainsFunc(p.scripted, func(is func(string) bool) bool { return is(method) }) {
		return Rule{}
	}
	p.calls[method]++
	p.all++
	if p.all < p.pace.From || p.last > 0 && p.all-p.last <= p.pace.Apart {
		return Rule{}
	}
	for i, r := range p.rules {
		if r.Method != "" && r.Method != method || r.Times > 0 && p.struck[i] >= r.Times || !r.Kind.happensTo(method) ||
			p.pace.Spare[method] == r.Kind {
			continue
		}
		hash := fnv.New64a()
		// never fails
		hash.Write([]byte(method + " " + strconv.Itoa(i) + " " + strconv.FormatUint(p.calls[method], 10)))
		if rand.New(rand.NewPCG(p.seed, hash.Sum64())).Float64() < r.Rate {
			p.struck[i]++
			p.last = p.all
			return r
		}
	}
	return Rule{}
}

func (k Kind) happensTo(method string) bool {
	switch k {
	case Loss:
		return sends(method)
	case Duplicate: // these do more when they are called again
		return method != "ClaimOutboxMessages" && method != "PruneRuns"
	default:
		return true
	}
}

func sends(method string) bool { return method == "PublishWakeups" || method == "SendWakeups" }

// faulty makes one call of a method under the plan. code is that of the backend's outage.
func faulty[T any](
	ctx context.Context, p *Plan, method string, code runlane.ErrorCode, call func() (T, error),
) (T, error) {
	var none T
	rule := p.next(method)
	switch rule.Kind {
	case Before:
		return none, fault(method, code, "the backend is out", "not committed")
	case Conflict:
		return none, fault(method, code, "met other transactions too often", "not committed")
	case Throttle:
		e := fault(method, code, "throttled", "not committed")
		e.Cause = errThrottled
		return none, e
	case Loss:
		return none, errLost
	case Delay:
		if err := delayed(ctx, rule.Delay); err != nil {
			return none, &runlane.Error{
				Code:      runlane.ErrOperationCancelled,
				Message:   method + ": the context ended during a delay",
				Retryable: true,
				Cause:     err,
			}
		}
		return call()
	case Duplicate:
		first, err := call()
		_, _ = call() // whatever it says, the caller hears the first
		return first, err
	case After:
		if _, err := call(); err != nil {
			return none, err
		}
		p.unheardOf(method)
		return none, fault(method, code, "the answer was lost", "unknown")
	default:
		return call()
	}
}

func delayed(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var (
	// ErrPlanned is the cause of the errors of all faults.
	ErrPlanned = errors.New("planned")
	// errThrottled marks those of Throttle, and errLost stands for Loss until the transport has answered.
	errThrottled = fmt.Errorf("%w throttle", ErrPlanned)
	errLost      = fmt.Errorf("%w loss", ErrPlanned)
)

func fault(method string, code runlane.ErrorCode, what, outcome string) *runlane.Error {
	return &runlane.Error{
		Code: code, Message: fmt.Sprintf("%s: %s", method, what), Hint: "this fault was planned", Retryable: true,
		Meta: map[string]string{"outcome": outcome}, Cause: ErrPlanned,
	}
}
