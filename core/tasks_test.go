package core_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/runlane/runlane-go"
)

func TestTasks_List_ShowsOwnDefinitionsBeforeStoredOnes(t *testing.T) {
	t.Parallel()
	w := newCatalogWorld(t)
	w.tick(w.program(0, letters("b", "old"), letters("d", "old")))
	rt := w.program(0, letters("c", "new"), letters("b", "new"), letters("a", "new"))
	states, err := rt.Tasks().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		ID     runlane.TaskID
		Queue  runlane.QueueName
		Known  bool
		Stored bool
	}
	var got []row
	for _, s := range states {
		got = append(got, row{s.ID, s.Queue.Name, s.Known, !s.SeenAt.IsZero()})
		if s.Gone(w.now().Add(100*24*time.Hour)) == s.Known {
			t.Errorf("%s is gone: %t", s.ID, !s.Known)
		}
	}
	want := []row{{"a", "new", true, false}, {"b", "new", true, true}, {"c", "new", true, false}, {"d", "old", false, true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := rt.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Tasks().List(t.Context()); err == nil {
		t.Error("a closed runtime lists tasks")
	}
}

// A program that knows a task from the catalog alone makes the run that the task's program makes.
func TestTaskState_Definition_MakesTheSameRun(t *testing.T) {
	t.Parallel()
	w := newCatalogWorld(t)
	key := func(l letter) string { return "to-" + l.To }
	own := w.program(0,
		runlane.NewTask("keyed", &runlane.TaskOptions[letter]{
			ConcurrencyKey: key, IdempotencyKey: key, SingletonKey: key, IdempotencyTTL: time.Hour,
			Queue: runlane.Queue{Name: "slow", Concurrency: 2, DispatchTimeout: time.Minute},
			Retry: runlane.Retry{MaxAttempts: 3, Backoff: runlane.Fixed(time.Minute)}, Timeout: time.Hour,
		}),
		runlane.NewTask("active", &runlane.TaskOptions[letter]{IdempotencyKey: key, IdempotencyTTL: runlane.WhileActive}),
		letters("plain", "mail"),
	)
	w.tick(own)
	other := w.program(0)
	states, err := other.Tasks().List(t.Context())
	if err != nil || len(states) != 3 {
		t.Fatal(states, err)
	}
	for i, state := range states {
		payload := []byte(`{"to": "ada"}`)
		call, err := own.CallJSON(state.ID, payload)
		if err != nil {
			t.Fatal(err)
		}
		made := triggerWith(t, own, call, &runlane.TriggerOptions{Delay: time.Hour})
		options := &runlane.TriggerOptions{Delay: time.Hour}
		for _, k := range []struct {
			has bool
			to  *string
		}{{state.Keys.Concurrency, &options.ConcurrencyKey}, {state.Keys.Idempotency, &options.IdempotencyKey}, {state.Keys.Singleton, &options.SingletonKey}} {
			if k.has {
				*k.to = "to-ada"
			}
		}
		call = runlane.NewRawCall(state.Definition(), payload)
		if state.Keys.Idempotency {
			same, err := other.Trigger(t.Context(), call, options)
			if err != nil || same.Outcome != runlane.TriggerReturnedExisting || same.Run.ID != made.ID {
				t.Errorf("%s: the key of the run was answered with %+v, %v", state.ID, same, err)
			}
		}
		if _, err := own.Runs().Cancel(t.Context(), made.ID, nil); err != nil {
			t.Fatal(err)
		}
		if state.ID == "keyed" { // a cancelled run retains its key
			if err := own.IdempotencyKeys().Reset(t.Context(), state.ID, "to-ada"); err != nil {
				t.Fatal(err)
			}
		}
		again, err := other.Trigger(t.Context(), call, options)
		if err != nil || again.Outcome != runlane.TriggerCreated {
			t.Fatalf("%d %s: %+v, %v", i, state.ID, again, err)
		}
		if diff := cmp.Diff(made, again.Run, cmpopts.IgnoreFields(runlane.Run{}, "ID")); diff != "" {
			t.Errorf("%s (-its program +another)\n%s", state.ID, diff)
		}
	}
}
