package dynamostore

import (
	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// call puts a call of n runs beside the run.
func (w *world) call(n int) *world {
	w.Helper()
	if _, err := w.store.BeginCall(w.step(), w.calling("pages", n)); err != nil {
		w.Fatal(err)
	}
	return w
}

// calling is a call of n runs by the run's owner.
func (w *world) calling(name string, n int) *lane.CallCommand {
	return &lane.CallCommand{
		RunKey:     w.key(),
		CreatedAt:  w.run.CreatedAt,
		LeaseToken: w.run.Lease.Token,
		Call:       lane.RunCall{Name: name, TaskID: "bench.noop", Count: n, At: w.now},
	}
}

// child is another world of the same table, with a run that this one's has called.
func (w *world) child() *world {
	w.Helper()
	child := *w
	return child.create(eager, 0, &runlane.RunCreated{Payload: []byte(`{}`), Source: runlane.Source{
		Type: runlane.SourceCall, RunID: w.run.ID, Call: "pages", CreatedAt: w.run.CreatedAt,
	}})
}

// ended is a child that has succeeded.
func (w *world) ended() *world { return w.child().ack().claim(budgetLease, true).succeed() }

// waits suspends the run until its call is whole.
func (w *world) waits() *world {
	return w.end(&runlane.RunReleased{Attempt: w.run.Counters.Attempts, ResumeAt: runlane.FarMoment(), Wait: &runlane.Waiting{
		For: []runlane.WaitingFor{runlane.WaitingChildren}, Names: []string{"pages"},
	}})
}

// tell tells the child's end to the run, which resumes it with the last one.
func (w *world) tell(child *world, ended, count int) *world {
	w.Helper()
	c := &lane.NotifyCommand{RunKey: child.key(), CreatedAt: child.run.CreatedAt, To: &lane.CallRead{
		RunID: w.run.ID, CreatedAt: w.run.CreatedAt, Name: "pages", Count: count, Ended: ended,
	}}
	if c.To.Last() {
		body := &runlane.RunResumed{By: runlane.WaitingChildren, Name: "pages", ID: string(child.run.ID)}
		c.Resume = &lane.AppendCommand{Transition: w.transition(body, w.request(w.now)), Outbox: eager(w.now)}
	}
	commit, err := w.store.NotifyEnd(w.step(), c)
	if err != nil {
		w.Fatal(err)
	}
	if commit != nil {
		w.run = commit.Run
	}
	child.run = child.run.Clone()
	return w
}

func addCallCases(cases map[string]budgetCase) {
	running := func(w *world) *world { return w.create(eager, 0, nil).ack().claim(budgetLease, true) }
	cases["a call begun"] = budgetCase{running, func(w *world) *world { return w.call(2) }, nil}
	cases["another call begun"] = budgetCase{
		func(w *world) *world { return running(w).call(2) },
		func(w *world) *world {
			if _, err := w.store.BeginCall(w.step(), w.calling("covers", 1)); err != nil {
				w.Fatal(err)
			}
			return w
		}, nil,
	}
	cases["success of a called run"] = budgetCase{
		func(w *world) *world {
			w.called = running(w).call(2).child().ack().claim(budgetLease, true)
			return w
		},
		func(w *world) *world { w.called.succeed(); return w }, nil,
	}
	cases["an end told"] = budgetCase{
		func(w *world) *world { w.called = running(w).call(2).ended(); return w.waits() },
		func(w *world) *world { return w.tell(w.called, 0, 2) }, nil,
	}
	cases["the last end told, which resumes"] = budgetCase{
		func(w *world) *world { w.called = running(w).call(1).ended(); return w.waits() },
		func(w *world) *world { return w.tell(w.called, 0, 1) }, nil,
	}
}
