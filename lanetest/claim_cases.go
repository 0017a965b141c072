package lanetest

import (
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Claims.
func claimCases() []storageCase {
	return []storageCase{
		{"GivesTheRunToItsWorker", needsBoth(needsLeases, needsHistory), claimGives},
		{"RaceHasOneWinnerAndLosersGetAnOutcome", needsLeases, claimRace},
		{"RaceForAnExpiredLeaseHasOneWinner", needsLeases, takeoverRace},
		{"RunIsRunnableFromTheExactMillisecond", needsLeases, claimExact},
		{"RunAskedToCancelIsNotEligible", needsLeases, claimCancelling},
		{"StaleSequenceIsLostSequence", needsLeases, claimStale},
		{"MalformedClaimIsAContractViolationAndWritesNothing", needsLeases, claimMalformed},
	}
}

// tryClaim commits a claim at claimAt whose events occurred at eventAt, when the projection allows it.
func (b *bundle) tryClaim(run *runlane.Run, eventAt, claimAt time.Time) *lane.Acquisition {
	b.t.Helper()
	c := b.Claim(b.t, run, eventAt, eventAt.Add(time.Minute), b.NewToken())
	c.At = claimAt
	got := must(b.storage.ClaimRunLease(b.ctx(), c))(b.t)
	if (got.Commit != nil) != (got.Outcome == lane.Acquired) {
		b.t.Fatalf("outcome %q with commit %v", got.Outcome, got.Commit)
	}
	return got
}

func claimGives(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{Payload: []byte(`{"p": 1}`)})
	c := b.Claim(t, run, noon.Add(time.Second), noon.Add(time.Minute), "the token")
	got := must(b.storage.ClaimRunLease(b.ctx(), c))(t)
	if got.Outcome != lane.Acquired {
		t.Fatalf("outcome %q", got.Outcome)
	}
	equal(t, "run of the commit", c.Projected, got.Commit.Run)
	equal(t, "run read", c.Projected, b.get(run.ID))
	equal(t, "events", got.Commit.Events, b.history(b.key(run.ID))[2:])
	if len(got.Commit.Events) != 2 || got.Commit.Events[0].Type() != runlane.EventLeaseClaimed ||
		got.Commit.Events[1].Type() != runlane.EventStarted {
		t.Fatalf("events of the claim: %v", got.Commit.Events)
	}
}

func claimRace(t *testing.T, b *bundle) {
	b.claimRace(t, b.create(noon, RunOptions{}), noon)
}

// The dead owner is not among the callers: that its writes are refused is another case.
func takeoverRace(t *testing.T, b *bundle) {
	end := noon.Add(time.Minute)
	b.claimRace(t, b.running(noon, end, RunOptions{}), end)
}

func (b *bundle) claimRace(t *testing.T, run *runlane.Run, at time.Time) {
	t.Helper()
	commands := make([]*lane.ClaimCommand, callers)
	for i := range commands {
		commands[i] = b.Claim(t, run, at, at.Add(time.Minute), b.NewToken())
	}
	got, failed := race(callers, func(i int) (*lane.Acquisition, error) {
		return b.storage.ClaimRunLease(b.ctx(), commands[i])
	})
	if len(failed) > 0 {
		t.Fatalf("losing a claim is an outcome, not an error: %v", failed[0])
	}
	var winner *lane.Commit
	for _, a := range got {
		switch a.Outcome {
		case lane.Acquired:
			if winner != nil {
				t.Fatal("two callers acquired the run")
			}
			winner = a.Commit
		case lane.LostSequence, lane.LostEligibility:
			if a.Commit != nil {
				t.Fatal("a loser got a commit")
			}
		default:
			t.Fatalf("outcome %q", a.Outcome)
		}
	}
	if winner == nil {
		t.Fatal("no caller acquired the run")
	}
	equal(t, "run after the race", winner.Run, b.get(run.ID))
}

// runnableRuns makes a run in each status that a worker may take, due at the instant.
func (b *bundle) runnableRuns(due time.Time) map[runlane.Status]*runlane.Run {
	b.t.Helper()
	before := due.Add(-time.Hour)
	retrying := b.running(before, due, RunOptions{})
	released := b.running(before, due, RunOptions{})
	return map[runlane.Status]*runlane.Run{
		runlane.StatusQueued:    b.create(due, RunOptions{}),
		runlane.StatusScheduled: b.create(before, RunOptions{RunAt: due}),
		runlane.StatusRetrying:  b.push(retrying, before, Retried(retrying, due)),
		runlane.StatusReleased:  b.push(released, before, Released(released, due)),
		runlane.StatusRunning:   b.running(before, due, RunOptions{}),
	}
}

