package crash

import (
	"context"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// Settle judges what is left when two ticks have passed: promised runs are there, each run has ended or waits for a time,
// nothing was executed more often than attempts began, and the storage's rules hold.
func (p *Process) Settle(s *Scenario) *End {
	p.TB.Helper()
	e := &End{Process: p, Runs: map[runlane.RunID]*runlane.Run{}, Entries: map[Effect]int{}}
	ids, err := p.Lane.Runs(p)
	p.Must(err)
	for _, id := range ids {
		e.Runs[id] = p.get(id)
	}
	for _, one := range p.Effects() {
		e.Entries[one]++
	}
	for _, id := range p.Promised {
		if e.Runs[id] == nil && !p.Gone[id] {
			e.Lost++
			p.Fault("run %s was promised, and is not there", id)
		}
	}
	for id, run := range e.Runs {
		e.judge(id, run)
	}
	for one, times := range e.Entries {
		if times > 1 {
			p.Fault("attempt %d of %s had its side effect %d times", one.Attempt, one.Run, times)
		}
		if run := e.Runs[one.Run]; run == nil && !p.Gone[one.Run] {
			p.Fault("an attempt of %s executed, and the run is not there", one.Run)
		} else if run != nil && one.Attempt > run.Counters.Attempts {
			p.Fault("attempt %d of %s executed, of %d", one.Attempt, one.Run, run.Counters.Attempts)
		}
	}
	found, err := Violations(context.Background(), p.storage(), p.Runtime.Environment())
	p.Must(err)
	for _, v := range found {
		p.Fault("%s: %s: %s", v.RunID, v.Rule, v.Detail)
	}
	p.Lane.Faults(e)
	if s.Judge != nil {
		s.Judge(e)
	}
	return e
}

func (e *End) judge(id runlane.RunID, run *runlane.Run) {
	if run.Status.Active() {
		explained, err := e.Runtime.Runs().Explain(context.Background(), id)
		e.Must(err)
		if explained.Wait != core.WaitTime || !explained.Until.After(e.Now()) {
			// whatever it waits for, two ticks and all wakeups should have dealt with it
			e.Lost++
			e.Fault("%s is %s and waits for %s until %s: %s", id, run.Status, explained.Wait,
				explained.Until.Format(time.RFC3339), explained.Next)
		}
	} else if run.Status == runlane.StatusSucceeded && e.Entries[Effect{id, run.Counters.Attempts}] != 1 {
		e.Fault("%s succeeded by attempt %d, which had no side effect", id, run.Counters.Attempts)
	}
}

// Faults are what must not be.
func (e *End) Faults() []string { return e.faults }

// executed counts the side effects of each run, and of all.
func (e *End) executed() (each map[runlane.RunID]int, all int) {
	each = map[runlane.RunID]int{}
	for one, times := range e.Entries {
		each[one.Run] += times
		all += times
	}
	return each, all
}

// compare finds side effects that no death explains: one process died, in the middle of so many attempts at most, of one
// run each. It returns how many more there were.
func (e *End) compare(lived *End, atOnce int) int {
	each, all := e.executed()
	without, n := lived.executed()
	for run, times := range each {
		if once, both := without[run]; both && times > once+1 {
			e.Fault("%s executed %d times, and %d times without a death", run, times, once)
		}
	}
	if all-n > atOnce {
		e.Fault("there were %d side effects more than without a death", all-n)
	}
	return max(all-n, 0)
}

// Violations are the invariants of a storage that something stored in the environment breaks.
func Violations(
	ctx context.Context, s lane.Storage, environment runlane.Environment,
) (found []lane.Violation, err error) {
	q := &lane.PageQuery{Environment: environment, Limit: runlane.MaxPageLimit}
	for {
		page, err := s.Check(ctx, q)
		if err != nil {
			return nil, err
		}
		found = append(found, page.Items...)
		if q.After = page.Next; q.After == "" {
			return found, nil
		}
	}
}
