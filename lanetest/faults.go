package lanetest

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go/internal/proof/fault/lanefault"
	"github.com/runlane/runlane-go/lane"
)

// FaultKind is what goes wrong in a call of a storage or a transport.
type FaultKind string

// The faults.
const (
	// FaultBefore: the backend is out; nothing was carried out, and the error says so.
	FaultBefore = FaultKind(lanefault.Before)
	// FaultAfter: the call is carried out and its answer gets lost: the error says that its outcome is unknown.
	FaultAfter = FaultKind(lanefault.After)
	// FaultDelay: the call begins later, or fails with its context.
	FaultDelay = FaultKind(lanefault.Delay)
	// FaultDuplicate: the call is made twice, as by a network that repeats requests; the first answer counts. It does
	// not happen to ClaimOutboxMessages and PruneRuns, which do more when they are called again.
	FaultDuplicate = FaultKind(lanefault.Duplicate)
	// FaultConflict: a storage met other transactions until it gave up; nothing was carried out.
	FaultConflict = FaultKind(lanefault.Conflict)
	// FaultThrottle: the backend refuses the call for its rate. A transport refuses every message of the call; none of
	// them counts a failed attempt.
	FaultThrottle = FaultKind(lanefault.Throttle)
	// FaultLoss: a transport accepts wakeups and loses them. It happens to PublishWakeups and SendWakeups alone.
	FaultLoss = FaultKind(lanefault.Loss)
)

// FaultRule says how often one thing goes wrong.
type FaultRule struct {
	// Method is the one it happens to, by its name in lane.Storage or lane.Transport. "" means all
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
type FaultPlan struct{ plan *lanefault.Plan }

// NewFaultPlan is a plan of its rules. Seed 0 chooses one; a test that fails prints it. A rule that could never strike
// fails the test.
func NewFaultPlan(t testing.TB, seed uint64, rules ...FaultRule) *FaultPlan {
	t.Helper()
	inner := make([]lanefault.Rule, len(rules))
	for i, r := range rules {
		inner[i] = lanefault.Rule{
			Method: r.Method,
			Kind:   lanefault.Kind(r.Kind),
			Rate:   r.Rate,
			Times:  r.Times,
			Delay:  r.Delay,
		}
	}
	return &FaultPlan{lanefault.New(t, seed, lanefault.Pace{}, inner...)}
}

// Stop ends the faults: calls from now on go through.
func (p *FaultPlan) Stop() { p.plan.Stop() }

// Struck counts the faults of a kind so far.
func (p *FaultPlan) Struck(kind FaultKind) int { return p.plan.Struck(lanefault.Kind(kind)) }

// FaultyStorage is a storage whose calls go wrong as the plan says: with runlane.ErrStorageUnavailable, its Meta
// "outcome" being "unknown" or "not committed". Tasks, progress, feed, counts and checks do not go wrong, and neither do
// the abilities that lane.As finds behind it.
func FaultyStorage(s lane.Storage, plan *FaultPlan) lane.Storage {
	return lanefault.Storage(s, plan.plan)
}

// FaultyTransport is a transport whose sending goes wrong as the plan says: with runlane.ErrTransportUnavailable.
// Wakeups are truly sent, lost before or after they were accepted, or sent twice. Depth does not go wrong, and neither
// does the receiver that lane.As finds behind it.
func FaultyTransport(t lane.Transport, plan *FaultPlan) lane.Transport {
	return lanefault.Transport(t, plan.plan)
}
