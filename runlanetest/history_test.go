package runlanetest_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/runlanetest"
)

type welcome struct {
	UserID string `json:"userId"`
}

var welcomeTask = runlane.NewTask("emails.welcome", &runlane.TaskOptions[welcome]{
	ConcurrencyKey: func(w welcome) string { return "eu" },
	IdempotencyKey: func(w welcome) string { return w.UserID },
	Retry:          runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(90 * time.Second)},
	SingletonKey:   func(w welcome) string { return "welcome " + w.UserID },
})

// greet fails once, then names its own run everywhere.
func greet(ctx context.Context, a *runlane.Attempt, w welcome) error {
	if a.Number == 1 {
		return &runlane.Error{Code: runlane.ErrStorageUnavailable, Message: "first line\nsecond line"}
	}
	result, err := a.Trigger(ctx, echo.With("of "+string(a.Run.ID)), nil)
	if err != nil {
		return err
	}
	return a.SetOutput(map[string]runlane.RunID{"run": a.Run.ID, "child": result.Run.ID})
}

// greeted is a history with something of everything.
func greeted(t testing.TB) *runlanetest.History {
	t.Helper()
	rt := runlanetest.New(t, &runlanetest.Options{Handlers: []runlane.Handler{welcomeTask.Handle(greet)}})
	run := rt.MustTrigger(welcomeTask.With(welcome{"u_1"}), &runlane.TriggerOptions{
		Meta: map[string]string{"tenant": "b", "by": "a"}, Delay: time.Hour, Priority: 3,
	})
	return rt.Finish(run.ID)
}

const greetedText = `task     emails.welcome
queue    default
payload  {"userId":"u_1"}
key      idempotency u_1
key      singleton welcome u_1
key      concurrency eu
priority 3
meta     by a
meta     tenant b

+0s     triggered to begin in 1h
+1h     attempt 1 started
+1h     attempt 1 failed: storage_unavailable, retry in 1m30s (first line\nsecond line)
+1h1m30s  attempt 2 started
+1h1m30s  attempt 2 succeeded

status   succeeded
counts   attempts 2, failures 1, retries 1, releases 0
output   {"child":"CHILD1","run":"RUN"}
child    echo "of RUN"
`

func TestHistory_String_HasEverythingAndNoID(t *testing.T) {
	t.Parallel()
	want := strings.NewReplacer("+0s     ", "+0s       ", "+1h     ", "+1h       ").Replace(greetedText)
	wantText(t, greeted(t).String(), want)
}

func TestHistory_String_SourceOfASchedulesRunAndOfAChild(t *testing.T) {
	t.Parallel()
	rt := runlanetest.New(t, &runlanetest.Options{
		Handlers: []runlane.Handler{
			welcomeTask.Handle(func(ctx context.Context, a *runlane.Attempt, _ welcome) error {
				_, err := a.Trigger(ctx, echo.With("x"), nil)
				return err
			}),
			echo.Handle(succeed),
		},
		Schedules: []runlane.Schedule{{ID: "hourly", When: runlane.Every(time.Hour), Call: welcomeTask.With(welcome{"u_1"})}},
	})
	rt.Advance(time.Hour)
	parents, children := rt.Histories("emails.welcome"), rt.Histories("echo")
	if len(parents) != 1 || len(children) != 1 {
		t.Fatalf("%d parents, %d children", len(parents), len(children))
	}
	if text := parents[0].String(); !strings.Contains(text, "source   schedule hourly\n") {
		t.Errorf("got\n%s", text)
	}
	if text := children[0].String(); !strings.Contains(text, "source   trigger SOURCE\n") {
		t.Errorf("got\n%s", text)
	}
}

func TestHistory_String_OfTheZeroValue(t *testing.T) {
	t.Parallel()
	wantText(t, new(runlanetest.History).String(), "\n\n\ncounts   attempts 0, failures 0, retries 0, releases 0\n")
}

