package scenarios

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/fault/lanefault"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
	"github.com/runlane/runlane-go/lane"
)

// Faults is what goes wrong while scenarios run.
type Faults struct {
	// Name of the set, for its subtests.
	Name string
	// Kind of the faults between the runtime and its lane, once or more in most scenarios; not lanefault.Delay or
	// lanefault.Duplicate. "" if the lanes of the harness inject faults themselves.
	Kind lanefault.Kind
	// EachCall, if it is n > 0, runs a scenario once for every nth of its calls, beginning with one of the first n, and
	// only that call fails: 1 is each call. If it is 0, several random calls of a scenario fail.
	EachCall int
	// WakeupsTwice delivers each wakeup once more behind the first.
	WakeupsTwice bool
	// Groups of the table to run; nil means all.
	Groups []string
}

// FaultSets are the sets that every lane can be run with.
func FaultSets() []Faults {
	return []Faults{
		{Name: "LostAnswers", Kind: lanefault.After},
		{Name: "Outages", Kind: lanefault.Before},
		{Name: "Conflicts", Kind: lanefault.Conflict},
		{Name: "Throttles", Kind: lanefault.Throttle},
		{Name: "LostWakeups", Kind: lanefault.Loss},
		{Name: "WakeupsTwice", Kind: lanefault.Duplicate, WakeupsTwice: true},
	}
}

// errScripted marks the errors that a scenario itself has asked for: those are no faults.
var errScripted = errors.New("scripted")

// faultsApart is how many calls lie between two faults at least, so that no second fault disturbs the recovery from the
// first.
const faultsApart = 12

// sceneFaults are the faults of one scenario. nil has none.
type sceneFaults struct {
	plan    *lanefault.Plan // nil where the lane goes wrong by itself
	kind    lanefault.Kind  // of the plan's faults
	twice   bool
	virtual bool // time is

	mu   sync.Mutex
	more int                    // wakeups that came twice
	made map[runlane.RunID]bool // the runs of whose creation a caller knows
}

// planned reports an error that is to be answered by doing the same again.
func (f *sceneFaults) planned(err error) bool {
	switch {
	case f == nil || err == nil:
		return false
	case f.plan != nil && f.kind == lanefault.Throttle && errors.Is(err, runlane.ErrTransportUnavailable) &&
		!errors.Is(err, errScripted):
		return true // refused message by message, which leaves the code
	case f.plan != nil:
		return errors.Is(err, lanefault.ErrPlanned)
	default:
		return errors.Is(err, runlane.ErrStorageUnavailable) && !errors.Is(err, errScripted)
	}
}

// leave exempts scripted methods: a call whose answer the scenario decides gets no other fault.
func (f *sceneFaults) leave(scripted ...func(method string) bool) {
	if f != nil && f.plan != nil {
		f.plan.Leave(scripted...)
	}
}

// count is the number of faults so far.
func (f *sceneFaults) count() int {
	if f == nil {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.plan == nil {
		return f.more
	}
	return f.plan.Count() + f.more
}

func (f *sceneFaults) sentTwice() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.more++
}

// happened reports whether anything went wrong yet, as far as it can be told.
func (f *sceneFaults) happened() bool {
	return f != nil && (f.plan == nil || f.twice || f.plan.Count() > 0)
}

// make notes that a caller knows of a run, and reports whether it is the first one.
func (f *sceneFaults) make(id runlane.RunID) (first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	first = !f.made[id]
	f.made[id] = true
	return first
}

// forget notes that a run is pruned: for a new run with its id, the next caller is the first one again.
func (f *sceneFaults) forget(id runlane.RunID) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.made, id)
}

func (f *sceneFaults) storage(s lane.Storage) lane.Storage {
	if f == nil || f.plan == nil {
		return s
	}
	return lanefault.Storage(s, f.plan)
}

func (f *sceneFaults) transport(t lane.Transport) lane.Transport {
	if f == nil || f.plan == nil {
		return t
	}
	return lanefault.Transport(t, f.plan)
}

// pause is between two looks whether something has happened, and limit ends what never does: where time is virtual, and
// calls fail, more of it goes by.
func (f *sceneFaults) pause() (pause, limit time.Duration) {
	if f == nil || !f.virtual {
		return time.Millisecond, patience.Limit
	}
	return 2 * time.Second, 48 * time.Hour
}

// unheard counts calls so far that were carried out without an answer: those that changed a run or a key, and those
// that sent.
func (f *sceneFaults) unheard() (changes, sends int) {
	if f == nil || f.plan == nil {
		return 0, 0
	}
	changes = f.plan.Unheard("AppendRunEvents") + f.plan.Unheard("ReserveRunDispatch") +
		f.plan.Unheard("ResetIdempotencyKey")
	return changes, f.plan.Unheard("PublishWakeups")
}

