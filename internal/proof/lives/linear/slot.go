package linear

import (
	"slices"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
)

// Operations on the slots of a partition. linearEnd frees one.
const (
	linearReserve = "reserve"
	linearTake    = "take"   // a claim that takes a slot
	linearFollow  = "follow" // a claim of a run that has its reservation
	linearReturn  = "return" // gives a reservation back
)

// linearFull is the answer where no slot was free.
const linearFull = "full"

// linearReservation is longer than any storage's margin: a claim may treat its own as over a few seconds early.
const linearReservation = 2 * time.Minute

// linearLimit is how many runs of a partition may have a slot.
const linearLimit = 3

// slotHolder is a run with a slot. held says that it executes; a reservation lasts for its round.
type slotHolder struct {
	run   runlane.RunID
	round int
	held  bool
}

// heldSlots are those of one partition, in the order of their runs; a holder without a run is none.
type heldSlots struct {
	holders [linearLimit]slotHolder
	// over are the runs that ended before the outcome of all their operations was known: these have no effect any more.
	over string
}

func slotSubject() linearSubject {
	return linearSubject{
		needs: func(c lane.StorageCapabilities) bool {
			return c.EnforcesQueueConcurrency && c.LeasesRuns && c.ReadsRunHistory
		},
		act: actOnSlot, rounds: 3, settle: settleSlots, begin: heldSlots{}, step: stepSlot,
		meets: []string{"reserve done", "reserve full", "take done", "take full", "end done"},
	}
}

// roundAt is the instant of a round. Its reservations are over when the next begins.
func (c *linearClient) roundAt() time.Time { return noon.Add(time.Duration(c.round) * time.Hour) }

func actOnSlot(c *linearClient) {
	key := c.key()
	if mine := c.mine[key]; len(mine) > 0 && c.chance(0.6) {
		i := c.choose.IntN(len(mine))
		if !goOn(c, key, mine[i]) {
			c.mine[key] = slices.Delete(mine, i, i+1)
		}
		return
	}
	want := linearReserve
	if c.chance(0.4) {
		want = linearTake
	}
	wantSlot(c, key, want)
}

// wantSlot makes a run and asks for its slot. Making it can not go wrong: it is no part of the history.
func wantSlot(c *linearClient, key, kind string) {
	command := c.Creation(c.t, c.roundAt(), lanetest.RunOptions{
		ConcurrencyKey: key,
		NoDelivery:     true,
		Concurrency:    linearLimit,
	})
	commit, err := c.own().AppendRunEvents(c.ctx(), command)
	if err != nil {
		c.problem(linearCreate, key, err.Error())
		return
	}
	if kind == linearTake {
		_, _ = claimWithSlot(c, key, commit.Run, linearTake)
	} else {
		reserveSlot(c, key, commit.Run)
	}
	c.mine[key] = append(c.mine[key], commit.Run.ID)
}

func reserveSlot(c *linearClient, key string, run *runlane.Run) {
	at := c.roundAt()
	delivery := lanetest.Delivery(run, at, at)
	delivery.Delivery.DispatchExpiresAt = at.Add(linearReservation)
	transition, ok := c.project(run, at, delivery)
	if !ok {
		return
	}
	transition.Queue.Concurrency = linearLimit
	_, _ = c.writes(
		linearCall{Key: key, Kind: linearReserve, Run: run.ID, Round: c.round},
		func(s lane.Storage) (linearAnswer, error) {
			return acquired(s.ReserveRunDispatch(c.ctx(), &lane.ReserveCommand{Transition: transition, At: at}))
		},
	)
}

func claimWithSlot(c *linearClient, key string, run *runlane.Run, kind string) (linearAnswer, bool) {
	at := c.roundAt()
	transition, ok := c.project(run, at, lanetest.Claimed(c.NewToken(), at.Add(time.Minute)), &runlane.RunStarted{
		Attempt: run.Counters.Attempts + 1,
	})
	if !ok {
		return linearAnswer{}, false
	}
	transition.Queue.Concurrency = linearLimit
	return c.writes(
		linearCall{Key: key, Kind: kind, Run: run.ID, Round: c.round},
		func(s lane.Storage) (linearAnswer, error) {
			return acquired(s.ClaimRunLease(c.ctx(), &lane.ClaimCommand{
				Transition: transition,
				At:         at,
				Slot:       kind == linearTake,
			}))
		},
	)
}

