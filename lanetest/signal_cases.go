package lanetest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Signals.
func signalCases() []storageCase {
	waits := needsBoth(needsKept, needsLeases)
	return []storageCase{
		{"StandBesideTheirRunAndAreCounted", needsKept, signalsKept},
		{"OfANameTheOneThatCameFirstIsRead", needsKept, signalsFirst},
		{"OneOfANameAndIDIsPut", needsKept, signalsOnce},
		{"DependOnTheCountThatWasRead", needsKept, signalsCounted},
		{"EndAWaitInTheSameCommit", waits, signalsResume},
		{"OnAStaleSequenceNothingIsPut", waits, signalsStale},
		{"DependOnTheWaitThatWasRead", waits, signalsWait},
		{"ASuspensionDependsOnTheMailThatWasLookedAt", waits, signalsLooked},
		{"DisturbNoOwner", waits, signalsUndisturbing},
		{"NeedAnActiveRun", waits, signalsEnded},
		{"LargeBodiesAreKept", needsKept, signalsLarge},
		{"BodiesAreTheCallersOwn", needsKept, signalsCopied},
		{"BelongToARunOfOneEnvironment", needsKept, signalsElsewhere},
		{"OfManyAtOnceEachIsCountedOnce", needsKept, signalsRace},
		{"MalformedOnesAreRefusedAndNothingIsPut", needsKept, signalsMalformed},
		{"GoWithTheirRun", needsBoth(waits, needsPruning), signalsPruned},
		{"AnIDUsedAgainHasNoneOfTheRunBefore", needsBoth(waits, needsPruning), signalsReused},
	}
}

// sending is a command for a run as it is.
func (b *bundle) sending(run *runlane.Run, name, id, body string) *lane.SignalCommand {
	b.t.Helper()
	mail := b.mail(run)
	c := &lane.SignalCommand{
		RunKey:    b.key(run.ID),
		CreatedAt: run.CreatedAt,
		Count:     mail.Count,
		Signal: lane.Signal{
			Name:   name,
			ID:     id,
			Number: mail.Count + 1,
			SentAt: noon.Add(time.Second),
			Body:   []byte(body),
		},
	}
	if mail.Run.Waiting != nil {
		c.Wait = mail.Run.EventSequence
	}
	return c
}

// send puts a signal that resumes nothing.
func (b *bundle) send(run *runlane.Run, name, id, body string) {
	b.t.Helper()
	commit := must(b.storage.SendSignal(b.ctx(), b.sending(run, name, id, body)))(b.t)
	if commit != nil {
		b.t.Errorf("a signal that resumes nothing returned %+v", commit)
	}
}

func (b *bundle) mail(run *runlane.Run, names ...string) *lane.Mail {
	b.t.Helper()
	return must(b.storage.ReadMail(b.ctx(), &lane.MailQuery{RunKey: b.key(run.ID), Names: names}))(b.t)
}

// resuming adds what ends the run's wait.
func (b *bundle) resuming(c *lane.SignalCommand, run *runlane.Run, at time.Time) *lane.SignalCommand {
	b.t.Helper()
	c.Resume = b.Append(b.t, run, at, &runlane.RunResumed{
		By: runlane.WaitingSignal, Name: c.Signal.Name, ID: c.Signal.ID,
	}, &runlane.RunDeliveryRequested{Delivery: runlane.Delivery{
		Environment: b.env,
		RunID:       run.ID,
		Queue:       run.Queue,
		AvailableAt: at,
		RequestedAt: at,
	}})
	return c
}

// waitingRun waits for the signal approved.
func (b *bundle) waitingRun() *runlane.Run {
	run := b.running(noon, noon.Add(time.Minute), RunOptions{})
	return b.push(run, noon, Waits(run, &runlane.Waiting{
		For: []runlane.WaitingFor{runlane.WaitingSignal}, Names: []string{"approved"},
	}))
}

