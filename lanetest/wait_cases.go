package lanetest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Waits: a wait is that of the run's last event.
func waitCases() []storageCase {
	return []storageCase{
		{"AWaitIsKeptUntilTheNextEvent", needsLeases, waitKept},
		{"ARunMayBeMadeWithAWait", needsLeases, waitOfCreation},
		{"ListsFindRunsByWhatTheyWaitFor", needsBoth(needsLeases, needsHistory), waitListed},
		{"PatienceIsForWaitsThatOnlyTimeEnds", needsLeases, waitPatience},
	}
}

// Waits ends the current attempt; the run waits for something.
func Waits(run *runlane.Run, w *runlane.Waiting) *runlane.RunReleased {
	return &runlane.RunReleased{Attempt: run.Counters.Attempts, ResumeAt: w.Due(), Reason: "not yet", Wait: w}
}

// everyWait has each field of a wait, the largest that is kept, and text that is not ASCII.
func everyWait() []*runlane.Waiting {
	return []*runlane.Waiting{
		{For: []runlane.WaitingFor{runlane.WaitingBlocked}, Prompt: "raise the quota"},
		{For: []runlane.WaitingFor{runlane.WaitingTime}, Until: noon.Add(time.Hour)},
		{For: []runlane.WaitingFor{runlane.WaitingSignal}, Names: []string{"approval/2"}},
		{For: []runlane.WaitingFor{runlane.WaitingChildren, runlane.WaitingEnds}, Need: 50},
		{For: []runlane.WaitingFor{runlane.WaitingAnything}},
		{
			For: []runlane.WaitingFor{runlane.WaitingSignal}, Names: []string{"approved"},
			Schemas: map[string]json.RawMessage{"approved": json.RawMessage(`{"type":"string","title":"\u003cλ\u003e"}`)},
		},
		{
			For: []runlane.WaitingFor{runlane.WaitingSignal, runlane.WaitingInput, runlane.WaitingTime},
			Names: []string{
				"a0000000000000000000000000000000000000000000000000000000000000",
				"b\"0000000000000000000000000000000000000000000000000000000000",
				"c Ωλ",
			},
			All:    true,
			Until:  noon.Add(72 * time.Hour),
			Prompt: "Approve <this> & \"that\"?",
		},
	}
}

func waitKept(t *testing.T, b *bundle) {
	for _, w := range everyWait() {
		run := b.running(noon, noon.Add(time.Minute), RunOptions{})
		run = b.push(run, noon.Add(time.Second), Waits(run, w.Clone()))
		equal(t, "the run that was written", w, run.Waiting)
		equal(t, "the run that is read", run, b.get(run.ID))
		history := b.history(b.key(run.ID))
		equal(t, "its event", w, history[len(history)-1].Body.(*runlane.RunReleased).Wait)
		at := noon.Add(2 * time.Second)
		resumed := b.push(run, at, &runlane.RunResumed{By: runlane.WaitingSignal, Name: "approval/2", ID: "id 1"})
		equal(t, "after the next event", (*runlane.Waiting)(nil), b.get(run.ID).Waiting)
		again := b.push(b.claim(resumed, at, at.Add(time.Minute)), at, Waits(b.get(run.ID), w))
		equal(t, "a second wait", again, b.get(run.ID))
	}
}

func waitOfCreation(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{NoDelivery: true})
	w := &runlane.Waiting{For: []runlane.WaitingFor{runlane.WaitingEnds}, Need: 2}
	run = b.push(run, noon, &runlane.RunDeliveryRequested{
		Delivery: runlane.Delivery{
			Environment: b.env,
			RunID:       run.ID,
			Queue:       run.Queue,
			AvailableAt: runlane.FarMoment(),
			RequestedAt: noon,
		},
		Wait: w,
	})
	equal(t, "its wait", w, b.get(run.ID).Waiting)
	equal(t, "its status", runlane.StatusScheduled, run.Status)
	request := b.history(b.key(run.ID))[1].Body.(*runlane.RunDeliveryRequested)
	equal(t, "its event", w, request.Wait)
	b.wantScan("long after", b.storage.ListRunnableRuns, b.due(noon.Add(10*365*24*time.Hour)))
}

func waitListed(t *testing.T, b *bundle) {
	var runs []*runlane.Run
	for i, w := range everyWait() {
		at := noon.Add(time.Duration(i) * time.Second)
		run := b.running(at, at.Add(time.Minute), RunOptions{})
		runs = append(runs, b.push(run, at, Waits(run, w)))
	}
	b.running(noon, noon.Add(time.Minute), RunOptions{})
	over := b.running(noon, noon.Add(time.Minute), RunOptions{})
	b.push(over, noon, Succeeded(over, nil))
	for _, kind := range runlane.WaitingKinds() {
		b.eventually(func() string {
			var want []runlane.RunID
			for _, run := range runs {
				if run.Waiting.Has(kind) {
					want = append(want, run.ID)
				}
			}
			var got []runlane.RunID
			q := lane.RunQuery{PageQuery: lane.PageQuery{Environment: b.env}, Waiting: kind}
			for _, summary := range collect(t, &q.PageQuery, func() (*runlane.Page[runlane.RunSummary], error) {
				return b.storage.ListRuns(b.ctx(), &q)
			}) {
				got = append(got, summary.ID)
				if !summary.Waiting.Has(kind) {
					t.Errorf("the list of %s shows a wait for %+v", kind, summary.Waiting)
				}
			}
			return difference(sorted(want), sorted(got))
		})
	}
}

// No wakeup is sent when such a wait begins, so a scan is not patient with it when it is over.
func waitPatience(_ *testing.T, b *bundle) {
	end := noon.Add(10 * time.Minute)
	run := b.running(noon, end, RunOptions{})
	run = b.push(run, noon, Waits(run, &runlane.Waiting{
		For:   []runlane.WaitingFor{runlane.WaitingSignal, runlane.WaitingTime},
		Names: []string{"approval"},
		Until: end,
	}))
	q := b.due(end)
	q.Patience.ShortWait = time.Hour
	b.wantScan("its time is over", b.storage.ListRunnableRuns, q, run)
}
