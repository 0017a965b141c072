package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

func triggerScenarios() []scenario {
	return []scenario{
		{
			"what is wrong with a trigger is said before anything is written",
			needsBoth(needsIdempotency, needsSingleton),
			triggerValidates,
			false,
		},
		{"a trigger persists the run and its delivery request in one commit", needsIdempotency, triggerPersists, false},
		{"a trigger publishes its wakeup at once and acknowledges it", nil, triggerPublishes, false},
		{"a deferred trigger publishes nothing", nil, triggerDefers, false},
		{"a delayed run waits and sends a delayed wakeup", nil, triggerDelays, false},
		{"a time in the past means at once", nil, triggerPast, false},
		{"payloads arrive byte for byte", needsHistory, triggerBytes, false},
		{"a duplicate key returns the first run", needsIdempotency, triggerDuplicates, false},
		{"a key is free again after a failure", needsIdempotency, triggerAfterFailure, false},
		{"concurrent triggers with one key make one run", needsIdempotency, triggerRace, false},
		{"a key that is taken between read and commit returns its run", needsIdempotency, triggerKeyTaken, false},
		{"a singleton key admits one active run", needsSingleton, triggerSingleton, false},
		{"a run id given twice names one run", nil, triggerGivenID, false},
		{"an attempt triggers with lineage and never waits for itself", needsSingleton, triggerFromAttempt, false},
		{"work after the commit survives the caller's context", nil, triggerSurvives, false},
	}
}

func triggerValidates(t *testing.T, h Harness) {
	task, handler := job("scenario.validate", nil, succeed)
	s := openScene(t, h, core.Options{Handlers: []runlane.Handler{handler}}, func(s *scene) {
		s.transport.Bind("default", "bound")
	})
	big := strings.Repeat("k", runlane.MaxKeyBytes+1)
	ok := task.With(jobPayload{})
	for _, c := range []struct {
		name    string
		call    runlane.Call
		options runlane.TriggerOptions
		want    runlane.ErrorCode
	}{
		{"an empty call", runlane.Call{}, runlane.TriggerOptions{}, runlane.ErrValidationFailed},
		{
			"a bad definition", runlane.NewTask[jobPayload]("a:b", nil).With(jobPayload{}), runlane.TriggerOptions{},
			runlane.ErrConfigurationInvalid,
		},
		{
			"no JSON",
			runlane.NewRawCall(task.Definition(), json.RawMessage(`{"a":`)),
			runlane.TriggerOptions{},
			runlane.ErrValidationFailed,
		},
		{
			"an oversize payload",
			runlane.NewRawCall(
				task.Definition(),
				json.RawMessage(`"`+strings.Repeat("x", runlane.MaxPayloadBytes)+`"`),
			),
			runlane.TriggerOptions{},
			runlane.ErrValidationFailed,
		},
		{"a run id with a colon", ok, runlane.TriggerOptions{RunID: "a:b"}, runlane.ErrValidationFailed},
		{"a long idempotency key", ok, runlane.TriggerOptions{IdempotencyKey: big}, runlane.ErrValidationFailed},
		{
			"an unprintable singleton key",
			ok,
			runlane.TriggerOptions{SingletonKey: "a\x00b"},
			runlane.ErrValidationFailed,
		},
		{"a long concurrency key", ok, runlane.TriggerOptions{ConcurrencyKey: big}, runlane.ErrValidationFailed},
		{"a priority below all", ok, runlane.TriggerOptions{Priority: -9}, runlane.ErrValidationFailed},
		{"a priority above all", ok, runlane.TriggerOptions{Priority: 9}, runlane.ErrValidationFailed},
		{"a negative TTL", ok, runlane.TriggerOptions{IdempotencyTTL: -5}, runlane.ErrValidationFailed},
		{"a negative delay", ok, runlane.TriggerOptions{Delay: -1}, runlane.ErrValidationFailed},
		{"delay and time", ok, runlane.TriggerOptions{Delay: 1, RunAt: s.clock.Now()}, runlane.ErrValidationFailed},
		{
			"nanoseconds taken for seconds",
			ok,
			runlane.TriggerOptions{RunAt: time.Unix(s.clock.Now().UnixNano(), 0)},
			runlane.ErrValidationFailed,
		},
		{
			"the same of an earlier day",
			ok,
			runlane.TriggerOptions{RunAt: time.Unix(-s.clock.Now().UnixNano(), 0)},
			runlane.ErrValidationFailed,
		},
		{
			"the last second of 64 bits",
			ok,
			runlane.TriggerOptions{RunAt: time.Unix(math.MaxInt64, 0)},
			runlane.ErrValidationFailed,
		},
		{
			"the first second of 64 bits",
			ok,
			runlane.TriggerOptions{RunAt: time.Unix(math.MinInt64, 0)},
			runlane.ErrValidationFailed,
		},
		{"a time before 1970", ok, runlane.TriggerOptions{RunAt: time.Unix(-1, 0)}, runlane.ErrValidationFailed},
		{
			"a time beyond every storage",
			ok,
			runlane.TriggerOptions{RunAt: s.clock.Now().AddDate(300, 0, 0)},
			runlane.ErrValidationFailed,
		},
		{
			"too much meta",
			ok,
			runlane.TriggerOptions{Meta: map[string]string{"k": strings.Repeat("v", runlane.MaxMetaBytes)}},
			runlane.ErrValidationFailed,
		},
		{
			"too much meta and trace together", ok, runlane.TriggerOptions{
				Meta:         map[string]string{"k": strings.Repeat("v", runlane.MaxMetaBytes/2)},
				TraceCarrier: map[string]string{"t": strings.Repeat("v", runlane.MaxMetaBytes/2)},
			}, runlane.ErrValidationFailed,
		},
		{
			"an unknown actor",
			ok,
			runlane.TriggerOptions{Actor: runlane.Actor{Type: "robot"}},
			runlane.ErrValidationFailed,
		},
		{
			"a queue without a binding",
			ok,
			runlane.TriggerOptions{Queue: runlane.Queue{Name: "elsewhere"}},
			runlane.ErrConfigurationInvalid,
		},
		{
			"a bad queue",
			ok,
			runlane.TriggerOptions{Queue: runlane.Queue{Name: "bound", Concurrency: -1}},
			runlane.ErrConfigurationInvalid,
		},
		{
			"a second queue of the same name",
			ok,
			runlane.TriggerOptions{Queue: runlane.Queue{Name: "default", Concurrency: 3}},
			runlane.ErrConfigurationInvalid,
		},
	} {
		_, err := s.rt.Trigger(s.Context(), c.call, &c.options)
		if got := runlane.CodeOf(err); got != c.want {
			t.Errorf("%s: error is %v, want %s", c.name, err, c.want)
		}
	}
	if n := len(s.storage.appended()); n != 0 {
		t.Errorf("%d commits were tried", n)
	}
	if sent := len(s.transport.TakePublished()) + len(s.transport.TakeDelayed()); sent != 0 {
		t.Errorf("%d wakeups were sent", sent)
	}
}