func claimExact(t *testing.T, b *bundle) {
	due := noon.Add(90 * time.Minute)
	for status, run := range b.runnableRuns(due) {
		if got := b.tryClaim(run, due, due.Add(-time.Millisecond)); got.Outcome != lane.LostEligibility {
			t.Errorf(
				"%s run, a millisecond before it is due: outcome %q, want %q",
				status,
				got.Outcome,
				lane.LostEligibility,
			)
		}
		equal(t, string(status)+" run after a claim too early", run, b.get(run.ID))
		if got := b.tryClaim(run, due, due); got.Outcome != lane.Acquired {
			t.Errorf("%s run at the millisecond it is due: outcome %q, want %q", status, got.Outcome, lane.Acquired)
		}
	}
}

// Built by hand: core never projects such a claim.
func claimCancelling(t *testing.T, b *bundle) {
	owned := b.running(noon, noon.Add(time.Minute), RunOptions{})
	run := b.push(owned, noon, &runlane.RunCancellationRequested{})
	forged := *run
	forged.Status = runlane.StatusRunning
	if got := b.tryClaim(&forged, noon.Add(time.Hour), noon.Add(time.Hour)); got.Outcome != lane.LostEligibility {
		t.Fatalf("outcome %q, want %q", got.Outcome, lane.LostEligibility)
	}
	equal(t, "run after the claim", run, b.get(run.ID))
}

func claimStale(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	moved := b.push(run, noon, Delivery(run, noon, noon))
	if got := b.tryClaim(run, noon, noon); got.Outcome != lane.LostSequence {
		t.Fatalf("stale claim: outcome %q, want %q", got.Outcome, lane.LostSequence)
	}
	equal(t, "run after a stale claim", moved, b.get(run.ID))
	absent := *run
	absent.ID = "run_absent"
	if got := b.tryClaim(&absent, noon, noon); got.Outcome != lane.LostSequence {
		t.Fatalf("claim of a run that does not exist: outcome %q, want %q", got.Outcome, lane.LostSequence)
	}
}

func claimMalformed(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	for name, change := range map[string]func(c *lane.ClaimCommand){
		"no projection":       func(c *lane.ClaimCommand) { c.Projected = nil },
		"no events":           func(c *lane.ClaimCommand) { c.Events = nil },
		"wrong sequence":      func(c *lane.ClaimCommand) { c.Projected.EventSequence++ },
		"another run's event": func(c *lane.ClaimCommand) { c.Events[0].RunID = "run_other" },
		"no lease claimed": func(c *lane.ClaimCommand) {
			c.Transition = b.Transition(t, run, noon, Delivery(run, noon, noon))
		},
	} {
		c := b.Claim(t, run, noon, noon.Add(time.Minute), b.NewToken())
		change(c)
		if got, err := b.storage.ClaimRunLease(b.ctx(), c); runlane.CodeOf(err) != runlane.ErrContractViolation {
			t.Errorf("%s: outcome %v, error %v, want %q", name, got, err, runlane.ErrContractViolation)
		}
	}
	equal(t, "run after malformed claims", run, b.get(run.ID))
}

// docs/internals/contract.md, Leases.
func leaseCases() []storageCase {
	return []storageCase{
		{"HeartbeatExtendsIt", needsBoth(needsLeases, needsHistory), heartbeatExtends},
		{"HeartbeatTellsAStaleSequenceFromLostOwnership", needsLeases, heartbeatJudged},
		{"Hazard19_LateOwnerIsFencedAfterATakeover", needsLeases, lateOwner},
		{"AHeartbeatAndATakeoverAtOnceHaveOneWinner", needsLeases, heartbeatRace},
		{"ReleaseVerifiesThatTheTokenIsGoneAndWritesNothing", needsLeases, releaseVerifies},
	}
}

func heartbeatExtends(t *testing.T, b *bundle) {
	run := b.running(noon, noon.Add(time.Minute), RunOptions{})
	c := b.Heartbeat(t, run, noon.Add(20*time.Second), noon.Add(80*time.Second))
	commit := must(b.storage.HeartbeatRunLease(b.ctx(), c))(t)
	equal(t, "run of the commit", c.Projected, commit.Run)
	equal(t, "run read", c.Projected, b.get(run.ID))
	equal(t, "event", commit.Events, b.history(b.key(run.ID))[run.EventSequence:])

	if got := b.tryClaim(
		commit.Run,
		noon.Add(80*time.Second),
		noon.Add(80*time.Second-time.Millisecond),
	); got.Outcome != lane.LostEligibility {
		t.Fatalf("claim before the extended lease ends: outcome %q", got.Outcome)
	}
	if got := b.tryClaim(commit.Run, noon.Add(80*time.Second), noon.Add(80*time.Second)); got.Outcome != lane.Acquired {
		t.Fatalf("claim when the extended lease ends: outcome %q", got.Outcome)
	}
}

