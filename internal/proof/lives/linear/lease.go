package linear

import (
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
)

// Operations on the lease of a run.
const (
	linearClaim   = "claim"
	linearExtend  = "extend"
	linearRelease = "release"
)

// leasedRun is a run that a worker owns until an instant, or that waits until then.
type leasedRun struct {
	sequence int64
	token    string
	until    int64
	running  bool
}

func leaseSubject() linearSubject {
	return linearSubject{
		needs:   func(c lane.StorageCapabilities) bool { return c.LeasesRuns && c.ReadsRunHistory },
		prepare: prepareLeases,
		act:     actOnLease,
		settle:  settleLeases,
		begin:   leasedRun{sequence: 2, until: noon.UnixMilli()},
		step:    stepLease,
		meets:   []string{"claim done", "claim refused", "extend done", "release done", "release refused", "read done"},
	}
}

// leaseEnd is so soon that owners lose their runs while they work.
func (c *linearClient) leaseEnd(at time.Time) time.Time {
	return at.Add(time.Duration(c.o.Keys) * 2 * time.Second)
}

func prepareLeases(h *linearHistory) {
	for i := range h.o.Keys {
		h.runs[h.keyName(i)] = h.create().Run.ID
	}
}

// actOnLease reads the run, or uses what the client last read, and does what an owner, a late owner or a new worker
// would do.
func actOnLease(c *linearClient) {
	key := c.key()
	run := c.seen[key]
	if run == nil || c.chance(0.7) {
		if run = readLease(c, key); run == nil {
			return
		}
	}
	at := c.tick()
	tokens := c.tokens[key]
	running := run.Status == runlane.StatusRunning
	switch {
	case running && slices.Contains(tokens, run.Lease.Token) && c.chance(0.8):
		workAsOwner(c, key, run, at)
	case running && len(tokens) > 0 && c.chance(0.5): // as if it had read the run, and not whose it is
		releaseLease(c, key, run, at, tokens[c.choose.IntN(len(tokens))])
	default:
		claimLease(c, key, run, at)
	}
}

func workAsOwner(c *linearClient, key string, run *runlane.Run, at time.Time) {
	if c.chance(0.5) {
		extendLease(c, key, run, at)
		return
	}
	releaseLease(c, key, run, at, run.Lease.Token)
}

func readLease(c *linearClient, key string) *runlane.Run {
	var run *runlane.Run
	_, heard := c.reads(linearCall{Key: key, Kind: linearRead}, func(s lane.Storage) (linearAnswer, error) {
		var err error
		run, err = s.GetRun(c.ctx(), c.runKey(c.runs[key]))
		if err != nil {
			return linearAnswer{}, err
		}
		return linearAnswer{Result: linearDone, Sequence: run.EventSequence, Token: run.Lease.Token}, nil
	})
	if !heard {
		return nil
	}
	c.seen[key] = run
	return run
}

// claimLease also claims too early: the storage has to judge by the instant of the command.
func claimLease(c *linearClient, key string, run *runlane.Run, at time.Time) {
	occurred := at
	if due, ok := lane.RunnableAt(run); ok && due.After(at) {
		occurred = due
	}
	token, end := c.NewToken(), c.leaseEnd(occurred)
	transition, ok := c.project(run, occurred, lanetest.Claimed(token, end), &runlane.RunStarted{
		Attempt: run.Counters.Attempts + 1,
	})
	if !ok {
		return
	}
	call := linearCall{
		Key:      key,
		Kind:     linearClaim,
		Token:    token,
		Expected: run.EventSequence,
		At:       at.UnixMilli(),
		Until:    end.UnixMilli(),
	}
	answer, heard := c.writes(call, func(s lane.Storage) (linearAnswer, error) {
		got, err := s.ClaimRunLease(c.ctx(), &lane.ClaimCommand{Transition: transition, At: at, ByWakeup: true})
		return acquired(got, err)
	})
	if answer.Result == linearDone || !heard { // or perhaps it was
		c.tokens[key] = append(c.tokens[key], token)
	}
	if answer.Result == linearDone {
		c.seen[key] = transition.Projected
		if !c.quiet && c.chance(0.6) {
			workAsOwner(c, key, transition.Projected, c.tick())
		}
	}
}

