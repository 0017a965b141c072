package sqlitelane_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/patience"
	"github.com/runlane/runlane-go/internal/proof/waiting"
	"github.com/runlane/runlane-go/lane"
)

// What an attempt does, beside what package waiting has. But for what fails for good, the second attempt of a run
// succeeds.
const (
	fail   = "fail"
	refuse = waiting.Refuse
	follow = "follow" // triggers another run
	report = "report" // a progress note, and an output that stands apart
	cancel = "cancel" // asks for its own cancellation, and gives in
)

// act is the payload.
type act = waiting.Act

var (
	narrow      = waiting.Narrow
	play, lined = waiting.Play, waiting.Lined

	// queued executes in the order of its runs: they have one key, in an ordered queue.
	queued = runlane.NewTask("queued", &runlane.TaskOptions[act]{
		Queue:          runlane.Queue{Name: "turns"},
		ConcurrencyKey: func(act) string { return "ada" },
		Retry:          runlane.Retry{MaxAttempts: 3, Backoff: runlane.Fixed(20 * time.Second), NoJitter: true},
	})
)

func (s *site) handlers() []runlane.Handler {
	return []runlane.Handler{play.Handle(s.execute), lined.Handle(s.execute), queued.Handle(s.execute)}
}

// execute has one side effect: a line in the ledger.
func (s *site) execute(ctx context.Context, a *runlane.Attempt, what act) error {
	if s.trap != nil {
		s.trap.mark("the handler begins")
		defer s.trap.mark("the handler returns")
	}
	enter := func() error { return s.enter(effect{a.Run.ID, a.Number}) }
	if done, err := waiting.Execute(ctx, a, what, enter); done {
		return err
	}
	if err := enter(); err != nil {
		return err
	}
	switch {
	case what.Do == follow:
		_, err := a.Trigger(ctx, play.With(act{}), &runlane.TriggerOptions{IdempotencyKey: string(a.Run.ID)})
		return err
	case what.Do == cancel:
		if _, err := s.rt.Runs().Cancel(ctx, a.Run.ID, nil); err != nil {
			return err
		}
		return runlane.Release(time.Second, "asked to stop")
	case a.Number > 1:
		return nil
	case what.Do == fail:
		return errors.New("as asked")
	case what.Do == report:
		if err := a.Progress(ctx, "half"); err != nil {
			return err
		}
		return a.SetOutput(json.RawMessage(noise(3000)))
	}
	return nil
}

// enter adds a line to the ledger.
func (s *site) enter(e effect) error {
	s.note(e)
	file, err := os.OpenFile(s.Ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "%s %d\n", e.run, e.attempt)
	return errors.Join(err, file.Close())
}

func (s *site) advance(d time.Duration) { s.ahead.Add(int64(d)) }

func (s *site) tick() {
	s.t.Helper()
	_, err := s.rt.Tick(context.Background(), nil)
	s.must(err)
}

func (s *site) trigger(call runlane.Call, options *runlane.TriggerOptions) runlane.RunID {
	s.t.Helper()
	result, err := s.rt.Trigger(context.Background(), call, options)
	s.must(err)
	s.promise(result.Run.ID)
	return result.Run.ID
}

func (s *site) get(id runlane.RunID) *runlane.Run {
	s.t.Helper()
	run, err := s.rt.Runs().Get(context.Background(), id)
	s.must(err)
	return run
}

// deliver is a worker that takes wakeups until none can be taken.
func (s *site) deliver() {
	s.t.Helper()
	s.must(s.workUntil(context.Background(), s.idle))
}

// idle reports that no wakeup can be taken, and none is being handled.
func (s *site) idle(ctx context.Context) (bool, error) {
	for _, name := range []runlane.QueueName{runlane.DefaultQueue.Name, narrow.Name, "turns"} {
		visible, inFlight, err := s.sends.Depth(ctx, name)
		if err != nil || visible+inFlight > 0 {
			return false, err
		}
	}
	return true, nil
}

// workers are the attempts of a process at a time.
const workers = 2

// workUntil is a worker until a condition holds.
func (s *site) workUntil(ctx context.Context, over func(context.Context) (bool, error)) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.rt.Work(working, &core.WorkOptions{NoTick: true, Concurrency: workers}) }()
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.After(patience.Limit); ; {
		select {
		case err := <-ended:
			return errors.Join(err, errors.New("the worker stopped by itself"))
		case <-deadline:
			return errors.New("the worker is not done")
		case <-ticker.C:
		}
		if done, err := over(ctx); err != nil {
			return err
		} else if done {
			stop()
			return <-ended
		}
	}
}

// fresh triggers a run that needs what may have been left behind, and wants it through at once, without a tick.
func (s *site) fresh(call runlane.Call, options *runlane.TriggerOptions) {
	s.t.Helper()
	id := s.trigger(call, options)
	s.deliver()
	if run := s.get(id); run.Status != runlane.StatusSucceeded {
		s.fault("a run that came afterwards is %s", run.Status)
	}
}