func signalsKept(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	mail := b.mail(run, "approved")
	equal(t, "count before", int64(0), mail.Count)
	equal(t, "signals before", 0, len(mail.Signals))
	b.send(run, "approved", "id: 1", `{"by":"ada"}`)
	b.send(run, "refused", "id: 1", ``)
	mail = b.mail(run, "refused", "withdrawn", "approved")
	equal(t, "count", int64(2), mail.Count)
	equal(t, "run", run.EventSequence, mail.Run.EventSequence)
	equal(t, "payload of the run in mail", 0, len(mail.Run.Payload))
	equal(t, "signals", []lane.Signal{
		{Name: "refused", ID: "id: 1", Number: 2, SentAt: noon.Add(time.Second)},
		{Name: "approved", ID: "id: 1", Number: 1, SentAt: noon.Add(time.Second), Body: []byte(`{"by":"ada"}`)},
	}, bare(mail.Signals))
	without := must(b.storage.ReadMail(b.ctx(), &lane.MailQuery{
		RunKey: b.key(run.ID), Names: []string{"approved"}, WithoutBodies: true,
	}))(t)
	equal(t, "body that was not asked for", 0, len(without.Signals[0].Body))
	equal(t, "the run: signals are no history", run, b.get(run.ID))
}

// bare tells no body from an empty one.
func bare(signals []lane.Signal) []lane.Signal {
	for i := range signals {
		if len(signals[i].Body) == 0 {
			signals[i].Body = nil
		}
	}
	return signals
}

func signalsOnce(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	b.send(run, "approved", "1", "1")
	_, err := b.storage.SendSignal(b.ctx(), b.sending(run, "approved", "1", "2"))
	wantConflict(t, err, runlane.ConflictSignal, run.ID)
	stale := b.sending(run, "approved", "1", "2")
	stale.Count, stale.Signal.Number = 0, 1
	if _, err := b.storage.SendSignal(b.ctx(), stale); !isConflict(err, runlane.ConflictSignal) &&
		!isConflict(err, runlane.ConflictWait) {
		t.Errorf("a stale repetition: %v", err)
	}
	mail := b.mail(run, "approved")
	equal(t, "count", int64(1), mail.Count)
	equal(t, "body", "1", string(mail.Signals[0].Body))
}

func signalsCounted(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	stale := b.sending(run, "approved", "2", "2")
	b.send(run, "approved", "1", "1")
	_, err := b.storage.SendSignal(b.ctx(), stale)
	wantConflict(t, err, runlane.ConflictWait, run.ID)
	ahead := b.sending(run, "approved", "3", "3")
	ahead.Count, ahead.Signal.Number = 7, 8
	_, err = b.storage.SendSignal(b.ctx(), ahead)
	wantConflict(t, err, runlane.ConflictWait, run.ID)
	equal(t, "count", int64(1), b.mail(run).Count)
}

func signalsResume(t *testing.T, b *bundle) {
	run := b.waitingRun()
	at := noon.Add(time.Minute)
	commit := must(b.storage.SendSignal(b.ctx(), b.resuming(b.sending(run, "approved", "1", "1"), run, at)))(t)
	equal(t, "status", runlane.StatusQueued, commit.Run.Status)
	equal(t, "outbox rows", 1, len(commit.Outbox))
	equal(t, "the run", commit.Run, b.get(run.ID))
	equal(t, "its wait", (*runlane.Waiting)(nil), commit.Run.Waiting)
	mail := b.mail(run, "approved")
	equal(t, "count", int64(1), mail.Count)
	equal(t, "body", "1", string(mail.Signals[0].Body))
	b.wantScan("runnable", b.storage.ListRunnableRuns, b.due(at), commit.Run)
}

func signalsStale(t *testing.T, b *bundle) {
	run := b.waitingRun()
	c := b.resuming(b.sending(run, "approved", "1", "1"), run, noon.Add(time.Minute))
	b.push(run, noon.Add(time.Second), Resumed())
	_, err := b.storage.SendSignal(b.ctx(), c)
	wantConflict(t, err, runlane.ConflictEventSequence, run.ID)
	counted := b.sending(run, "approved", "1", "1")
	equal(t, "count after a stale resumption", int64(0), counted.Count)

	other := b.waitingRun()
	c = b.resuming(b.sending(other, "approved", "2", "2"), other, noon.Add(time.Minute))
	b.send(other, "refused", "1", "1")
	_, err = b.storage.SendSignal(b.ctx(), c)
	wantConflict(t, err, runlane.ConflictWait, other.ID)
	equal(t, "the run after a stale count", other, b.get(other.ID))
}

func signalsWait(t *testing.T, b *bundle) {
	run := b.running(noon, noon.Add(time.Minute), RunOptions{})
	before := b.sending(run, "approved", "1", "1")
	waits := b.push(run, noon, Waits(run, &runlane.Waiting{
		For: []runlane.WaitingFor{runlane.WaitingSignal}, Names: []string{"approved"},
	}))
	_, err := b.storage.SendSignal(b.ctx(), before)
	wantConflict(t, err, runlane.ConflictWait, run.ID) // read while it ran, put while it waits
	b.send(waits, "refused", "1", "1")                 // which it does not wait for
	equal(t, "the run that still waits", waits, b.get(run.ID))
	resumed := b.push(waits, noon, Resumed())
	b.send(resumed, "refused", "2", "2")
	equal(t, "count", int64(2), b.mail(run).Count)
}