func triggerPersists(t *testing.T, h Harness) {
	task, handler := job("scenario.persist", &runlane.TaskOptions[jobPayload]{
		IdempotencyKey: func(jobPayload) string { return "key" },
		ConcurrencyKey: func(jobPayload) string { return "customer:1" },
	}, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{N: 7}), &runlane.TriggerOptions{
		Actor: runlane.Actor{Type: runlane.ActorOperator, ID: "ada"}, Meta: map[string]string{"why": "test"},
		TraceCarrier: map[string]string{"traceparent": "00-1"},
	})
	commits := s.storage.appended()
	if len(commits) != 1 || len(commits[0].Events) != 2 || len(commits[0].PayloadHash) != 32 {
		t.Fatalf("commits are %+v, want one of two events with a payload hash", commits)
	}
	s.wantHistory(run.ID, "created delivery_requested")
	stored := s.get(run.ID)
	if stored.Status != runlane.StatusQueued || stored.TaskID != "scenario.persist" || stored.Queue != "default" ||
		string(stored.Payload) != `{"n":7}` || stored.ConcurrencyKey != "customer:1" ||
		stored.IdempotencyKey != "key" ||
		stored.Retention.TTL != runlane.DefaultIdempotencyTTL || stored.Meta["why"] != "test" ||
		stored.TraceCarrier["traceparent"] != "00-1" || stored.Source.Type != runlane.SourceTrigger ||
		stored.EventSequence != 2 {
		t.Fatalf("stored run is %+v", stored)
	}
	if actor := s.history(run.ID)[0].Actor; actor.Type != runlane.ActorOperator || actor.ID != "ada" {
		t.Fatalf("actor is %+v", actor)
	}
	if !strings.HasPrefix(string(run.ID), "run_") || len(run.ID) != len("run_")+26 {
		t.Fatalf("run id is %q", run.ID)
	}
}

func triggerPublishes(t *testing.T, h Harness) {
	task, handler := job("scenario.publish", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{
		TraceCarrier: map[string]string{"traceparent": "00-1"},
	})
	sent := s.transport.TakePublished()
	if len(sent) != 1 || sent[0].RunID != run.ID || sent[0].Queue != "default" ||
		sent[0].Environment.Name() != s.rt.Environment().Name() ||
		sent[0].GroupKey != string(run.ID) || sent[0].TraceCarrier["traceparent"] != "00-1" {
		t.Fatalf("published %+v", sent)
	}
	s.clock.Advance(time.Hour) // long after every claim
	s.tick()
	if again := s.transport.TakePublished(); s.rowPublishedAgain(again) {
		t.Fatalf("the row was published again although it was acknowledged: %+v", again)
	}
}

