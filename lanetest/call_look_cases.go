package lanetest

import (
	"fmt"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

func callsLooked(t *testing.T, b *bundle) {
	run, children := b.caller(2)
	suspending := func(look *lane.Look) *lane.AppendCommand {
		c := b.Append(t, run, noon, Waits(run, &runlane.Waiting{
			For: []runlane.WaitingFor{runlane.WaitingChildren}, Names: []string{"pages"},
		}))
		c.LeaseToken, c.Look = run.Lease.Token, look
		return c
	}
	look := &lane.Look{Signals: -1, Calls: []string{"pages"}}
	for _, child := range children {
		b.notify(b.notifying(b.end(child, noon, runlane.StatusSucceeded), run))
	}
	_, err := b.storage.AppendRunEvents(b.ctx(), suspending(look))
	wantConflict(t, err, runlane.ConflictWait, run.ID)
	equal(t, "the run", run, b.get(run.ID))
	must(b.storage.BeginCall(b.ctx(), b.calling(run, "covers", 2)))(t)
	both := suspending(&lane.Look{Signals: 0, Calls: []string{"covers", "pages"}})
	_, err = b.storage.AppendRunEvents(b.ctx(), both)
	wantConflict(t, err, runlane.ConflictWait, run.ID)
	b.append(suspending(&lane.Look{Signals: 0, Calls: []string{"covers"}}))
}

func callsMany(t *testing.T, b *bundle) {
	run, children := b.caller(1)
	names := []string{"pages", "pages"}
	for i := 1; i <= lane.MaxLookCalls; i++ {
		name := fmt.Sprintf("pages/%d", i)
		must(b.storage.BeginCall(b.ctx(), b.calling(run, name, 1)))(t)
		names = append(names, name, name)
	}
	suspending := func(names []string) *lane.AppendCommand {
		c := b.Append(t, run, noon, Waits(run, &runlane.Waiting{For: []runlane.WaitingFor{runlane.WaitingAnything}}))
		c.LeaseToken, c.Look = run.Lease.Token, &lane.Look{Signals: -1, Calls: names}
		return c
	}
	ended := b.end(children[0], noon, runlane.StatusSucceeded)
	b.notify(b.notifying(ended, run))
	_, err := b.storage.AppendRunEvents(b.ctx(), suspending(names[:2*lane.MaxLookCalls]))
	wantConflict(t, err, runlane.ConflictWait, run.ID)
	b.append(suspending(names[2:]))
}
