package memlane

import (
	"fmt"
	"testing"
	"time"
	"unique"

	"github.com/google/go-cmp/cmp"
	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"pgregory.net/rapid"
)

// TestPack_KeepsEverything packs finished runs with any history and compares what reads return before and after.
func TestPack_KeepsEverything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := &entry{id: "run_1", environment: "test", unpacked: newUnpacked()}
		drawUnpacked(t, e.unpacked)
		run, summary, records := e.project(true), e.summary(), history(e)
		e.pack()
		if e.unpacked != nil {
			t.Fatal("a finished run without a claimed row was not packed")
		}
		known := e.view()
		if diff := cmp.Diff(run, known.project(true)); diff != "" {
			t.Errorf("the run differs (-before +packed):\n%s", diff)
		}
		if diff := cmp.Diff(summary, known.summary()); diff != "" {
			t.Errorf("the summary differs (-before +packed):\n%s", diff)
		}
		if diff := cmp.Diff(records, history(e)); diff != "" {
			t.Errorf("the history differs (-before +packed):\n%s", diff)
		}
		e.unpack()
		if diff := cmp.Diff(records, history(e)); diff != "" {
			t.Errorf("the unpacked history differs (-before +unpacked):\n%s", diff)
		}
	})
}

func history(e *entry) []runlane.EventRecord {
	var records []runlane.EventRecord
	for i, ev := range e.history() {
		records = append(records, ev.record(e, int64(i)+1))
	}
	return records
}

