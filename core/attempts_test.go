package core

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
)

func TestAttempts_FoldOfEvents(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }
	lease := func(worker string, until int) runlane.Lease {
		return runlane.Lease{Token: "t", WorkerID: worker, ExpiresAt: at(until)}
	}
	failure := runlane.NewFailure(runlane.ErrTaskFailed, "broken", nil)
	lost := runlane.NewFailure(runlane.ErrLeaseExpired, "gone", nil)
	created, asked := &runlane.RunCreated{}, &runlane.RunDeliveryRequested{}
	claim := &runlane.RunLeaseClaimed{Lease: lease("w", 60)}
	begun := &runlane.RunStarted{Attempt: 1}
	running := AttemptSummary{Number: 1, Status: runlane.AttemptRunning, WorkerID: "w", StartedAt: at(3)}
	ended := func(status runlane.AttemptStatus, second int, failure runlane.Failure) AttemptSummary {
		a := running
		a.Status, a.FinishedAt, a.Failure = status, at(second), failure
		return a
	}
	none := runlane.Failure{}
	for name, c := range map[string]struct {
		bodies []runlane.EventBody // one a second, from noon
		actor  runlane.ActorType   // of the last
		now    int
		want   []AttemptSummary
	}{
		"created":                   {[]runlane.EventBody{created, asked}, "", 9, nil},
		"cancelled while it waited": {[]runlane.EventBody{created, asked, &runlane.RunCancelled{}}, "", 9, nil},
		"claimed, not started":      {[]runlane.EventBody{created, asked, claim}, "", 99, nil},
		"running":                   {[]runlane.EventBody{created, asked, claim, begun}, "", 59, []AttemptSummary{running}},
		"asked to stop":             {[]runlane.EventBody{created, asked, claim, begun, &runlane.RunCancellationRequested{}}, "", 9, []AttemptSummary{running}},
		"lease over, not noticed":   {[]runlane.EventBody{created, asked, claim, begun}, "", 60, []AttemptSummary{ended(runlane.AttemptAbandoned, 60, none)}},
		"lease extended": {
			[]runlane.EventBody{created, asked, claim, begun, &runlane.RunLeaseHeartbeat{Lease: lease("w", 90)}}, "", 60, []AttemptSummary{running},
		},
		"recovered":   {[]runlane.EventBody{created, asked, claim, begun, asked}, "", 99, []AttemptSummary{ended(runlane.AttemptAbandoned, 4, none)}},
		"taken over":  {[]runlane.EventBody{created, asked, claim, begun, claim}, "", 9, []AttemptSummary{ended(runlane.AttemptAbandoned, 4, none)}},
		"succeeded":   {[]runlane.EventBody{created, asked, claim, begun, &runlane.RunSucceeded{Attempt: 1}}, "", 99, []AttemptSummary{ended(runlane.AttemptSucceeded, 4, none)}},
		"released":    {[]runlane.EventBody{created, asked, claim, begun, &runlane.RunReleased{Attempt: 1}}, "", 99, []AttemptSummary{ended(runlane.AttemptReleased, 4, none)}},
		"was stopped": {[]runlane.EventBody{created, asked, claim, begun, &runlane.RunCancelled{}}, "", 99, []AttemptSummary{ended(runlane.AttemptCancelled, 4, none)}},
		"retrying": {
			[]runlane.EventBody{created, asked, claim, begun, &runlane.RunRetryScheduled{Attempt: 1, Failure: failure}}, "", 99,
			[]AttemptSummary{ended(runlane.AttemptRetrying, 4, failure)},
		},
		"failed": {
			[]runlane.EventBody{created, asked, claim, begun, &runlane.RunFailed{Attempt: 1, Failure: failure}}, runlane.ActorWorker, 99,
			[]AttemptSummary{ended(runlane.AttemptFailed, 4, failure)},
		},
		"failed by the bound": {
			[]runlane.EventBody{created, asked, claim, begun, &runlane.RunFailed{Attempt: 1, Failure: lost}}, runlane.ActorSystem, 99,
			[]AttemptSummary{ended(runlane.AttemptAbandoned, 4, lost)},
		},
		"failed with its own lease error": {
			[]runlane.EventBody{created, asked, claim, begun, &runlane.RunFailed{Attempt: 1, Failure: lost}}, runlane.ActorWorker, 99,
			[]AttemptSummary{ended(runlane.AttemptFailed, 4, lost)},
		},
		"released, then cancelled while it waited": {
			[]runlane.EventBody{created, asked, claim, begun, &runlane.RunReleased{Attempt: 1}, &runlane.RunCancelled{}}, "", 99,
			[]AttemptSummary{ended(runlane.AttemptReleased, 4, none)},
		},
		"an event of a newer version": {
			[]runlane.EventBody{created, asked, claim, begun, &runlane.UnknownEvent{Type: "run.napped"}}, "", 9, []AttemptSummary{running},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var attempts attemptList
			for i, body := range c.bodies {
				record := runlane.EventRecord{Event: runlane.Event{OccurredAt: at(i), Body: body}}
				if i == len(c.bodies)-1 {
					record.Actor.Type = c.actor
				}
				attempts.add(&record)
			}
			if d := cmp.Diff(c.want, attempts.at(at(c.now))); d != "" {
				t.Error(d)
			}
		})
	}
}
