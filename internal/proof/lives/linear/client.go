package linear

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"

	"github.com/anishathalye/porcupine"
	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// linearClient makes one call at a time.
type linearClient struct {
	*linearHistory
	number int
	choose *rand.Rand
	quiet  bool

	mine   map[string][]runlane.RunID // by key: runs that it has to end
	tokens map[string][]string        // by key: claims it was given
	seen   map[string]*runlane.Run    // by key: as last read
	owners map[string]runlane.RunID   // by key: as last heard
}

func (h *linearHistory) client(number int) *linearClient {
	return &linearClient{
		linearHistory: h,
		number:        number,
		choose:        rand.New(rand.NewPCG(h.o.Seed, uint64(number))), // repeatable
		mine:          map[string][]runlane.RunID{},
		tokens:        map[string][]string{},
		seen:          map[string]*runlane.Run{},
		owners:        map[string]runlane.RunID{},
	}
}

func (c *linearClient) key() string { return c.keyName(c.choose.IntN(c.o.Keys)) }

func (c *linearClient) chance(rate float64) bool { return c.choose.Float64() < rate }

// own is the storage of the client's process, whose calls do not go wrong.
func (c *linearClient) own() lane.Storage { return c.raw[c.number%len(c.raw)] }

// reads makes a call that changes nothing. heard is false when it failed.
func (c *linearClient) reads(
	call linearCall, request func(s lane.Storage) (linearAnswer, error),
) (answer linearAnswer, heard bool) {
	return c.do(call, false, request)
}

// writes makes a call that may change something. heard is false when it was not carried out, or its outcome is unknown.
func (c *linearClient) writes(
	call linearCall, request func(s lane.Storage) (linearAnswer, error),
) (answer linearAnswer, heard bool) {
	return c.do(call, true, request)
}

func (c *linearClient) do(
	call linearCall, changes bool, request func(s lane.Storage) (linearAnswer, error),
) (linearAnswer, bool) {
	call.Quiet = c.quiet
	s := c.processes[c.number%len(c.processes)]
	began := c.moment.Add(1)
	later := func() { _, _ = request(s) } // the caller does not wait for the answer
	if changes && !c.quiet && c.chance(linearLate) {
		c.deliverLater(later)
		c.record(call, linearAnswer{Result: linearUnknown}, began)
		return linearAnswer{Result: linearUnknown}, false
	}
	for range c.choose.IntN(3) { // a storage in memory is faster than the others come
		runtime.Gosched()
	}
	answer, err := request(s)
	if c.chance(0.5) {
		runtime.Gosched()
	}
	if err == nil {
		if c.o.LosesAnswers && doubtful(call, answer) {
			c.record(call, linearAnswer{Result: linearUnknown}, began)
			return answer, true
		}
		c.record(call, answer, began)
		if changes && call.Kind != linearReset && // which does more when it is called again
			!c.quiet && answer.Result == linearDone && c.chance(linearTwice) {
			c.deliverLater(later)
		}
		return answer, true
	}
	e, ok := errors.AsType[*runlane.Error](err)
	switch {
	case !ok || e.Code != runlane.ErrStorageUnavailable:
		c.problem(call.Kind, call.Key, err.Error())
	case changes && e.Meta["outcome"] != "not committed":
		c.record(call, linearAnswer{Result: linearUnknown}, began)
		return linearAnswer{Result: linearUnknown}, false
	}
	return linearAnswer{}, false
}

// doubtful are answers for which a storage reads its data and may find what its own lost request wrote.
func doubtful(call linearCall, answer linearAnswer) bool {
	switch call.Kind {
	case linearReset:
		return true
	case linearStart, linearRetry, linearCancel, linearMake:
		return answer.Result != linearDone
	default:
		return false
	}
}

// problem notes what no history may hold.
func (c *linearClient) problem(kind, key, what string) {
	c.guard.Lock()
	defer c.guard.Unlock()
	c.problems = append(c.problems, fmt.Errorf("%s of %s: %s", kind, key, what))
}

// closes says that no operation on the run takes effect from now on: those of unknown outcome did, or never will.
func (h *linearHistory) closes(run runlane.RunID) {
	h.guard.Lock()
	defer h.guard.Unlock()
	h.open = slices.DeleteFunc(h.open, func(i int) bool {
		over := h.operations[i].Input.(linearCall).Run == run
		if over {
			h.operations[i].Return = h.moment.Add(1)
		}
		return over
	})
}

// doubts reports whether an operation on the run has an unknown outcome.
func (h *linearHistory) doubts(run runlane.RunID) bool {
	h.guard.Lock()
	defer h.guard.Unlock()
	return slices.ContainsFunc(h.open, func(i int) bool { return h.operations[i].Input.(linearCall).Run == run })
}

func (c *linearClient) record(call linearCall, answer linearAnswer, began int64) {
	ended := c.moment.Add(1)
	c.guard.Lock()
	defer c.guard.Unlock()
	if answer.Result == linearUnknown {
		c.open = append(c.open, len(c.operations))
	}
	c.add(call, answer, began, ended)
}

func (c *linearClient) add(call linearCall, answer linearAnswer, began, ended int64) {
	c.operations = append(c.operations, porcupine.Operation{
		ClientId: c.number,
		Input:    call,
		Call:     began,
		Output:   answer,
		Return:   ended,
	})
}