func TestHistoryOf_ARuntimeOfAnotherLane_HasTheSameTransitions(t *testing.T) {
	t.Parallel()
	quick := runlane.NewTask("quick", &runlane.TaskOptions[string]{
		Retry: runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(0), NoJitter: true},
	})
	rt, err := core.Open(t.Context(), memlane.New(), &core.Options{Handlers: []runlane.Handler{
		quick.Handle(func(_ context.Context, a *runlane.Attempt, _ string) error {
			if a.Number == 1 {
				return errMail
			}
			return nil
		}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := rt.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	result, err := rt.Trigger(t.Context(), quick.With("x"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := rt.Work(t.Context(), &core.WorkOptions{Drain: true}); err != nil {
		t.Fatal(err)
	}
	run := runlanetest.HistoryOf(t, rt, result.Run.ID)
	runlanetest.RequireTransitions(t, run, "triggered", "attempt 1 started", "attempt 1 failed: task_failed, retry in 0s",
		"attempt 2 started", "attempt 2 succeeded")
	if strings.Contains(run.String(), string(result.Run.ID)) {
		t.Errorf("the id is in\n%s", run)
	}
}

func TestRequireTransitions_OpenEnds(t *testing.T) {
	t.Parallel()
	run := greeted(t)
	runlanetest.RequireTransitions(t, run, "triggered...", "attempt 1 started", "attempt 1 failed: storage_unavailable...", "...", "attempt 2 ...")
	got := spyOn(t, func(t testing.TB) { runlanetest.RequireTransitions(t, run, "triggered...", "cancelled...") })
	wantText(t, got, `
runlanetest: run run_000001 of task "emails.welcome" has other transitions (-want +got)
    triggered to begin in 1h
  - cancelled...
  + attempt 1 started
  + attempt 1 failed: storage_unavailable, retry in 1m30s
  + attempt 2 started
  + attempt 2 succeeded`)
}

func TestRequireTransitions_Difference_KeepsWhatIsEqual(t *testing.T) {
	t.Parallel()
	run := greeted(t)
	got := spyOn(t, func(t testing.TB) {
		runlanetest.RequireTransitions(t, run, "triggered to begin in 2h", "attempt 1 started", "attempt 2 started", "attempt 2 succeeded", "cancelled")
	})
	wantText(t, got, `
runlanetest: run run_000001 of task "emails.welcome" has other transitions (-want +got)
  - triggered to begin in 2h
  + triggered to begin in 1h
    attempt 1 started
  + attempt 1 failed: storage_unavailable, retry in 1m30s
    attempt 2 started
    attempt 2 succeeded
  - cancelled`)
}

func TestTransitions_UnknownEvents_AreShown(t *testing.T) {
	t.Parallel()
	run := &runlanetest.History{Events: []runlane.EventRecord{
		{Event: runlane.Event{Body: &runlane.RunLeaseHeartbeat{}}},
		{Event: runlane.Event{Body: &runlane.UnknownEvent{Type: "run.paused"}}},
		{},
	}}
	runlanetest.RequireTransitions(t, run, "unknown event run.paused")
}

func TestRequireGolden_SameHistory_Passes(t *testing.T) {
	t.Parallel()
	runlanetest.RequireGolden(t, greeted(t), "testdata/welcome.golden")
}

func TestRequireGolden_AnotherHistory_ShowsTheDifference(t *testing.T) {
	t.Setenv(runlanetest.UpdateVariable, "")
	run := greeted(t)
	run.Output = []byte(`{"sent":false}`)
	got := spyOn(t, func(t testing.TB) { runlanetest.RequireGolden(t, run, "testdata/welcome.golden") })
	head := `runlanetest: the history of a run of task "emails.welcome" is not that of testdata/welcome.golden (-file +run); ` +
		"RUNLANETEST_UPDATE=1 go test accepts it\n    task     emails.welcome\n"
	tail := `
    counts   attempts 2, failures 1, retries 1, releases 0
  - output   {"child":"CHILD1","run":"RUN"}
  + output   {"sent":false}
    child    echo "of RUN"`
	if !strings.HasPrefix(got, head) || !strings.HasSuffix(got, tail) {
		t.Errorf("got\n%s", got)
	}
}

func TestRequireGolden_LineEndsOfACheckout_DoNotMatter(t *testing.T) {
	t.Setenv(runlanetest.UpdateVariable, "")
	run := greeted(t)
	path := filepath.Join(t.TempDir(), "crlf.golden")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(run.String(), "\n", "\r\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	runlanetest.RequireGolden(t, run, path)
}

func TestRequireGolden_MissingFile_SaysHowToWriteIt(t *testing.T) {
	t.Setenv(runlanetest.UpdateVariable, "")
	run := greeted(t)
	got := spyOn(t, func(t testing.TB) { runlanetest.RequireGolden(t, run, "testdata/none.golden") })
	wantText(t, got, "runlanetest: there is no golden history testdata/none.golden: write it with RUNLANETEST_UPDATE=1 go test, and read it")
}

func TestRequireGolden_Update_WritesWhatThenPasses(t *testing.T) {
	run := greeted(t)
	path := filepath.Join(t.TempDir(), "new", "welcome.golden")
	t.Setenv(runlanetest.UpdateVariable, "1")
	failures, log := spyWithLog(t.Context(), func(t testing.TB) { runlanetest.RequireGolden(t, run, path) })
	if failures != "" || log != "runlanetest: wrote "+path+"\n" {
		t.Errorf("failed with %q, logged %q", failures, log)
	}
	t.Setenv(runlanetest.UpdateVariable, "")
	runlanetest.RequireGolden(t, run, path)
	t.Setenv(runlanetest.UpdateVariable, "1")
	if got := spyOn(t, func(t testing.TB) { runlanetest.RequireGolden(t, run, filepath.Join(path, "below")) }); got == "" {
		t.Error("a file that cannot be written was no failure")
	}
}
