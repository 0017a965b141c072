package linear

import (
	"errors"
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
)

// linearTell tells the end of a run that was called.
const linearTell = "tell"

// ends are those of a call that were told.
type ends [6]bool

func (e ends) count() (n int64) {
	for _, told := range e {
		if told {
			n++
		}
	}
	return n
}

func endSubject() linearSubject {
	return linearSubject{
		needs:   func(c lane.StorageCapabilities) bool { return c.SuspendsRuns },
		prepare: prepareEnds,
		act:     actOnEnds,
		settle:  settleEnds,
		begin:   ends{},
		step:    stepEnds,
		meets:   []string{"tell done", "tell refused", "count done"},
	}
}

// child names a run that the key's run has called.
func child(key string, i int) string { return fmt.Sprintf("%s/%d", key, i) }

// prepareEnds makes a run for each key, which has called some that have ended.
func prepareEnds(h *linearHistory) {
	h.t.Helper()
	must := func(commit *lane.Commit, err error) *runlane.Run {
		h.t.Helper()
		if err != nil {
			h.t.Fatalf("unexpected error: %v", err)
		}
		return commit.Run
	}
	for i := range h.o.Keys {
		key, run := h.keyName(i), h.create().Run
		h.runs[key] = run.ID
		claim := h.Claim(h.t, run, noon, noon.Add(time.Hour), h.NewToken())
		if got, err := h.raw[0].ClaimRunLease(h.ctx(), claim); err != nil || got.Outcome != lane.Acquired {
			h.t.Fatalf("unexpected answer: %+v, %v", got, err)
		}
		_, err := h.raw[0].BeginCall(h.ctx(), &lane.CallCommand{
			RunKey:     h.runKey(run.ID),
			CreatedAt:  noon,
			LeaseToken: claim.Projected.Lease.Token,
			Call:       lane.RunCall{Name: "linear", TaskID: lanetest.TaskID, Count: len(ends{}), At: noon},
		})
		if err != nil {
			h.t.Fatalf("unexpected error: %v", err)
		}
		for n := range (ends{}) {
			made := must(h.raw[0].AppendRunEvents(h.ctx(), h.Creation(h.t, noon, lanetest.RunOptions{
				Source: runlane.Source{Type: runlane.SourceCall, RunID: run.ID, Call: "linear", CreatedAt: noon},
			})))
			over := must(h.raw[0].AppendRunEvents(h.ctx(), h.Append(h.t, made, noon, &runlane.RunCancelled{})))
			h.runs[child(key, n)] = over.ID
		}
	}
}

func actOnEnds(c *linearClient) {
	if key := c.key(); c.chance(0.2) {
		countEnds(c, key)
	} else {
		tellEnd(c, key, c.choose.IntN(len(ends{})))
	}
}

// countEnds returns how many ends were counted, 0 where no answer came.
func countEnds(c *linearClient, key string) int64 {
	answer, _ := c.reads(linearCall{Key: key, Kind: linearCount}, func(s lane.Storage) (linearAnswer, error) {
		read, err := s.ReadCalls(c.ctx(), &lane.CallQuery{RunKey: c.runKey(c.runs[key]), Name: "linear"})
		if err != nil {
			return linearAnswer{}, err
		}
		return linearAnswer{Result: linearDone, Sequence: int64(read.Calls[0].Ended)}, nil
	})
	return answer.Sequence
}

// tellEnd tells on a count that was read, which another end may have raised since.
func tellEnd(c *linearClient, key string, n int) {
	call := linearCall{Key: key, Kind: linearTell, Round: n, Expected: countEnds(c, key)}
	if call.Expected == int64(len(ends{})) {
		return
	}
	c.writes(call, func(s lane.Storage) (linearAnswer, error) {
		_, err := s.TellEnd(c.ctx(), &lane.TellCommand{
			RunKey:    c.runKey(c.runs[child(key, n)]),
			CreatedAt: noon,
			To: &lane.CallRead{
				RunID:     c.runs[key],
				CreatedAt: noon,
				Name:      "linear",
				Count:     len(ends{}),
				Ended:     int(call.Expected),
			},
		})
		switch {
		case errors.Is(err, runlane.ConflictWait):
			return linearAnswer{Result: linearRefused}, nil
		case err != nil:
			return linearAnswer{}, err
		}
		return linearAnswer{Result: linearDone}, nil
	})
}

// settleEnds tells what is untold, and counts.
func settleEnds(c *linearClient) {
	for i := range c.o.Keys {
		key := c.keyName(i)
		for n := range (ends{}) {
			tellEnd(c, key, n)
		}
		countEnds(c, key)
	}
}

// stepEnds is the contract of ends that are told, one operation after the other: each is counted once, and who tells on
// another count than there is changes nothing.
func stepEnds(state any, call linearCall, answer linearAnswer) (bool, any) {
	e := state.(ends)
	if call.Kind == linearCount {
		return answer.Sequence == e.count(), e
	}
	can := !e[call.Round] && e.count() == call.Expected
	switch {
	case answer.Result == linearRefused: // a lost race is reason enough
		return !call.Quiet || !can, e
	case !can:
		return answer.Result == linearUnknown, e
	}
	e[call.Round] = true
	return true, e
}
