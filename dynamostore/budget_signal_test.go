package dynamostore

import (
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// awaits suspends the run until a signal comes.
func (w *world) awaits() *world {
	return w.end(&runlane.RunReleased{
		Attempt:  w.run.Counters.Attempts,
		ResumeAt: runlane.FarMoment(),
		Wait:     &runlane.Waiting{For: []runlane.WaitingFor{runlane.WaitingSignal}, Names: []string{"approved"}},
	})
}

// send sends a signal as an operator's process does: it reads the mail, then writes. One that is waited for resumes.
func (w *world) send(id string) *world {
	w.Helper()
	c := w.sending(w.mail(), id)
	if w.run.Waiting != nil {
		body := &runlane.RunResumed{By: runlane.WaitingSignal, Name: c.Signal.Name, ID: id}
		c.Resume = &lane.AppendCommand{Transition: w.transition(body, w.request(w.now)), Outbox: eager(w.now)}
	}
	commit, err := w.store.SendSignal(w.step(), c)
	if err != nil {
		w.Fatal(err)
	}
	if commit != nil {
		w.run = commit.Run
	}
	return w
}

// addSignalCases adds what signals, waits and sleeps use. The hundredth signal to a run costs what the first one does.
func addSignalCases(cases map[string]budgetCase) {
	running := func(w *world) *world { return w.create(eager, 0, nil).ack().claim(budgetLease, true) }
	send := func(w *world) *world { return w.send("last") }
	cases["a signal that resumes no run"] = budgetCase{running, send, nil}
	cases["the hundredth signal to a run"] = budgetCase{func(w *world) *world {
		running(w)
		for n := range 99 {
			w.send(fmt.Sprint(n))
		}
		return w
	}, send, nil}
	cases["a signal that is sent again"] = budgetCase{func(w *world) *world { return running(w).send("last") }, func(w *world) *world {
		mail, err := w.store.ReadMail(w.step(), &lane.MailQuery{RunKey: w.key(), Names: []string{"approved"}, ID: "last"})
		if err != nil || len(mail.Signals) != 1 {
			w.Fatal(mail, err)
		}
		return w
	}, nil}
	cases["suspended until a signal comes"] = budgetCase{running, (*world).awaits, nil}
	cases["a signal that resumes its run"] = budgetCase{func(w *world) *world { return running(w).awaits() }, send, nil}
	cases["a waiting run resumed by an operator"] = budgetCase{func(w *world) *world { return running(w).retry(time.Hour) }, func(w *world) *world {
		return w.other(&runlane.RunResumed{}, w.request(w.now))
	}, nil}
	cases["suspended for a sleep of a day"] = budgetCase{running, func(w *world) *world {
		until := w.now.Add(24 * time.Hour)
		return w.end(&runlane.RunReleased{
			Attempt:  w.run.Counters.Attempts,
			ResumeAt: until,
			Wait:     &runlane.Waiting{For: []runlane.WaitingFor{runlane.WaitingTime}, Until: until},
		})
	}, nil}
}