// rowPublishedAgain tells the same outbox row from a redelivery's new one.
func (s *scene) rowPublishedAgain(sent []lane.PublishAttempt) bool {
	first := s.storage.outboxIDs()[0]
	for _, attempt := range sent {
		if attempt.ID == first {
			return true
		}
	}
	return false
}

func triggerDefers(t *testing.T, h Harness) {
	task, handler := job("scenario.defer", nil, succeed)
	s := newScene(t, h, handler)
	s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Deferred: true})
	s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Deferred: true, Delay: time.Minute})
	if sent := len(s.transport.TakePublished()) + len(s.transport.TakeDelayed()); sent != 0 {
		t.Fatalf("%d wakeups were sent", sent)
	}
}

func triggerDelays(t *testing.T, h Harness) {
	task, handler := job("scenario.delay", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{Delay: 90 * time.Second})
	s.wantStatus(run, runlane.StatusScheduled)
	sent := s.transport.TakeDelayed()
	if len(sent) != 1 || sent[0].RunID != run.ID || sent[0].Delay < 90*time.Second || sent[0].Delay > 91*time.Second {
		t.Fatalf("delayed wakeups are %+v", sent)
	}
	long := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{RunAt: s.clock.Now().Add(time.Hour)})
	s.wantStatus(long, runlane.StatusScheduled)
	if n := len(s.transport.TakeDelayed()) + len(s.transport.TakePublished()); n != 0 {
		t.Fatalf("%d wakeups were sent for a wait that the transport cannot hold", n)
	}
	s.clock.Advance(91 * time.Second)
	s.wantStatus(s.execute(run), runlane.StatusSucceeded)
}

func triggerPast(t *testing.T, h Harness) {
	task, handler := job("scenario.past", nil, succeed)
	s := newScene(t, h, handler)
	run := s.trigger(task.With(jobPayload{}), &runlane.TriggerOptions{RunAt: s.clock.Now().Add(-time.Hour)})
	s.wantStatus(run, runlane.StatusQueued)
	s.wantSent("at once", run)
}

func triggerBytes(t *testing.T, h Harness) {
	var mu sync.Mutex
	arrived := map[runlane.RunID][]byte{}
	task := runlane.NewTask[json.RawMessage]("scenario.bytes", nil)
	s := newScene(t, h, task.Handle(func(_ context.Context, a *runlane.Attempt, payload json.RawMessage) error {
		mu.Lock()
		defer mu.Unlock()
		arrived[a.Run.ID] = payload
		return a.SetOutput(payload)
	}))
	for name, text := range map[string]string{
		"spacing, escapes and numbers": `{"a": "<b>", "n": 1.0e2}`,
		"lone surrogates":              `{"s":"\ud800 \udfff","e":"\u00e9é"}`,
		"space around":                 " \n[1, 2]\t",
		"null":                         "null",
		"300 KB":                       `{"bulk":"` + strings.Repeat("0123456789<&>é", 20_000) + `"}`,
	} {
		run := s.trigger(task.With(json.RawMessage(text)), nil)
		after := s.execute(run)
		mu.Lock()
		got := arrived[run.ID]
		mu.Unlock()
		stored := s.get(run.ID)
		created, ok := s.history(run.ID)[0].Body.(*runlane.RunCreated)
		switch {
		case !bytes.Equal(got, []byte(text)):
			t.Errorf("%s: the handler got %d other bytes", name, len(got))
		case !bytes.Equal(stored.Payload, []byte(text)):
			t.Errorf("%s: the storage has %d other bytes", name, len(stored.Payload))
		case !bytes.Equal(stored.Output, []byte(text)) || !bytes.Equal(after.Output, []byte(text)):
			t.Errorf("%s: the output is %d other bytes", name, len(stored.Output))
		case !ok || !bytes.Equal(created.Payload, []byte(text)):
			t.Errorf("%s: the history has other bytes", name)
		}
	}
}

func triggerSurvives(t *testing.T, h Harness) {
	task, handler := job("scenario.survive", nil, succeed)
	s := newScene(t, h, handler)
	ctx, cancel := context.WithCancel(s.Context())
	s.storage.script(func() {
		s.storage.onAppend = func(_ *lane.AppendCommand, next func() (*lane.Commit, error)) (*lane.Commit, error) {
			commit, err := next()
			cancel() // the caller hangs up in the instant of the commit
			return commit, err
		}
	})
	result, err := s.rt.Trigger(ctx, task.With(jobPayload{}), nil)
	s.must(err)
	s.wantSent("after its caller has gone", result.Run)
}