func signalsLooked(t *testing.T, b *bundle) {
	run := b.running(noon, noon.Add(time.Minute), RunOptions{})
	release := func(run *runlane.Run, seen int64) error {
		c := b.Append(b.t, run, noon, Waits(run, &runlane.Waiting{
			For: []runlane.WaitingFor{runlane.WaitingSignal}, Names: []string{"approved"},
		}))
		c.LeaseToken, c.Look = run.Lease.Token, &lane.Look{Signals: seen}
		_, err := b.storage.AppendRunEvents(b.ctx(), c)
		return err
	}
	b.send(run, "approved", "1", "1")
	wantConflict(t, release(run, 0), runlane.ConflictWait, run.ID)
	equal(t, "the run that goes on", run, b.get(run.ID))
	if err := release(run, 1); err != nil {
		t.Fatal(err)
	}
	waits := b.get(run.ID)
	b.remember(waits)
	equal(t, "status", runlane.StatusReleased, waits.Status)
	if err := release(run, 1); !isConflict(err, runlane.ConflictEventSequence) {
		t.Errorf("a stale suspension: %v", err)
	}
}

func signalsUndisturbing(t *testing.T, b *bundle) {
	run := b.running(noon, noon.Add(time.Minute), RunOptions{})
	b.send(run, "approved", "1", "1")
	beat := b.Heartbeat(t, run, noon.Add(time.Second), noon.Add(2*time.Minute))
	beaten := must(b.storage.HeartbeatRunLease(b.ctx(), beat))(t).Run
	b.remember(beaten)
	b.send(beaten, "approved", "2", "2")
	ended := b.push(beaten, noon.Add(2*time.Second), Succeeded(beaten, []byte("1")))
	equal(t, "the run", ended, b.get(run.ID))
	equal(t, "count", int64(2), b.mail(run).Count)
}

func signalsEnded(t *testing.T, b *bundle) {
	run := b.running(noon, noon.Add(time.Minute), RunOptions{})
	c := b.sending(run, "approved", "1", "1")
	b.push(run, noon, Succeeded(run, nil))
	_, err := b.storage.SendSignal(b.ctx(), c)
	wantConflict(t, err, runlane.ConflictWait, run.ID)
	_, err = b.storage.SendSignal(b.ctx(), b.sending(run, "approved", "2", "2"))
	wantConflict(t, err, runlane.ConflictWait, run.ID)
	equal(t, "count", int64(0), b.mail(run).Count)
	_, err = b.storage.ReadMail(b.ctx(), &lane.MailQuery{RunKey: b.key("run_missing")})
	wantError(t, err, runlane.ErrRunNotFound)
	c.RunID = "run_missing"
	_, err = b.storage.SendSignal(b.ctx(), c)
	wantConflict(t, err, runlane.ConflictWait, "run_missing")
}

func signalsLarge(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	large := `"` + strings.Repeat("large and regular ", 1<<14) + `"`
	b.send(run, "approved", "1", large)
	equal(t, "a large body", true, large == string(b.mail(run, "approved").Signals[0].Body))
}

func signalsCopied(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	c := b.sending(run, "approved", "1", "body")
	must(b.storage.SendSignal(b.ctx(), c))(t)
	copy(c.Signal.Body, "XXXX")
	got := b.mail(run, "approved").Signals[0].Body
	equal(t, "after the caller changed it", "body", string(got))
	copy(got, "YYYY")
	equal(t, "after the reader changed it", "body", string(b.mail(run, "approved").Signals[0].Body))
}

func signalsElsewhere(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	b.send(run, "approved", "1", "1")
	other := b.create(noon, RunOptions{})
	equal(t, "mail of another run", int64(0), b.mail(other, "approved").Count)
	key := b.key(run.ID)
	key.Environment += "-elsewhere"
	_, err := b.storage.ReadMail(b.ctx(), &lane.MailQuery{RunKey: key})
	wantError(t, err, runlane.ErrRunNotFound)
	c := b.sending(run, "approved", "2", "2")
	c.RunKey = key
	_, err = b.storage.SendSignal(b.ctx(), c)
	wantConflict(t, err, runlane.ConflictWait, run.ID)
}