// drawUnpacked fills in the data of any finished run that a storage could hold, likely or not.
func drawUnpacked(t *rapid.T, l *unpacked) {
	text := rapid.OneOf(rapid.SampledFrom([]string{"", "a", "test", "run_1", "succeeded", "system"}), rapid.String())
	whole := rapid.OneOf(rapid.Just(time.Time{}), rapid.Map(rapid.Int64Range(-1e12, 1e13), func(m int64) time.Time { return embedded.Millis(m).Time() }))
	data := rapid.OneOf(rapid.Just([]byte(nil)), rapid.SliceOfN(rapid.Byte(), 0, 300))
	maps := rapid.OneOf(rapid.Just(map[string]string(nil)), rapid.MapOfN(text, text, 0, 5))
	count := rapid.IntRange(0, 1<<40)
	failure := rapid.Custom(func(t *rapid.T) runlane.Failure {
		return runlane.Failure{Code: runlane.ErrorCode(text.Draw(t, "code")), Message: text.Draw(t, "message"), Meta: maps.Draw(t, "meta")}
	})
	lease := rapid.Custom(func(t *rapid.T) runlane.Lease {
		return runlane.Lease{Token: text.Draw(t, "token"), WorkerID: text.Draw(t, "worker"), ExpiresAt: whole.Draw(t, "expires")}
	})
	valid := rapid.SampledFrom([]string{"", "a", "approval", "ä"}) // what JSON keeps
	released := rapid.Map(rapid.Int64Range(0, 1e13-1), func(m int64) time.Time { return embedded.Millis(m).Time() })
	waits := rapid.OneOf(rapid.Just((*runlane.Waiting)(nil)), rapid.Custom(func(t *rapid.T) *runlane.Waiting {
		return &runlane.Waiting{
			For: []runlane.WaitingFor{runlane.WaitingFor(valid.Draw(t, "for"))}, Names: []string{valid.Draw(t, "name")},
			All: rapid.Bool().Draw(t, "all"), Need: rapid.IntRange(0, 1<<40).Draw(t, "need"),
			Until: rapid.SampledFrom([]time.Time{{}, embedded.Millis(1_700_000_000_123).Time()}).Draw(t, "until"), Prompt: valid.Draw(t, "prompt"),
		}
	}))
	bodies := []func() runlane.EventBody{
		func() runlane.EventBody {
			return &runlane.RunDeliveryRequested{Delivery: runlane.Delivery{
				Environment: runlane.Environment(text.Draw(t, "environment")), RunID: runlane.RunID(text.Draw(t, "run")),
				Queue: runlane.QueueName(text.Draw(t, "queue")), AvailableAt: whole.Draw(t, "available"), RequestedAt: whole.Draw(t, "requested"),
				DispatchExpiresAt: whole.Draw(t, "dispatch"), TraceCarrier: maps.Draw(t, "trace"),
			}}
		},
		func() runlane.EventBody { return &runlane.RunLeaseClaimed{Lease: lease.Draw(t, "lease")} },
		func() runlane.EventBody { return &runlane.RunLeaseHeartbeat{Lease: lease.Draw(t, "lease")} },
		func() runlane.EventBody { return &runlane.RunStarted{Attempt: count.Draw(t, "attempt")} },
		func() runlane.EventBody {
			return &runlane.RunSucceeded{Attempt: count.Draw(t, "attempt"), Output: data.Draw(t, "output")}
		},
		func() runlane.EventBody {
			return &runlane.RunFailed{Attempt: count.Draw(t, "attempt"), Failure: failure.Draw(t, "failure")}
		},
		func() runlane.EventBody {
			return &runlane.RunRetryScheduled{
				Attempt: count.Draw(t, "attempt"), Failure: failure.Draw(t, "failure"), RetryAt: whole.Draw(t, "retry"),
			}
		},
		func() runlane.EventBody {
			return &runlane.RunReleased{Attempt: count.Draw(t, "attempt"), ResumeAt: released.Draw(t, "resume"), Reason: valid.Draw(t, "reason"), Wait: waits.Draw(t, "wait")}
		},
		func() runlane.EventBody {
			return &runlane.RunResumed{
				By: runlane.WaitingSignal, Name: valid.Draw(t, "name"), ID: valid.Draw(t, "id"), Reason: valid.Draw(t, "reason"),
			}
		},
		func() runlane.EventBody { return &runlane.RunResumed{Reason: text.Draw(t, "reason")} },
		func() runlane.EventBody { return &runlane.RunDebounced{RunAt: released.Draw(t, "debounced")} },
		func() runlane.EventBody { return &runlane.RunCancellationRequested{Reason: text.Draw(t, "reason")} },
		func() runlane.EventBody { return &runlane.RunCancelled{Reason: text.Draw(t, "reason")} },
		func() runlane.EventBody { return &runlane.UnknownEvent{Type: "run.newer", Data: data.Draw(t, "data")} },
	}
	if want := len(runlane.EventTypes()) + 1; /* without the first event's, with the unknown one and both resumptions */ len(bodies) != want {
		t.Fatalf("%d of %d types of events are drawn", len(bodies), want)
	}

	l.created = &runlane.RunCreated{
		TaskID: runlane.TaskID(text.Draw(t, "task")), Queue: runlane.QueueName(text.Draw(t, "queue")), Payload: data.Draw(t, "payload"),
		RunAt: whole.Draw(t, "run at"), ConcurrencyKey: text.Draw(t, "concurrency"), IdempotencyKey: text.Draw(t, "idempotency"),
		Retention:    runlane.KeyRetention{WhileActive: rapid.Bool().Draw(t, "active"), TTL: time.Duration(rapid.Int64().Draw(t, "ttl"))},
		SingletonKey: text.Draw(t, "singleton"),
		Priority:     rapid.IntRange(-runlane.MaxPriority, runlane.MaxPriority).Draw(t, "priority"), Source: runlane.Source{
			Type: runlane.SourceType(text.Draw(t, "source")), RunID: runlane.RunID(text.Draw(t, "source run")),
			ScheduleID: runlane.ScheduleID(text.Draw(t, "schedule")), FireTime: whole.Draw(t, "fire"),
		},
	}
	l.created.Retention.Window = rapid.Bool().Draw(t, "window")
	s := &l.state
	if l.created.Retention.UntilDue = rapid.Bool().Draw(t, "debounced"); l.created.Retention.UntilDue {
		latest := whole.Draw(t, "latest")
		l.created.Debounced = &runlane.Debounced{Latest: latest, Triggers: 1}
		s.debounced = &runlane.Debounced{Latest: latest, Triggers: count.Draw(t, "triggers")}
	}
	s.Status = rapid.SampledFrom([]runlane.Status{runlane.StatusSucceeded, runlane.StatusFailed, runlane.StatusCancelled}).Draw(t, "status")
	s.Sequence = int64(count.Draw(t, "sequence"))
	s.counters = runlane.Counters{
		Attempts: count.Draw(t, "attempts"), Failures: count.Draw(t, "failures"), Retries: count.Draw(t, "retries"), Releases: count.Draw(t, "releases"),
	}
	s.output, s.traceCarrier, s.meta = data.Draw(t, "output"), maps.Draw(t, "trace"), maps.Draw(t, "meta")
	s.LeaseToken, s.leaseWorker = text.Draw(t, "token"), text.Draw(t, "worker")
	for _, m := range s.instants() {
		*m = embedded.At(whole.Draw(t, "instant"))
	}
	if rapid.Bool().Draw(t, "failed") {
		s.failure = new(failure.Draw(t, "failure"))
	}
	for i := range rapid.IntRange(1, 20).Draw(t, "events") {
		ev := event{
			at:    embedded.At(whole.Draw(t, "at")),
			actor: unique.Make(runlane.Actor{Type: runlane.ActorType(text.Draw(t, "actor")), ID: text.Draw(t, "actor id")}), body: l.created,
		}
		if i > 0 {
			ev.body = rapid.SampledFrom(bodies).Draw(t, "body")()
		}
		if rapid.Bool().Draw(t, "notes") {
			ev.notes = &notes{meta: maps.Draw(t, "meta"), traceCarrier: maps.Draw(t, "trace")}
		}
		l.events = append(l.events, ev)
	}
}

// TestLives_AreEmptyWhenUsedAgain guards the memory that packed runs leave to new ones.
func TestLives_AreEmptyWhenUsedAgain(t *testing.T) {
	t.Parallel()
	for n := range 100 {
		e := &entry{id: runlane.RunID(fmt.Sprint("run_", n)), unpacked: newUnpacked()}
		if len(e.events) != 0 || len(e.outbox.Deliveries) != 0 || e.created != nil || e.slot != nil || e.outbox.FirstPublished != embedded.Absent {
			t.Fatalf("run %d began with something in it: %+v", n, e.unpacked)
		}
		e.created, e.state.Status, e.slot = &runlane.RunCreated{}, runlane.StatusFailed, &partition{}
		e.events = append(e.events, event{body: e.created, actor: unique.Make(runlane.SystemActor)})
		e.outbox.Deliveries = append(e.outbox.Deliveries, row{Status: lane.OutboxPublished})
		e.pack()
	}
}