// acquired is the answer to a claim or a reservation.
func acquired(got *lane.Acquisition, err error) (linearAnswer, error) {
	switch {
	case err != nil:
		return linearAnswer{}, err
	case got.Outcome == lane.Acquired:
		return linearAnswer{Result: linearDone}, nil
	case got.Outcome == lane.LostCapacity:
		return linearAnswer{Result: linearFull}, nil
	default:
		return linearAnswer{Result: linearRefused}, nil
	}
}

func extendLease(c *linearClient, key string, run *runlane.Run, at time.Time) {
	lease := run.Lease
	lease.ExpiresAt = c.leaseEnd(at)
	transition, ok := c.project(run, at, &runlane.RunLeaseHeartbeat{Lease: lease})
	if !ok {
		return
	}
	call := linearCall{
		Key:      key,
		Kind:     linearExtend,
		Token:    lease.Token,
		Expected: run.EventSequence,
		Until:    transition.Projected.Lease.ExpiresAt.UnixMilli(),
	}
	writeAsOwner(c, call, transition.Projected, func(s lane.Storage) error {
		_, err := s.HeartbeatRunLease(c.ctx(), &lane.HeartbeatCommand{Transition: transition})
		return err
	})
}

func releaseLease(c *linearClient, key string, run *runlane.Run, at time.Time, token string) {
	transition, ok := c.project(run, at, lanetest.Released(run, at))
	if !ok {
		return
	}
	call := linearCall{
		Key:      key,
		Kind:     linearRelease,
		Token:    token,
		Expected: run.EventSequence,
		Until:    transition.Projected.RunAt.UnixMilli(),
	}
	writeAsOwner(c, call, transition.Projected, func(s lane.Storage) error {
		_, err := s.AppendRunEvents(c.ctx(), &lane.AppendCommand{Transition: transition, LeaseToken: token})
		return err
	})
}

func writeAsOwner(c *linearClient, call linearCall, after *runlane.Run, write func(s lane.Storage) error) {
	answer, _ := c.writes(call, func(s lane.Storage) (linearAnswer, error) {
		err := write(s)
		if isConflict(err, runlane.ConflictEventSequence) || isConflict(err, runlane.ConflictLeaseOwnership) {
			return linearAnswer{Result: linearRefused}, nil
		}
		return linearAnswer{Result: linearDone}, err
	})
	if answer.Result == linearDone {
		c.seen[call.Key] = after
	}
}

// settleLeases claims each run twice, the second time when the first lease is over. Then the first owner is refused.
func settleLeases(c *linearClient) {
	for i := range c.o.Keys {
		key := c.keyName(i)
		if readLease(c, key) == nil {
			continue
		}
		claimLease(c, key, c.seen[key], c.tick().Add(24*time.Hour))
		late := c.seen[key].Lease.Token
		over := c.tick().Add(48 * time.Hour)
		claimLease(c, key, c.seen[key], over)
		releaseLease(c, key, c.seen[key], over, late)
		releaseLease(c, key, c.seen[key], over, c.seen[key].Lease.Token)
	}
}

// stepLease is the contract of leases, one operation after the other. A caller that lost several races may learn of any
// of them.
func stepLease(state any, call linearCall, answer linearAnswer) (bool, any) {
	s := state.(leasedRun)
	var fits bool
	var after leasedRun
	switch call.Kind {
	case linearRead:
		return s.sequence == answer.Sequence && s.token == answer.Token, s
	case linearClaim:
		fits = s.sequence == call.Expected && s.until <= call.At
		after = leasedRun{s.sequence + 2, call.Token, call.Until, true}
	case linearExtend:
		fits = s.sequence == call.Expected && s.running && s.token == call.Token
		after = leasedRun{s.sequence + 1, s.token, call.Until, true}
	case linearRelease:
		fits = s.sequence == call.Expected && s.running && s.token == call.Token
		after = leasedRun{sequence: s.sequence + 1, until: call.Until}
	}
	switch {
	case answer.Result == linearRefused:
		return !fits, s
	case fits:
		return true, after
	default:
		return answer.Result == linearUnknown, s
	}
}