func signalsRace(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	const senders = 6
	var all sync.WaitGroup
	faults := make(chan error, senders)
	for i := range senders {
		all.Go(func() {
			for {
				mail, err := b.storage.ReadMail(b.ctx(), &lane.MailQuery{RunKey: b.key(run.ID)})
				if err != nil {
					faults <- err
					return
				}
				_, err = b.storage.SendSignal(b.ctx(), &lane.SignalCommand{
					RunKey:    b.key(run.ID),
					CreatedAt: run.CreatedAt,
					Count:     mail.Count,
					Signal: lane.Signal{
						Name:   "approved",
						ID:     fmt.Sprint(i / 2), // two senders of each
						Number: mail.Count + 1,
						SentAt: noon,
					},
				})
				switch {
				case err == nil, isConflict(err, runlane.ConflictSignal):
					return
				case !isConflict(err, runlane.ConflictWait) && !errors.Is(err, runlane.ErrStorageUnavailable):
					faults <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(faults)
	for err := range faults {
		t.Error(err)
	}
	equal(t, "count", int64(senders/2), b.mail(run).Count)
}

func signalsMalformed(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	for name, change := range map[string]func(*lane.SignalCommand){
		"no name":        func(c *lane.SignalCommand) { c.Signal.Name = "" },
		"a colon":        func(c *lane.SignalCommand) { c.Signal.Name = "a:b" },
		"no id":          func(c *lane.SignalCommand) { c.Signal.ID = "" },
		"a long id":      func(c *lane.SignalCommand) { c.Signal.ID = strings.Repeat("i", runlane.MaxSignalIDBytes+1) },
		"no time":        func(c *lane.SignalCommand) { c.Signal.SentAt = time.Time{} },
		"another number": func(c *lane.SignalCommand) { c.Signal.Number = 7 },
		"no creation":    func(c *lane.SignalCommand) { c.CreatedAt = time.Time{} },
		"no run":         func(c *lane.SignalCommand) { c.RunID = "" },
		"another's resumption": func(c *lane.SignalCommand) {
			other := b.waitingRun()
			b.resuming(c, other, noon)
		},
	} {
		c := b.sending(run, "approved", "1", "1")
		change(c)
		_, err := b.storage.SendSignal(b.ctx(), c)
		if !errors.Is(err, runlane.ErrContractViolation) {
			t.Errorf("%s: %v", name, err)
		}
	}
	equal(t, "count", int64(0), b.mail(run).Count)
}

func signalsPruned(t *testing.T, b *bundle) {
	run := b.running(noon, noon.Add(time.Minute), RunOptions{})
	b.send(run, "approved", "1", "1")
	b.send(run, "approved", "2", strings.Repeat("2", 3<<10))
	b.push(run, noon.Add(time.Second), Succeeded(run, nil))
	b.forget(run.ID)
	b.eventually(func() string {
		b.pruneThrough(b.pruning(noon.Add(time.Hour)))
		_, err := b.storage.ReadMail(b.ctx(), &lane.MailQuery{RunKey: b.key(run.ID)})
		if errors.Is(err, runlane.ErrRunNotFound) {
			return ""
		}
		return fmt.Sprintf("the run is still there: %v", err)
	})
}

func signalsReused(t *testing.T, b *bundle) {
	run := b.running(noon, noon.Add(time.Minute), RunOptions{})
	b.send(run, "approved", "1", "1")
	late := b.sending(run, "approved", "2", "2")
	b.push(run, noon.Add(time.Second), Succeeded(run, nil))
	b.forget(run.ID)
	b.eventually(func() string {
		b.pruneThrough(b.pruning(noon.Add(time.Hour)))
		_, err := b.storage.GetRun(b.ctx(), b.key(run.ID))
		return difference(true, errors.Is(err, runlane.ErrRunNotFound))
	})
	again := b.create(noon.Add(time.Hour), RunOptions{ID: run.ID})
	mail := b.mail(again, "approved")
	equal(t, "count", int64(0), mail.Count)
	equal(t, "signals", 0, len(mail.Signals))
	_, err := b.storage.SendSignal(b.ctx(), late)
	wantConflict(t, err, runlane.ConflictWait, run.ID)
	late.Count, late.Signal.Number = 0, 1
	_, err = b.storage.SendSignal(b.ctx(), late)
	wantConflict(t, err, runlane.ConflictWait, run.ID)
	b.send(again, "approved", "1", "again")
	equal(t, "its first", true, bytes.Equal([]byte("again"), b.mail(again, "approved").Signals[0].Body))
}
