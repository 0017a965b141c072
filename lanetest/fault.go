package lanetest

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

// FaultKind is what goes wrong in a call of a storage or a transport.
type FaultKind string

// The faults.
const (
	// FaultBefore: the backend is out; nothing was carried out, and the error says so.
	FaultBefore FaultKind = "error before"
	// FaultAfter: the call is carried out and its answer gets lost: the error says that its outcome is unknown.
	FaultAfter FaultKind = "error after success"
	// FaultDelay: the call begins later, or fails with its context.
	FaultDelay FaultKind = "delay"
	// FaultDuplicate: the call is made twice, as by a network that repeats requests; the first answer counts. It does
	// not happen to ClaimOutboxMessages and PruneRuns, which do more when they are called again.
	FaultDuplicate FaultKind = "duplicate"
	// FaultConflict: a storage met other transactions until it gave up; nothing was carried out.
	FaultConflict FaultKind = "transaction conflict"
	// FaultThrottle: the backend refuses the call for its rate. A transport refuses every message of the call; none of
	// them counts a failed attempt.
	FaultThrottle FaultKind = "throttle"
	// FaultLoss: a transport accepts wakeups and loses them. It happens to PublishWakeups and SendWakeups alone.
	FaultLoss FaultKind = "lost wakeup"
)

// FaultRule says how often one thing goes wrong.
type FaultRule struct {
	// Method is the one it happens to, by its name in lane.Storage, lane.Transport or lane.DelayedSender. "" means all
	// but the life cycle: Capabilities, Queues, MaxDelay, Start and Close never fail.
	Method string
	// Kind of the fault.
	Kind FaultKind
	// Rate is how often, from 0 to 1.
	Rate float64
	// Times bounds how often in all; 0 means no bound.
	Times int
	// Delay of FaultDelay.
	Delay time.Duration
}

// FaultPlan decides which calls fail. One plan may serve a storage and a transport. Whether a call fails depends on the
// seed, the rule and how many calls of its method came before, so the same calls always get the same faults. If several
// rules apply to a call, the first counts. Make it with [NewFaultPlan]. It is safe for concurrent use.
type FaultPlan struct {
	seed  uint64
	rules []FaultRule
	apart int                  // so many calls lie between two faults at least
	from  int                  // the first call that may go wrong, of all methods; 0 and 1: the first
	spare map[string]FaultKind // methods that this kind does not happen to
	// scripted report methods whose answers a script decides: no faults are injected into them.
	scripted []func(method string) bool

	mu      sync.Mutex
	all     int // calls of all methods
	last    int // the one that went wrong last; 0: none yet
	stopped bool
	calls   map[string]uint64 // by method
	struck  []int             // by rule
	unheard map[string]int    // by method: calls that were carried out without an answer
}

// NewFaultPlan is a plan of its rules. Seed 0 chooses one; a test that fails prints it. A rule that could never strike
// fails the test.
func NewFaultPlan(t testing.TB, seed uint64, rules ...FaultRule) *FaultPlan {
	t.Helper()
	kinds := []FaultKind{FaultBefore, FaultAfter, FaultDelay, FaultDuplicate, FaultConflict, FaultThrottle, FaultLoss}
	for _, r := range rules {
		known := r.Method == "" || slices.Contains(faultyMethods(), r.Method) && (r.Kind != FaultLoss || sends(r.Method))
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
	return &FaultPlan{seed: seed, rules: rules, calls: map[string]uint64{}, struck: make([]int, len(rules)), unheard: map[string]int{}}
}

// faultyMethods are the methods that can go wrong.
func faultyMethods() []string {
	var names []string
	for _, t := range []reflect.Type{reflect.TypeFor[lane.Storage](), reflect.TypeFor[lane.Transport](), reflect.TypeFor[lane.DelayedSender]()} {
		for i := range t.NumMethod() {
			if name := t.Method(i).Name; !slices.Contains([]string{"Capabilities", "Queues", "MaxDelay", "Start", "Close"}, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// Stop ends the faults: calls from now on go through.
func (p *FaultPlan) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
}

// Struck counts the faults of a kind so far.
func (p *FaultPlan) Struck(kind FaultKind) int {
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

// count is the number of all faults so far.
func (p *FaultPlan) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, struck := range p.struck {
		n += struck
	}
	return n
}

func (p *FaultPlan) unheardOf(method string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unheard[method]++
}

// next is the rule that the method's next call meets; the zero rule means that all is well.
func (p *FaultPlan) next(method string) FaultRule {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return FaultRule{}
	}
	if slices.ContainsFunc(p.scripted, func(is func(string) bool) bool { return is(method) }) {
		return FaultRule{}
	}
	p.calls[method]++
	p.all++
	if p.all < p.from || p.last > 0 && p.all-p.last <= p.apart {
		return FaultRule{}
	}
	for i, r := range p.rules {
		if r.Method != "" && r.Method != method || r.Times > 0 && p.struck[i] >= r.Times || !r.Kind.happensTo(method) ||
			p.spare[method] == r.Kind {
			continue
		}
		hash := fnv.New64a()
		hash.Write([]byte(method + " " + strconv.Itoa(i) + " " + strconv.FormatUint(p.calls[method], 10))) // never fails
		if rand.New(rand.NewPCG(p.seed, hash.Sum64())).Float64() < r.Rate {
			p.struck[i]++
			p.last = p.all
			return r
		}
	}
	return FaultRule{}
}

func (k FaultKind) happensTo(method string) bool {
	switch k {
	case FaultLoss:
		return sends(method)
	case FaultDuplicate: // these do more when they are called again
		return method != "ClaimOutboxMessages" && method != "PruneRuns"
	default:
		return true
	}
}

func sends(method string) bool { return method == "PublishWakeups" || method == "SendWakeups" }

// faulty makes one call of a method under the plan. code is that of the backend's outage.
func faulty[T any](ctx context.Context, p *FaultPlan, method string, code runlane.ErrorCode, call func() (T, error)) (T, error) {
	var none T
	rule := p.next(method)
	switch rule.Kind {
	case FaultBefore:
		return none, fault(method, code, "the backend is out", "not committed")
	case FaultConflict:
		return none, fault(method, code, "met other transactions too often", "not committed")
	case FaultThrottle:
		e := fault(method, code, "throttled", "not committed")
		e.Cause = errThrottled
		return none, e
	case FaultLoss:
		return none, errLost
	case FaultDelay:
		if err := delayed(ctx, rule.Delay); err != nil {
			return none, &runlane.Error{
				Code: runlane.ErrOperationCancelled, Message: method + ": the context ended during a delay", Retryable: true, Cause: err,
			}
		}
		return call()
	case FaultDuplicate:
		first, err := call()
		_, _ = call() // whatever it says, the caller hears the first
		return first, err
	case FaultAfter:
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
	// errPlanned marks the errors of all faults.
	errPlanned = errors.New("planned")
	// errThrottled marks those of FaultThrottle, and errLost stands for FaultLoss until the transport has answered.
	errThrottled = fmt.Errorf("%w throttle", errPlanned)
	errLost      = fmt.Errorf("%w loss", errPlanned)
)

func fault(method string, code runlane.ErrorCode, what, outcome string) *runlane.Error {
	return &runlane.Error{
		Code: code, Message: fmt.Sprintf("%s: %s", method, what), Hint: "this fault was planned", Retryable: true,
		Meta: map[string]string{"outcome": outcome}, Cause: errPlanned,
	}
}
