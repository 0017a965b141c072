package lanetest

import (
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Calls.
func callCases() []storageCase {
	calls := needsBoth(needsKept, needsLeases)
	return []storageCase{
		{"StandBesideTheirRunOnce", calls, callsKept},
		{"NeedTheLeaseOfTheirRun", calls, callsFenced},
		{"AnEndIsPendingUntilItIsCounted", calls, callsTold},
		{"OtherEndsAreNotPending", calls, callsQuiet},
		{"AnEndIsCountedOnce", calls, callsOnce},
		{"AnEndDependsOnTheCountThatWasRead", calls, callsCounted},
		{"TheLastEndResumesInTheSameCommit", calls, callsResume},
		{"OnAStaleSequenceNoEndIsCounted", calls, callsStale},
		{"TheLastEndDependsOnTheWaitThatWasRead", calls, callsWait},
		{"ASuspensionDependsOnTheEndsThatWereMissing", calls, callsLooked},
		{"ASuspensionDependsOnASetOfCalls", calls, callsMany},
		{"OfManyEndsAtOnceEachIsCountedOnce", calls, callsRace},
		{"ACancellationOfARunThatCallsIsPending", calls, callsCancelled},
		{"MalformedOnesAreRefused", calls, callsMalformed},
		{"RunsThatAreNeededAreNotPruned", needsBoth(calls, needsPruning), callsPruned},
		{"AnIDUsedAgainHasNoneOfTheRunBefore", needsBoth(calls, needsPruning), callsReused},
	}
}

const called = "pages: 1" // a name need not be a word

// calling is a command for a running run.
func (b *bundle) calling(run *runlane.Run, name string, count int) *lane.CallCommand {
	return &lane.CallCommand{
		RunKey:     b.key(run.ID),
		CreatedAt:  run.CreatedAt,
		LeaseToken: run.Lease.Token,
		Call:       lane.RunCall{Name: name, TaskID: TaskID, Count: count, Sum: "sum", At: noon.Add(time.Second)},
	}
}

// caller is a running run that calls count runs, which have not ended.
func (b *bundle) caller(count int) (run *runlane.Run, children []*runlane.Run) {
	b.t.Helper()
	run = b.running(noon, noon.Add(time.Hour), RunOptions{})
	must(b.storage.BeginCall(b.ctx(), b.calling(run, "pages", count)))(b.t)
	for range count {
		children = append(children, b.child(run, "pages"))
	}
	return run, children
}

func (b *bundle) child(of *runlane.Run, call string) *runlane.Run {
	b.t.Helper()
	return b.create(noon, RunOptions{Source: runlane.Source{
		Type: runlane.SourceCall, RunID: of.ID, Call: call, CreatedAt: of.CreatedAt,
	}})
}

func (b *bundle) calls(run *runlane.Run) *lane.CallsRead {
	b.t.Helper()
	return must(b.storage.ReadCalls(b.ctx(), &lane.CallQuery{RunKey: b.key(run.ID)}))(b.t)
}

// telling is a command for an end and the call as it is.
func (b *bundle) notifying(child, caller *runlane.Run) *lane.NotifyCommand {
	b.t.Helper()
	read := b.calls(caller)
	c := &lane.NotifyCommand{RunKey: b.key(child.ID), CreatedAt: child.CreatedAt, To: &lane.CallRead{
		RunID:     caller.ID,
		CreatedAt: caller.CreatedAt,
		Name:      read.Calls[0].Name,
		Count:     read.Calls[0].Count,
		Ended:     read.Calls[0].Ended,
	}}
	if read.Run.Waiting != nil {
		c.To.Wait = read.Run.EventSequence
	}
	return c
}

func (b *bundle) notify(c *lane.NotifyCommand) {
	b.t.Helper()
	if commit := must(b.storage.NotifyEnd(b.ctx(), c))(b.t); commit != nil {
		b.t.Errorf("an end that resumes nothing returned %+v", commit)
	}
}

// waitForCall suspends the caller until its call is whole.
func (b *bundle) waitForCall(run *runlane.Run) *runlane.Run {
	b.t.Helper()
	return b.push(run, noon, Waits(run, &runlane.Waiting{
		For: []runlane.WaitingFor{runlane.WaitingChildren}, Names: []string{"pages"}, Need: 1,
	}))
}

// ending adds what ends the caller's wait.
func (b *bundle) ending(c *lane.NotifyCommand, caller *runlane.Run, at time.Time) *lane.NotifyCommand {
	b.t.Helper()
	c.To.Wait = 0
	c.Resume = b.Append(b.t, caller, at, &runlane.RunResumed{
		By: runlane.WaitingChildren, Name: c.To.Name, ID: string(c.RunID),
	}, &runlane.RunDeliveryRequested{Delivery: runlane.Delivery{
		Environment: b.env,
		RunID:       caller.ID,
		Queue:       caller.Queue,
		AvailableAt: at,
		RequestedAt: at,
	}})
	return c
}

func (b *bundle) wantPending(what string, want ...*runlane.Run) {
	b.t.Helper()
	b.wantScan(what, b.storage.ListRunsToNotify, b.due(noon.Add(time.Hour)), want...)
}

func callsKept(t *testing.T, b *bundle) {
	run := b.running(noon, noon.Add(time.Hour), RunOptions{})
	equal(t, "calls before", 0, len(b.calls(run).Calls))
	first := b.calling(run, "pages", 2)
	kept := must(b.storage.BeginCall(b.ctx(), first))(t)
	equal(t, "the call", &first.Call, kept)
	other := b.calling(run, "pages", 3)
	other.Call.Sum = "another"
	equal(t, "the one that is there", &first.Call, must(b.storage.BeginCall(b.ctx(), other))(t))
	second := b.calling(run, "covers", 1)
	second.Call.Sum = ""
	must(b.storage.BeginCall(b.ctx(), second))(t)
	read := b.calls(run)
	equal(t, "calls", []lane.RunCall{second.Call, first.Call}, read.Calls)
	equal(t, "untold", false, read.NotificationPending)
	equal(t, "the run: calls are no history", run, b.get(run.ID))
	one := must(b.storage.ReadCalls(b.ctx(), &lane.CallQuery{RunKey: b.key(run.ID), Name: "covers"}))(t)
	equal(t, "the one that is named", []lane.RunCall{second.Call}, one.Calls)
	none := must(b.storage.ReadCalls(b.ctx(), &lane.CallQuery{RunKey: b.key(run.ID), Name: "cover"}))(t)
	equal(t, "one that is not there", 0, len(none.Calls))
	_, err := b.storage.ReadCalls(b.ctx(), &lane.CallQuery{RunKey: b.key("run_unknown")})
	wantError(t, err, runlane.ErrRunNotFound)
	b.push(run, noon.Add(time.Second), Succeeded(run, nil))
}

func callsFenced(t *testing.T, b *bundle) {
	run := b.running(noon, noon.Add(time.Hour), RunOptions{})
	for what, change := range map[string]func(*lane.CallCommand){
		"another lease": func(c *lane.CallCommand) { c.LeaseToken = "another" },
	} {
		c := b.calling(run, "pages", 1)
		change(c)
		_, err := b.storage.BeginCall(b.ctx(), c)
		wantConflict(t, err, runlane.ConflictLeaseOwnership, run.ID)
		equal(t, "calls after "+what, 0, len(b.calls(run).Calls))
	}
	late := b.calling(run, "pages", 1)
	late.CreatedAt = noon.Add(-time.Hour)
	_, err := b.storage.BeginCall(b.ctx(), late)
	wantError(t, err, runlane.ErrRunNotFound)
	over := b.calling(run, "pages", 1)
	b.push(run, noon.Add(time.Second), Succeeded(run, nil))
	_, err = b.storage.BeginCall(b.ctx(), over)
	wantConflict(t, err, runlane.ConflictLeaseOwnership, run.ID)
}

func callsTold(t *testing.T, b *bundle) {
	run, children := b.caller(2)
	source := b.get(children[0].ID).Source
	equal(t, "source", runlane.Source{
		Type: runlane.SourceCall, RunID: run.ID, Call: "pages", CreatedAt: run.CreatedAt,
	}, source)
	b.wantPending("before")
	for i, status := range []runlane.Status{runlane.StatusFailed, runlane.StatusCancelled} {
		ended := b.end(children[i], noon, status)
		b.wantPending("ended", ended)
		equal(t, "untold", true, b.calls(ended).NotificationPending)
		b.notify(b.notifying(ended, run))
		b.wantPending("told")
		equal(t, "untold", false, b.calls(ended).NotificationPending)
		equal(t, "ended", i+1, b.calls(run).Calls[0].Ended)
		equal(t, "the run that has ended", ended, b.get(ended.ID))
	}
	equal(t, "the run that calls", run, b.get(run.ID))
}

func callsQuiet(t *testing.T, b *bundle) {
	run, _ := b.caller(1)
	commit := b.append(b.Append(t, run, noon, Succeeded(run, nil)))
	equal(t, "a success of a run that calls is untold", false, commit.NotificationPending)
	plain := b.create(noon, RunOptions{})
	commit = b.append(b.Append(t, plain, noon, &runlane.RunCancelled{}))
	equal(t, "a cancellation of a run that does not is", false, commit.NotificationPending)
	b.wantPending("neither")
	_, err := b.storage.NotifyEnd(b.ctx(), &lane.NotifyCommand{RunKey: b.key(plain.ID), CreatedAt: plain.CreatedAt})
	wantConflict(t, err, runlane.ConflictWait, plain.ID)
}

func callsOnce(t *testing.T, b *bundle) {
	run, children := b.caller(3)
	ended := b.end(children[0], noon, runlane.StatusSucceeded)
	c := b.notifying(ended, run)
	b.notify(c)
	_, err := b.storage.NotifyEnd(b.ctx(), c)
	wantConflict(t, err, runlane.ConflictWait, ended.ID)
	_, err = b.storage.NotifyEnd(b.ctx(), b.notifying(ended, run))
	wantConflict(t, err, runlane.ConflictWait, ended.ID)
	active := b.notifying(children[1], run)
	_, err = b.storage.NotifyEnd(b.ctx(), active)
	wantConflict(t, err, runlane.ConflictWait, children[1].ID)
	equal(t, "ended", 1, b.calls(run).Calls[0].Ended)
}

func callsCounted(t *testing.T, b *bundle) {
	run, children := b.caller(3)
	first, second := b.end(children[0], noon, runlane.StatusSucceeded), b.end(children[1], noon, runlane.StatusFailed)
	stale := b.notifying(second, run)
	b.notify(b.notifying(first, run))
	_, err := b.storage.NotifyEnd(b.ctx(), stale)
	wantConflict(t, err, runlane.ConflictWait, second.ID)
	b.wantPending("the second", second)
	elsewhere := b.notifying(second, run)
	elsewhere.To.Name = "covers"
	_, err = b.storage.NotifyEnd(b.ctx(), elsewhere)
	wantConflict(t, err, runlane.ConflictWait, second.ID)
	earlier := b.notifying(second, run)
	earlier.To.CreatedAt = noon.Add(-time.Hour)
	_, err = b.storage.NotifyEnd(b.ctx(), earlier)
	wantConflict(t, err, runlane.ConflictWait, second.ID)
	noOne := b.notifying(second, run)
	noOne.To = nil
	b.notify(noOne)
	equal(t, "ended", 1, b.calls(run).Calls[0].Ended)
	b.wantPending("told to no one")
}

func callsResume(t *testing.T, b *bundle) {
	run, children := b.caller(1)
	run = b.waitForCall(run)
	ended := b.end(children[0], noon, runlane.StatusSucceeded)
	at := noon.Add(time.Minute)
	commit := must(b.storage.NotifyEnd(b.ctx(), b.ending(b.notifying(ended, run), run, at)))(t)
	equal(t, "status", runlane.StatusQueued, commit.Run.Status)
	equal(t, "outbox rows", 1, len(commit.Outbox))
	equal(t, "the run", commit.Run, b.get(run.ID))
	equal(t, "ended", 1, b.calls(run).Calls[0].Ended)
	b.wantPending("told")
	b.wantScan("runnable", b.storage.ListRunnableRuns, b.due(at), commit.Run)
}

func callsStale(t *testing.T, b *bundle) {
	run, children := b.caller(1)
	run = b.waitForCall(run)
	ended := b.end(children[0], noon, runlane.StatusSucceeded)
	c := b.ending(b.notifying(ended, run), run, noon.Add(time.Minute))
	b.push(run, noon.Add(time.Second), Resumed())
	_, err := b.storage.NotifyEnd(b.ctx(), c)
	wantConflict(t, err, runlane.ConflictEventSequence, run.ID)
	equal(t, "ended", 0, b.calls(run).Calls[0].Ended)
	b.wantPending("not told", ended)
}

func callsWait(t *testing.T, b *bundle) {
	run, children := b.caller(1)
	ended := b.end(children[0], noon, runlane.StatusSucceeded)
	early := b.notifying(ended, run)
	waiting := b.waitForCall(run)
	_, err := b.storage.NotifyEnd(b.ctx(), early)
	wantConflict(t, err, runlane.ConflictWait, ended.ID)
	equal(t, "ended", 0, b.calls(run).Calls[0].Ended)
	b.wantPending("not told", ended)
	b.notify(b.notifying(ended, waiting)) // its wait was read: it is for something else
	equal(t, "ended", 1, b.calls(run).Calls[0].Ended)
	equal(t, "the run", waiting, b.get(run.ID))
}

func callsRace(t *testing.T, b *bundle) {
	const ends = 12
	run, children := b.caller(ends + 1)
	var group sync.WaitGroup
	for i := range ends {
		ended := b.end(children[i], noon, runlane.StatusSucceeded)
		group.Go(func() {
			for { // until it is counted: each round another one is
				_, err := b.storage.NotifyEnd(b.ctx(), b.notifying(ended, run))
				if err == nil {
					return
				}
				if !isConflict(err, runlane.ConflictWait) {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	equal(t, "ended", ends, b.calls(run).Calls[0].Ended)
	b.wantPending("all told")
}

func callsCancelled(t *testing.T, b *bundle) {
	run, _ := b.caller(1)
	run = b.waitForCall(run)
	commit := b.append(b.Append(t, run, noon, &runlane.RunCancelled{}))
	equal(t, "untold", true, commit.NotificationPending)
	b.wantPending("cancelled", run)
	q := b.due(noon.Add(time.Hour))
	q.Patience.Queued = 2 * time.Hour
	for _, ref := range b.scanAll(b.storage.ListRunsToNotify, q) { // it may be left out, and nothing else is there
		equal(t, "run", run.ID, ref.RunID)
	}
	b.notify(&lane.NotifyCommand{RunKey: b.key(run.ID), CreatedAt: run.CreatedAt})
	b.wantPending("told")
}

func callsMalformed(t *testing.T, b *bundle) {
	run, children := b.caller(1)
	for what, change := range map[string]func(*lane.CallCommand){
		"no name":       func(c *lane.CallCommand) { c.Call.Name = "" },
		"a bad name":    func(c *lane.CallCommand) { c.Call.Name = called },
		"no task":       func(c *lane.CallCommand) { c.Call.TaskID = "" },
		"no runs":       func(c *lane.CallCommand) { c.Call.Count = 0 },
		"too many runs": func(c *lane.CallCommand) { c.Call.Count = runlane.MaxCalled + 1 },
		"an end":        func(c *lane.CallCommand) { c.Call.Ended = 1 },
		"no lease":      func(c *lane.CallCommand) { c.LeaseToken = "" },
	} {
		c := b.calling(run, "covers", 1)
		change(c)
		if _, err := b.storage.BeginCall(b.ctx(), c); runlane.CodeOf(err) != runlane.ErrContractViolation {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, change := range map[string]func(*lane.NotifyCommand){
		"no creation":   func(c *lane.NotifyCommand) { c.CreatedAt = time.Time{} },
		"itself":        func(c *lane.NotifyCommand) { c.To.RunID = c.RunID },
		"more than all": func(c *lane.NotifyCommand) { c.To.Ended = 1 },
		"another run": func(c *lane.NotifyCommand) {
			c.Resume = b.Append(t, children[0], noon, &runlane.RunCancelled{})
		},
		"no call at all": func(c *lane.NotifyCommand) {
			c.Resume, c.To = b.Append(t, run, noon, Succeeded(run, nil)), nil
		},
	} {
		c := b.notifying(children[0], run)
		change(c)
		if _, err := b.storage.NotifyEnd(b.ctx(), c); runlane.CodeOf(err) != runlane.ErrContractViolation {
			t.Errorf("%s: %v", what, err)
		}
	}
	equal(t, "calls", 1, len(b.calls(run).Calls))
}

func callsPruned(t *testing.T, b *bundle) {
	run, children := b.caller(2)
	untold, told := b.end(children[0], noon, runlane.StatusSucceeded), b.end(children[1], noon, runlane.StatusFailed)
	b.notify(b.notifying(told, run))
	plain := b.end(b.create(noon, RunOptions{}), noon, runlane.StatusSucceeded)
	prune := b.pruning(noon.Add(time.Hour))
	b.wantPruned(prune, 0, plain.ID)
	b.wantThere(untold.ID, told.ID, run.ID)
	run = b.push(run, noon.Add(time.Second), Failed(run))
	b.notify(&lane.NotifyCommand{RunKey: b.key(untold.ID), CreatedAt: untold.CreatedAt})
	b.wantPruned(prune, 0, untold.ID, told.ID, run.ID)
}

func callsReused(t *testing.T, b *bundle) {
	run, children := b.caller(1)
	ended := b.end(children[0], noon, runlane.StatusSucceeded)
	late := b.notifying(ended, run)
	b.push(run, noon, Succeeded(run, nil))
	b.notify(&lane.NotifyCommand{RunKey: b.key(ended.ID), CreatedAt: ended.CreatedAt})
	b.wantPruned(b.pruning(noon.Add(time.Second)), 0, run.ID, ended.ID)
	at := noon.Add(time.Minute)
	again := b.running(at, at.Add(time.Hour), RunOptions{ID: run.ID})
	equal(t, "calls", 0, len(b.calls(again).Calls))
	_, err := b.storage.NotifyEnd(b.ctx(), late)
	wantConflict(t, err, runlane.ConflictWait, ended.ID)
}
