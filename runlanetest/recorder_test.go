package runlanetest_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/runlanetest"
)

// signUp is code that triggers: what a Recorder is for.
func signUp(t testing.TB, r runlane.Triggerer, users ...string) {
	t.Helper()
	for _, user := range users {
		if _, err := r.Trigger(t.Context(), welcomeTask.With(welcome{user}), nil); err != nil {
			t.Fatalf("%s: %v", user, err)
		}
	}
}

func TestRecorder_Call_IsEncodedAndHasItsKeys(t *testing.T) {
	t.Parallel()
	r := &runlanetest.Recorder{Now: func() time.Time { return time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC) }}
	options := &runlane.TriggerOptions{Delay: time.Hour, SingletonKey: "mine", IdempotencyTTL: time.Minute, Meta: map[string]string{"a": "b"}}
	result, err := r.Trigger(t.Context(), welcomeTask.With(welcome{"u_1"}), options)
	if err != nil {
		t.Fatal(err)
	}
	calls := r.Calls()
	if len(calls) != 1 {
		t.Fatalf("%d calls", len(calls))
	}
	call := calls[0]
	if call.TaskID != "emails.welcome" || string(call.Payload) != `{"userId":"u_1"}` || call.IdempotencyKey != "u_1" ||
		call.SingletonKey != "mine" || call.ConcurrencyKey != "eu" || call.IdempotencyTTL != time.Minute {
		t.Errorf("recorded %+v", call)
	}
	if call.Options.Delay != time.Hour || call.Options.Deferred {
		t.Errorf("the options are %+v", call.Options)
	}
	run := result.Run
	if run.ID != "run_000001" || run.Status != runlane.StatusScheduled || run.SingletonKey != "mine" || run.Meta["a"] != "b" ||
		!run.RunAt.Equal(time.Date(2026, 5, 4, 4, 2, 1, 0, time.UTC)) {
		t.Errorf("the run is %+v", run)
	}
	run.Meta["a"] = "changed by the caller"
	if kept := r.Calls()[0].Result; kept.Run.Meta["a"] != "b" || kept.Outcome != runlane.TriggerCreated {
		t.Errorf("the result is %+v", kept)
	}
}

func TestRecorder_AnswersLikeARuntime(t *testing.T) {
	t.Parallel()
	var r runlanetest.Recorder
	signUp(t, &r, "u_1")
	again, err := r.Trigger(t.Context(), welcomeTask.With(welcome{"u_1"}), nil)
	if err != nil || again.Outcome != runlane.TriggerReturnedExisting || again.Run.ID != "run_000001" {
		t.Errorf("the same key: %+v, %v", again, err)
	}
	_, err = r.Trigger(t.Context(), welcomeTask.With(welcome{"u_1"}), &runlane.TriggerOptions{IdempotencyKey: "another"})
	if !errors.Is(err, runlane.ConflictSingletonKey) {
		t.Errorf("a held singleton key: %v", err)
	}
	for what, c := range map[string]struct {
		call    runlane.Call
		options *runlane.TriggerOptions
		want    error
	}{
		"an empty call":     {want: runlane.ErrValidationFailed},
		"a bad payload":     {call: runlane.NewTask[chan int]("x", nil).With(nil), want: runlane.ErrValidationFailed},
		"a bad definition":  {call: runlane.NewTask[int]("a:b", nil).With(1), want: runlane.ErrConfigurationInvalid},
		"two times":         {call: echo.With("x"), options: &runlane.TriggerOptions{Delay: 1, RunAt: time.Now()}, want: runlane.ErrValidationFailed},
		"an oversized meta": {call: echo.With("x"), options: &runlane.TriggerOptions{Meta: map[string]string{"a": strings.Repeat("x", 3000)}}, want: runlane.ErrValidationFailed},
	} {
		if _, err := r.Trigger(t.Context(), c.call, c.options); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if calls := r.Calls(); len(calls) != 2 { // the two that were accepted
		t.Errorf("kept %d calls", len(calls))
	}
	if got := runlanetest.Payloads(t, &r, welcomeTask); !slices.Equal(got, []welcome{{"u_1"}}) {
		t.Errorf("started %v", got)
	}
}

func TestRecorder_Fail_DecidesCallByCall(t *testing.T) {
	t.Parallel()
	away := &runlane.Error{Code: runlane.ErrStorageUnavailable, Message: "the table is away"}
	r := &runlanetest.Recorder{Fail: func(call *runlanetest.Recorded) error {
		if call.TaskID == "emails.welcome" && call.IdempotencyKey == "u_2" {
			return away
		}
		return nil
	}}
	signUp(t, r, "u_1")
	if _, err := r.Trigger(t.Context(), welcomeTask.With(welcome{"u_2"}), nil); !errors.Is(err, runlane.ErrStorageUnavailable) {
		t.Errorf("got %v", err)
	}
	runlanetest.RequirePayloads(t, r, welcomeTask, welcome{"u_1"})
}

func TestRecorder_FromManyGoroutines(t *testing.T) {
	t.Parallel()
	var r runlanetest.Recorder
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 25 {
				if _, err := r.Trigger(t.Context(), echo.With("x"), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	ids := map[runlane.RunID]bool{}
	for _, call := range r.Calls() {
		ids[call.Result.Run.ID] = true
	}
	if len(ids) != 200 {
		t.Errorf("%d runs", len(ids))
	}
}

func TestRequirePayloads_Difference_NamesAlsoOtherTasks(t *testing.T) {
	t.Parallel()
	var r runlanetest.Recorder
	signUp(t, &r, "u_1", "u_2")
	if _, err := r.Trigger(t.Context(), echo.With("hello"), nil); err != nil {
		t.Fatal(err)
	}
	runlanetest.RequirePayloads(t, &r, welcomeTask, welcome{"u_1"}, welcome{"u_2"})
	runlanetest.RequirePayloads(t, &r, runlane.NewTask[int]("never", nil))
	got := spyOn(t, func(t testing.TB) { runlanetest.RequirePayloads(t, &r, welcomeTask, welcome{"u_2"}, welcome{"u_3"}) })
	wantText(t, got, `
runlanetest: other runs of task "emails.welcome" were started (-want +got)
  + {"userId":"u_1"}
    {"userId":"u_2"}
  - {"userId":"u_3"}
    (task echo: "hello")`)
	got = spyOn(t, func(t testing.TB) { runlanetest.RequirePayloads(t, &r, echo) })
	if !strings.Contains(got, `  + "hello"`) {
		t.Errorf("a run too many: got %s", got)
	}
	got = spyOn(t, func(t testing.TB) {
		runlanetest.RequirePayloads(t, &r, runlane.NewTask[chan int]("x", nil), nil)
	})
	if !strings.Contains(got, `the wanted payload 1 of task "x" cannot be triggered: validation_failed`) {
		t.Errorf("a payload that cannot be: got %s", got)
	}
}

func TestPayloads_ThatDoNotDecode_EndTheTest(t *testing.T) {
	t.Parallel()
	var r runlanetest.Recorder
	if _, err := r.Trigger(t.Context(), runlane.NewTask[string]("x", nil).With("text"), nil); err != nil {
		t.Fatal(err)
	}
	got := spyOn(t, func(t testing.TB) { runlanetest.Payloads(t, &r, runlane.NewTask[int]("x", nil)) })
	if !strings.Contains(got, `a recorded payload of task "x" does not decode: validation_failed`) {
		t.Errorf("got %s", got)
	}
}