func heartbeatJudged(t *testing.T, b *bundle) {
	run := b.running(noon, noon.Add(time.Minute), RunOptions{})
	late := b.Heartbeat(t, run, noon.Add(time.Second), noon.Add(time.Hour))
	asked := b.push(run, noon, &runlane.RunCancellationRequested{}) // the owner has not seen it
	_, err := b.storage.HeartbeatRunLease(b.ctx(), late)
	wantConflict(t, err, runlane.ConflictEventSequence, run.ID)

	// Another owner, at the sequence that the caller knows.
	forged := *asked
	forged.Lease.Token = "forged"
	_, err = b.storage.HeartbeatRunLease(b.ctx(), b.Heartbeat(t, &forged, noon.Add(time.Second), noon.Add(time.Hour)))
	wantConflict(t, err, runlane.ConflictLeaseOwnership, run.ID)
	// Both wrong: the sequence is judged first.
	forged.EventSequence--
	_, err = b.storage.HeartbeatRunLease(b.ctx(), b.Heartbeat(t, &forged, noon.Add(time.Second), noon.Add(time.Hour)))
	wantConflict(t, err, runlane.ConflictEventSequence, run.ID)
	equal(t, "run after refused heartbeats", asked, b.get(run.ID))

	must(b.storage.HeartbeatRunLease(b.ctx(), b.Heartbeat(t, asked, noon.Add(time.Second), noon.Add(time.Hour))))(t)
}

func lateOwner(t *testing.T, b *bundle) {
	first := b.running(noon, noon.Add(time.Minute), RunOptions{})
	second := b.claim(first, noon.Add(time.Minute), noon.Add(2*time.Minute))

	late := b.Append(t, first, noon.Add(61*time.Second), Succeeded(first, []byte(`"mine"`)))
	late.LeaseToken = first.Lease.Token
	_, err := b.storage.AppendRunEvents(b.ctx(), late)
	wantConflict(t, err, runlane.ConflictEventSequence, first.ID)

	// It reads again and repeats with its old token: now it is refused for the token.
	late = b.Append(t, second, noon.Add(61*time.Second), Succeeded(second, []byte(`"mine"`)))
	late.LeaseToken = first.Lease.Token
	_, err = b.storage.AppendRunEvents(b.ctx(), late)
	wantConflict(t, err, runlane.ConflictLeaseOwnership, first.ID)
	equal(t, "run after the late owner", second, b.get(first.ID))

	outcome := b.Append(t, second, noon.Add(62*time.Second), Succeeded(second, []byte(`"ours"`)))
	outcome.LeaseToken = second.Lease.Token
	b.append(outcome)
}

func heartbeatRace(t *testing.T, b *bundle) {
	end := noon.Add(time.Minute)
	run := b.running(noon, end, RunOptions{})
	beat := b.Heartbeat(t, run, end, end.Add(time.Minute))
	claims := make([]*lane.ClaimCommand, callers-1)
	for i := range claims {
		claims[i] = b.Claim(t, run, end, end.Add(time.Minute), b.NewToken())
	}
	won, failed := race(callers, func(i int) (*lane.Commit, error) {
		if i == len(claims) {
			commit, err := b.storage.HeartbeatRunLease(b.ctx(), beat)
			if isConflict(err, runlane.ConflictEventSequence) || isConflict(err, runlane.ConflictLeaseOwnership) {
				return nil, nil
			}
			return commit, err
		}
		got, err := b.storage.ClaimRunLease(b.ctx(), claims[i])
		if err != nil {
			return nil, err
		}
		return got.Commit, nil
	})
	if len(failed) > 0 {
		t.Fatal(failed[0])
	}
	if won = slices.DeleteFunc(won, func(c *lane.Commit) bool { return c == nil }); len(won) != 1 {
		t.Fatalf("%d of %d commits at one sequence were written", len(won), callers)
	}
	equal(t, "run after the race", won[0].Run, b.get(run.ID))
}

func releaseVerifies(t *testing.T, b *bundle) {
	run := b.running(noon, noon.Add(time.Minute), RunOptions{})
	release := &lane.ReleaseCommand{RunKey: b.key(run.ID), LeaseToken: run.Lease.Token}
	wantConflict(t, b.storage.ReleaseRunLease(b.ctx(), release), runlane.ConflictLeaseOwnership, run.ID)
	equal(t, "run after a refused release", run, b.get(run.ID))

	second := b.claim(run, noon.Add(time.Minute), noon.Add(2*time.Minute))
	if err := b.storage.ReleaseRunLease(b.ctx(), release); err != nil {
		t.Fatalf("release after a takeover: %v", err)
	}
	done := b.push(second, noon.Add(time.Minute), Succeeded(second, nil))
	if err := b.storage.ReleaseRunLease(b.ctx(), &lane.ReleaseCommand{
		RunKey:     b.key(run.ID),
		LeaseToken: second.Lease.Token,
	}); err != nil {
		t.Fatalf("release after the outcome: %v", err)
	}
	equal(t, "run after releases", done, b.get(run.ID))
	wantError(
		t,
		b.storage.ReleaseRunLease(b.ctx(), &lane.ReleaseCommand{RunKey: b.key("run_absent"), LeaseToken: "x"}),
		runlane.ErrRunNotFound,
	)
}