// slotIsFree proves that the bounded queue's only slot can be taken.
func slotIsFree(s *site) { s.fresh(lined.With(act{}), nil) }

// abandon lets another child take a run, and die when its handler begins.
func (s *site) abandon() {
	s.t.Helper()
	inner := *s.scenarioChild("delivery")
	if _, died := inner.child(&point{Name: "the handler begins", Number: 1}); !died {
		s.t.Fatal("the child lives")
	}
	s.advance(130 * time.Second)
}

// scenarioChild is this site, as children of another scenario see it.
func (s *site) scenarioChild(name string) *site {
	other := &site{t: s.t, job: s.job}
	other.Scenario = name
	other.ahead.Store(s.ahead.Load())
	return other
}

// giveUp makes a deferred run one whose wakeup was given up.
func (s *site) giveUp(id runlane.RunID) {
	s.t.Helper()
	ctx, environment := context.Background(), runlane.DefaultEnvironment
	seen, err := s.storage.InspectRun(ctx, &lane.InspectQuery{RunKey: lane.RunKey{Environment: environment, RunID: id}})
	s.must(err)
	at := runlane.UTCMillis(s.now())
	rows, err := s.storage.ClaimOutboxMessages(ctx, &lane.ClaimOutboxCommand{
		Environment: environment, IDs: []string{seen.Delivery.ID}, At: at, ClaimUntil: at.Add(time.Second), Limit: 1,
	})
	s.must(err)
	s.must(s.storage.MarkOutboxMessagesDeadLettered(ctx, &lane.MarkDeadLetteredCommand{
		Environment: environment, At: at,
		Messages: []lane.OutboxFailure{{
			OutboxRef: rows[0].OutboxRef, Attempts: 10, Failure: runlane.NewFailure(runlane.ErrTransportPublishFailed, "refused", nil),
		}},
	}))
}

// effect is an attempt that had its side effect.
type effect struct {
	run     runlane.RunID
	attempt int
}

// effects are the side effects, in their order.
func (s *site) effects() (all []effect) {
	s.t.Helper()
	text, err := os.ReadFile(s.Ledger)
	if err != nil && !os.IsNotExist(err) {
		s.must(err)
	}
	for l := range strings.Lines(string(text)) {
		var e effect
		_, err := fmt.Sscanf(l, "%s %d", &e.run, &e.attempt)
		s.must(err)
		all = append(all, e)
	}
	return all
}

func (s *site) ledger() map[effect]int {
	s.t.Helper()
	entries := map[effect]int{}
	for _, e := range s.effects() {
		entries[e]++
	}
	return entries
}

// all are the runs of the file.
func (s *site) all() map[runlane.RunID]*runlane.Run {
	s.t.Helper()
	page, err := s.rt.Runs().List(context.Background(), nil)
	s.must(err)
	runs := map[runlane.RunID]*runlane.Run{}
	for _, r := range page.Items {
		runs[r.ID] = s.get(r.ID)
	}
	return runs
}

// settle judges a file after two ticks: promised runs are there, each run has ended or waits for a time, no attempt had
// its side effect twice, and the storage's rules hold.
func (s *site) settle(c *crashScenario, result *trial) {
	s.t.Helper()
	runs, entries := s.all(), s.ledger()
	for _, id := range s.runs {
		if runs[id] == nil && !s.gone[id] {
			result.lost++
			s.fault("run %s was promised, and is not there", id)
		}
	}
	for id, run := range runs {
		switch {
		case run.Status.Active():
			explained, err := s.rt.Runs().Explain(context.Background(), id)
			s.must(err)
			if explained.Wait != core.WaitTime || !explained.Until.After(s.now()) {
				result.lost++
				s.fault("%s is %s and waits for %s: %s", id, run.Status, explained.Wait, explained.Next)
			}
		case run.Status == runlane.StatusSucceeded && entries[effect{id, run.Counters.Attempts}] != 1:
			s.fault("%s succeeded by attempt %d, which had no side effect", id, run.Counters.Attempts)
		}
	}
	for e, times := range entries {
		result.executed += times
		run := runs[e.run]
		if times > 1 || run == nil && !s.gone[e.run] || run != nil && e.attempt > run.Counters.Attempts {
			s.fault("attempt %d of %s executed %d times: %+v", e.attempt, e.run, times, run)
		}
	}
	found, err := violations(context.Background(), s.storage, runlane.DefaultEnvironment)
	s.must(err)
	for _, v := range found {
		s.fault("%s: %s: %s", v.RunID, v.Rule, v.Detail)
	}
	if fault, err := s.storage.Sound(); err != nil || fault != "" {
		s.fault("the file: %s %v", fault, err)
	}
	c.judge(s, runs)
	result.faults = s.faults
}