// goOn claims a run that has its reservation, or ends it. It is false when nothing is left to do.
func goOn(c *linearClient, key string, id runlane.RunID) bool {
	run, err := c.own().GetRun(c.ctx(), c.runKey(id))
	if err != nil {
		c.problem(linearRead, key, err.Error())
		return false
	}
	at := c.roundAt()
	var end runlane.EventBody = &runlane.RunCancelled{}
	switch {
	case run.Status.Terminal():
		c.closes(id)
		return false
	case lane.ReservationActive(run, at) && !c.quiet && c.chance(0.2):
		giveBack(c, key, run)
		return true
	case lane.ReservationActive(run, at) && !c.quiet && c.chance(0.6):
		_, _ = claimWithSlot(c, key, run, linearFollow)
		return true
	case run.Status == runlane.StatusRunning:
		end = lanetest.Succeeded(run, nil)
	}
	transition, ok := c.project(run, at, end)
	if !ok {
		return false
	}
	transition.Queue.Concurrency = linearLimit
	answer, _ := c.writes(
		linearCall{Key: key, Kind: linearEnd, Run: id, Round: c.round, Doubt: c.doubts(id)},
		func(s lane.Storage) (linearAnswer, error) {
			_, err := s.AppendRunEvents(c.ctx(), &lane.AppendCommand{
				Transition: transition,
				LeaseToken: run.Lease.Token,
			})
			if isConflict(err, runlane.ConflictEventSequence) || isConflict(err, runlane.ConflictLeaseOwnership) {
				return linearAnswer{Result: linearRefused}, nil
			}
			return linearAnswer{Result: linearDone}, err
		},
	)
	if answer.Result != linearDone {
		return true
	}
	c.closes(id)
	return false
}

func giveBack(c *linearClient, key string, run *runlane.Run) {
	_, _ = c.writes(
		linearCall{Key: key, Kind: linearReturn, Run: run.ID, Round: c.round},
		func(s lane.Storage) (linearAnswer, error) {
			released, err := s.ReleaseRunDispatch(c.ctx(), &lane.ReleaseDispatchCommand{
				RunKey: c.runKey(run.ID), ExpiresAt: run.DispatchExpiresAt, At: c.roundAt(),
			})
			if err == nil && !released {
				return linearAnswer{Result: linearRefused}, nil
			}
			return linearAnswer{Result: linearDone}, err
		},
	)
}

// settleSlots ends every run. Then each partition has all its slots, and not one more.
func settleSlots(c *linearClient) {
	for i := range c.o.Keys {
		key := c.keyName(i)
		for _, id := range c.mine[key] {
			goOn(c, key, id)
		}
		for range linearLimit + 1 {
			wantSlot(c, key, linearReserve)
		}
	}
}

// stepSlot is the contract of slots, one operation after the other. While other clients act, a run may be refused
// although a slot is free when the answer arrives, and it may lose to an earlier call of the same client that is
// carried out late.
func stepSlot(state any, call linearCall, answer linearAnswer) (bool, any) {
	before := state.(heldSlots)
	if answer.Result == linearUnknown && strings.Contains(before.over, "/"+string(call.Run)+"/") {
		return true, state
	}
	after := heldSlots{over: before.over}
	holders := before.at(call.Round)
	own := slices.IndexFunc(holders, func(h slotHolder) bool { return h.run == call.Run })
	full := len(holders) >= linearLimit
	switch answer.Result {
	case linearFull:
		return !call.Quiet || full && own < 0, state
	case linearRefused:
		return !call.Quiet, state
	}
	fits := true
	switch call.Kind {
	case linearReserve, linearTake:
		if fits = own < 0 && !full; fits {
			holders = append(holders, slotHolder{call.Run, call.Round, call.Kind == linearTake})
		}
	case linearFollow:
		if fits = own >= 0 && !holders[own].held; fits {
			holders[own].held = true
		}
	case linearReturn:
		if fits = own >= 0 && !holders[own].held; fits {
			holders = slices.Delete(holders, own, own+1)
		}
	case linearEnd:
		if own >= 0 {
			holders = slices.Delete(holders, own, own+1)
		}
		if call.Doubt || answer.Result == linearUnknown {
			after.over += "/" + string(call.Run) + "/"
		}
	}
	if !fits {
		return answer.Result == linearUnknown, state
	}
	slices.SortFunc(holders, func(a, b slotHolder) int { return strings.Compare(string(a.run), string(b.run)) })
	copy(after.holders[:], holders)
	return true, after
}

// at are the holders that count in a round.
func (s heldSlots) at(round int) []slotHolder {
	var holders []slotHolder
	for _, h := range s.holders {
		if h.run != "" && (h.held || h.round >= round) {
			holders = append(holders, h)
		}
	}
	return holders
}