// RunUnderFaults runs the scenarios of [Run] while calls fail. They demand the same as without faults: a
// caller repeats a call that failed, and a wakeup that an outage held up is in the outbox. Scenarios that count calls,
// or check the time of something that a fault delays, are exempt from some faults. The table of these exemptions, with
// reasons, is printed.
//
// Faults of the storage need a harness that is Virtual; those of wakeups do not.
func RunUnderFaults(t *testing.T, h Harness, faults Faults) {
	t.Helper()
	if faults.Kind != "" && !h.Virtual && faults.Kind != lanefault.Loss && !faults.WakeupsTwice {
		t.Fatal("this fault between the runtime and its lane needs virtual time")
	}
	capabilities := h.NewLane(t).Storage.Capabilities()
	r := &faultyTable{h: h, faults: faults, spared: map[string][]string{}}
	t.Cleanup(func() { r.report(t) })
	for _, group := range scenarioTable() {
		if faults.Groups != nil && !slices.Contains(faults.Groups, group.name) {
			continue
		}
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			for _, s := range group.scenarios {
				if !s.applies(h, capabilities) {
					continue
				}
				spared, whole := r.spare(group.name, s.name)
				if whole {
					continue
				}
				t.Run(s.name, func(t *testing.T) {
					t.Parallel()
					r.run(t, &s, spared)
				})
			}
		})
	}
}

// faultyTable is one run of the table with a set of faults.
type faultyTable struct {
	h      Harness
	faults Faults

	mu     sync.Mutex
	ran    int
	struck int
	calm   []string            // scenarios that met no fault
	spared map[string][]string // by reason: scenarios that are spared some calls, or all
}

// spare returns which faults a scenario is spared: those of some methods, or all (whole).
func (r *faultyTable) spare(group, name string) (methods map[string]lanefault.Kind, whole bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	methods = map[string]lanefault.Kind{}
	for _, s := range spared() {
		if !slices.Contains(s.scenarios, name) && !slices.Contains(s.groups, group) ||
			!slices.Contains(s.kinds, r.faults.Kind) ||
			s.realTime && r.h.Virtual {
			continue
		}
		r.spared[s.reason] = append(r.spared[s.reason], name)
		whole = whole || len(s.methods) == 0
		for _, method := range s.methods {
			methods[method] = r.faults.Kind
		}
	}
	return methods, whole
}

func (r *faultyTable) run(t *testing.T, s *scenario, spared map[string]lanefault.Kind) {
	t.Helper()
	switch {
	case r.faults.Kind == "":
		h := r.h
		h.faults = &sceneFaults{made: map[runlane.RunID]bool{}, twice: r.faults.WakeupsTwice, virtual: h.Virtual}
		s.prove(t, h)
		r.note(s.name, 1)
	case r.faults.EachCall > 0:
		// the names tell which
		for n, struck := 1+rand.N(r.faults.EachCall), 1; struck > 0 && !t.Failed(); n += r.faults.EachCall {
			t.Run(fmt.Sprint("call ", n), func(t *testing.T) { struck = r.once(t, s, spared, n) })
			r.note(s.name, struck)
		}
	default:
		r.note(s.name, r.once(t, s, spared, 0))
	}
}

// once runs a scenario in a bubble and returns how many faults it met. With n just its nth call goes wrong.
func (r *faultyTable) once(t *testing.T, s *scenario, spared map[string]lanefault.Kind, n int) (struck int) {
	t.Helper()
	rule := lanefault.Rule{Kind: r.faults.Kind, Rate: 0.5}
	switch {
	case n > 0:
		rule.Rate, rule.Times = 1, 1
	case rule.Kind == lanefault.Loss:
		rule.Times = 3 // each next wakeup comes twice as late
	}
	rules := []lanefault.Rule{rule}
	if r.faults.WakeupsTwice {
		rules = append(rules, rule)
		rules[0].Method, rules[1].Method = "PublishWakeups", "SendWakeups"
	}
	prove := func(t *testing.T) {
		h := r.h
		plan := lanefault.New(t, 0, lanefault.Pace{Apart: faultsApart, From: n, Spare: spared}, rules...)
		h.faults = &sceneFaults{
			plan:    plan,
			kind:    r.faults.Kind,
			twice:   r.faults.WakeupsTwice,
			virtual: h.Virtual,
			made:    map[runlane.RunID]bool{},
		}
		defer func() {
			if struck = h.faults.count(); n > 0 {
				struck = plan.Count() // whether there is an nth call
			}
		}()
		s.prove(t, h)
	}
	if r.h.Virtual {
		synctest.Test(t, prove)
	} else {
		prove(t)
	}
	return struck
}

func (r *faultyTable) note(name string, struck int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ran++
	r.struck += struck
	if struck == 0 {
		r.calm = append(r.calm, name)
	}
}

func (r *faultyTable) report(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	t.Logf("%s: %d scenarios ran and met %d faults, %d of them none", r.faults.Name, r.ran, r.struck, len(r.calm))
	for _, s := range spared() {
		if names := r.spared[s.reason]; len(names) > 0 {
			what := strings.Join(s.methods, ", ")
			if what == "" {
				what = "everything"
			}
			t.Logf("%s: spared %s, because %s: %q", r.faults.Name, what, s.reason, names)
		}
	}
	if !t.Failed() && (r.struck == 0 || 2*len(r.calm) > r.ran) {
		t.Errorf("too few scenarios met a fault; none did %q", r.calm)
	}
}
