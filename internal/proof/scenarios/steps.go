package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

func needsSteps(c lane.StorageCapabilities) bool { return c.SuspendsRuns }

// Each row is one of the rules of docs/workflows.md.
func stepScenarios() []scenario {
	return []scenario{
		{"a step that succeeded is not executed again", needsSteps, stepOnce, false},
		{"a step that failed is tried again, also by its attempt", needsSteps, stepFails, false},
		{"a name that is used twice in an attempt is refused, also by goroutines", needsSteps, stepTwice, false},
		{"a step within a step is refused", needsSteps, stepNested, false},
		{"the context of a step ends with its attempt", needsSteps, stepContext, false},
		{"a name used for two kinds or two types is refused", needsSteps, stepTypes, false},
		{"bad names, results and too many steps are refused before anything is written", needsSteps, stepBad, false},
		{"of two workers the one that records first decides for both", needsSteps, stepRaced, false},
		{"a checkpoint is what the next attempt goes on from", needsSteps, stepCheckpoint, false},
		{"snapshots are kept as they were, and listed latest first", needsSteps, stepSnapshots, false},
		{"what a run remembers is listed in the order of recording", needsSteps, stepListed, false},
		{"what an attempt logs is kept with the run, apart from its steps", needsSteps, stepLogged, false},
		{"a sleep ends at the moment that its first call has recorded", needsSteps, sleepEnds, false},
		{"of two branches that sleep the earlier moment counts", needsSteps, sleepBranches, false},
		{"a resume ends the sleep beside a wait with a shorter limit", needsBoth(needsSteps, needsMail), sleepBeside, false},
		{"a handler that drops its suspension sleeps all the same", needsSteps, sleepDropped, false},
		{"bad sleeps are refused", needsSteps, sleepBad, false},
		{"a run remembers the version of its task that it began with", needsSteps, versionBegan, false},
		{"a run that began before its task had a version began with none", needsSteps, versionNone, false},
		{"a program of an older version leaves a newer one's run alone", needsSteps, versionOlder, false},
	}
}

// steps is a scene with one task, whose handler is f and whose next attempt is due at once.
type stepScene struct {
	*scene
	task *runlane.Task[jobPayload]
}

func newStepScene(t *testing.T, h Harness, f func(ctx context.Context, a *runlane.Attempt) error) *stepScene {
	t.Helper()
	task, handler := job("scenario.steps", &runlane.TaskOptions[jobPayload]{
		Retry: runlane.Retry{MaxAttempts: 10, Backoff: runlane.Fixed(time.Second)},
	}, f)
	return &stepScene{newScene(t, h, handler), task}
}

// attempts executes a new run until it ends.
func (s *stepScene) attempts() *runlane.Run {
	s.Helper()
	run := s.execute(s.trigger(s.task.With(jobPayload{}), nil))
	for run.Status.Active() {
		s.clock.Advance(time.Second)
		run = s.execute(run)
	}
	return run
}

// wantSucceeded says what the attempts found wrong.
func (s *stepScene) wantSucceeded(run *runlane.Run) {
	s.Helper()
	if run.Status != runlane.StatusSucceeded {
		s.Fatalf("%s: %+v", run.Status, run.Failure)
	}
}

var errNotYet = errors.New("not yet")

// permanent is a failure that shows in the run.
func permanent(format string, args ...any) error {
	return runlane.Permanent(&runlane.Error{Code: runlane.ErrInternal, Message: fmt.Sprintf(format, args...)})
}

type receipt struct {
	ID    string  `json:"id"`
	Cents int64   `json:"cents"`
	Rate  float64 `json:"rate"`
}

func stepOnce(t *testing.T, h Harness) {
	done := map[string]int{}
	s := newStepScene(t, h, func(ctx context.Context, a *runlane.Attempt) error {
		got, err := runlane.Step(ctx, a, "charge", func(context.Context) (receipt, error) {
			done["charge"]++
			return receipt{"ch_1", 1 << 60, 1e-300}, nil
		})
		if err != nil || got != (receipt{"ch_1", 1 << 60, 1e-300}) {
			return permanent("%+v, %v", got, err)
		}
		if a.Number < 3 {
			return errNotYet
		}
		return a.Do(ctx, "mail", func(context.Context) error {
			done["mail"]++
			return nil
		})
	})
	run := s.attempts()
	s.wantSucceeded(run)
	if run.Counters.Attempts != 3 || done["charge"] != 1 || done["mail"] != 1 {
		t.Errorf("%d attempts did %v", run.Counters.Attempts, done)
	}
	s.wantHistory(run.ID, "created delivery_requested lease_claimed started retry_scheduled lease_claimed started "+
		"retry_scheduled lease_claimed started succeeded") // steps are no events
}

func stepFails(t *testing.T, h Harness) {
	calls := 0
	s := newStepScene(t, h, func(ctx context.Context, a *runlane.Attempt) error {
		work := func(context.Context) error {
			if calls++; calls < 4 {
				return errNotYet
			}
			return nil
		}
		if err := a.Do(ctx, "call", work); !errors.Is(err, errNotYet) && calls < 4 {
			return permanent("%v", err)
		}
		return a.Do(ctx, "call", work) // the same name again: nothing was recorded
	})
	run := s.attempts()
	s.wantSucceeded(run)
	if calls != 4 || run.Counters.Attempts != 2 {
		t.Errorf("%d calls in %d attempts", calls, run.Counters.Attempts)
	}
}

func stepTwice(t *testing.T, h Harness) {
	s := newStepScene(t, h, func(ctx context.Context, a *runlane.Attempt) error {
		nothing := func(context.Context) error { return nil }
		if err := a.Do(ctx, "once", nothing); err != nil {
			return permanent("%v", err)
		}
		if err := a.Do(ctx, "once", nothing); !errors.Is(err, runlane.ErrValidationFailed) {
			return permanent("used again: %v", err)
		}
		var wg sync.WaitGroup
		errs := make([]error, 10)
		for i := range errs {
			wg.Go(func() { errs[i] = a.Do(ctx, fmt.Sprintf("branch/%d", i/2), nothing) })
		}
		wg.Wait()
		if refused := len(slices.DeleteFunc(errs, func(err error) bool { return err == nil })); refused != 5 {
			return permanent("of five names that two goroutines use, %d calls are refused", refused)
		}
		if a.Number == 1 {
			return errNotYet
		}
		return nil
	})
	s.wantSucceeded(s.attempts())
}

func stepNested(t *testing.T, h Harness) {
	s := newStepScene(t, h, func(ctx context.Context, a *runlane.Attempt) error {
		err := a.Do(ctx, "outer", func(ctx context.Context) error {
			if err := a.Checkpoint(ctx, "rows", 1); err != nil { // which suspends nothing, and waits for nothing
				return permanent("%v", err)
			}
			return a.Do(ctx, "inner", func(context.Context) error { return nil })
		})
		if !errors.Is(err, runlane.ErrValidationFailed) || !strings.Contains(err.Error(), "outer") {
			return permanent("%v", err)
		}
		return nil
	})
	run := s.attempts()
	s.wantSucceeded(run)
	if names := s.stepNames(run); !slices.Equal(names, []string{"rows"}) {
		t.Errorf("recorded are %q", names)
	}
}

// stepNames are those that the run remembers, in the order of recording.
func (s *stepScene) stepNames(run *runlane.Run) []string {
	s.Helper()
	records, err := s.rt.Runs().Steps(s.Context(), run.ID)
	s.must(err)
	var names []string
	for _, r := range records {
		names = append(names, r.Name)
	}
	return names
}

func stepContext(t *testing.T, h Harness) {
	var s *stepScene
	s = newStepScene(t, h, func(_ context.Context, a *runlane.Attempt) error {
		if a.Number > 1 {
			return nil
		}
		return a.Do(context.Background(), "long", func(ctx context.Context) error {
			_, err := s.rt.Runs().Cancel(ctx, a.Run.ID, nil)
			if err != nil {
				return permanent("%v", err)
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
	})
	run := s.execute(s.trigger(s.task.With(jobPayload{}), nil))
	s.wantStatus(run, runlane.StatusCancelled)
	if names := s.stepNames(run); len(names) != 0 {
		t.Errorf("recorded are %q", names)
	}
}

func stepTypes(t *testing.T, h Harness) {
	type renamed receipt
	s := newStepScene(t, h, func(ctx context.Context, a *runlane.Attempt) error {
		charge := func(context.Context) (receipt, error) { return receipt{ID: "ch_1", Cents: 5}, nil }
		var err, other error
		if a.Number == 1 {
			_, err = runlane.Step(ctx, a, "charge", charge)
			_, other = runlane.Step(ctx, a, "empty", func(context.Context) (struct{}, error) { return struct{}{}, nil })
			return errors.Join(err, other, errNotYet)
		}
		switch a.Number {
		case 2: // a type of another name that holds the same
			var got renamed
			notYet := func(context.Context) (renamed, error) { return renamed{}, errNotYet }
			got, err = runlane.Step(ctx, a, "charge", notYet)
			if err != nil || got.ID != "ch_1" {
				return permanent("%+v, %v", got, err)
			}
			return errNotYet
		case 3:
			_, err = runlane.Step(ctx, a, "charge", func(context.Context) (int, error) { return 0, errNotYet })
			_, other = runlane.Step(ctx, a, "empty", charge) // {} would be a receipt of nothing
			if !strings.Contains(fmt.Sprint(err), "receipt") || !strings.Contains(fmt.Sprint(err), " int ") {
				return permanent("the error names no types: %v", err)
			}
		case 4:
			err = a.Checkpoint(ctx, "charge", 1)
			other = a.Snapshot(ctx, "empty", 1)
		default:
			return nil
		}
		if !errors.Is(err, runlane.ErrValidationFailed) || !errors.Is(other, runlane.ErrValidationFailed) {
			return permanent("%v, %v", err, other)
		}
		return errNotYet
	})
	run := s.attempts()
	s.wantSucceeded(run)
	if names := s.stepNames(run); len(names) != 2 {
		t.Errorf("recorded are %q", names)
	}
}

func stepBad(t *testing.T, h Harness) {
	executed := 0
	s := newStepScene(t, h, func(ctx context.Context, a *runlane.Attempt) error {
		nothing := func(context.Context) error { executed++; return nil }
		for what, name := range map[string]string{
			"empty": "", "long": strings.Repeat("n", runlane.MaxStepNameBytes+1), "control": "a\x00", "no text": "\xff",
		} {
			if err := a.Do(ctx, name, nothing); !errors.Is(err, runlane.ErrValidationFailed) {
				return permanent("a name that is %s: %v", what, err)
			}
			if err := a.Checkpoint(ctx, name, 1); !errors.Is(err, runlane.ErrValidationFailed) {
				return permanent("a checkpoint's name that is %s: %v", what, err)
			}
		}
		for _, err := range []error{
			a.Do(ctx, "version:2", nothing), a.Checkpoint(ctx, "version:2", 1), a.Snapshot(ctx, "version:2", 1),
		} {
			if !errors.Is(err, runlane.ErrValidationFailed) {
				return permanent("the name of a version's record: %v", err)
			}
		}
		_, err := runlane.Step(ctx, a, "chan", func(context.Context) (chan int, error) { executed++; return nil, nil })
		if !errors.Is(err, runlane.ErrValidationFailed) || executed > 0 {
			return permanent("a result that cannot be encoded: %v, executed %d times", err, executed)
		}
		_, err = runlane.Step(ctx, a, "large", func(context.Context) (string, error) {
			return strings.Repeat("x", runlane.MaxPayloadBytes), nil
		})
		if !errors.Is(err, runlane.ErrValidationFailed) {
			return permanent("a large result: %v", err)
		}
		if a.Run.Meta["many"] == "" {
			return nil
		}
		for i := range runlane.MaxSteps {
			if err := a.Do(ctx, fmt.Sprint(i), nothing); err != nil {
				return permanent("step %d: %v", i, err)
			}
		}
		for _, err := range []error{
			a.Do(ctx, "beyond", nothing), a.Checkpoint(ctx, "beyond", 1), a.Snapshot(ctx, "beyond", 1),
		} {
			if !errors.Is(err, runlane.ErrValidationFailed) || !strings.Contains(err.Error(), "1000") {
				return permanent("step 1001: %v", err)
			}
		}
		return nil
	})
	many := &runlane.TriggerOptions{}
	if h.Virtual { // a thousand requests take seconds elsewhere
		many.Meta = map[string]string{"many": "yes"}
	}
	run := s.execute(s.trigger(s.task.With(jobPayload{}), many))
	s.wantSucceeded(run)
	want := 0
	if h.Virtual {
		want = runlane.MaxSteps
	}
	if names := s.stepNames(run); len(names) != want {
		t.Errorf("%d are recorded", len(names))
	}
}

func stepRaced(t *testing.T, h Harness) {
	var s *stepScene
	s = newStepScene(t, h, func(ctx context.Context, a *runlane.Attempt) error {
		got, err := runlane.Step(ctx, a, "charge", func(context.Context) (string, error) {
			_, err := s.storage.KeepRecord(ctx, &lane.KeepCommand{ // a late worker is faster
				RunKey:    s.key(a.Run.ID),
				CreatedAt: a.Run.CreatedAt,
				Record: lane.StepRecord{
					Name:    "charge",
					Kind:    runlane.StepKindStep,
					Attempt: 1,
					At:      s.now(),
					Type:    "string",
					Result:  []byte(`"theirs"`),
				},
			})
			return "ours", err
		})
		if err != nil || got != "theirs" && got != "ours" {
			return permanent("%q, %v", got, err)
		}
		if a.Number == 1 {
			if err := a.SetOutput(got); err != nil {
				return permanent("%v", err)
			}
			return a.Snapshot(ctx, "seen", got)
		}
		return nil
	})
	run := s.attempts()
	s.wantSucceeded(run)
	records, err := s.rt.Runs().Steps(t.Context(), run.ID)
	s.must(err)
	for _, r := range records {
		if string(r.Result) != string(run.Output) {
			t.Errorf("%s is %s, and the attempt was given %s", r.Name, r.Result, run.Output)
		}
	}
	if len(records) != 2 {
		t.Errorf("recorded are %+v", records)
	}
}

func stepCheckpoint(t *testing.T, h Harness) {
	s := newStepScene(t, h, func(ctx context.Context, a *runlane.Attempt) error {
		n, want := -1, []int{-1, 100, 101, 101}[a.Number-1]
		found, err := a.Restore(ctx, "rows", &n)
		if err != nil || n != want || found != (want >= 0) {
			return permanent("attempt %d finds %d, %t, %v", a.Number, n, found, err)
		}
		switch a.Number {
		case 1: // of a hundred values the last one is written when the attempt ends
			for i := range 101 {
				if err := a.Checkpoint(ctx, "rows", i); err != nil {
					return permanent("%v", err)
				}
			}
		case 2:
			err = a.Checkpoint(ctx, "rows", 101)
			if again, restored := a.Restore(ctx, "rows", &n); err != nil || !again || restored != nil || n != 101 {
				return permanent("an attempt does not find its own: %d, %v", n, restored)
			}
		case 3:
			var text string
			if _, err := a.Restore(ctx, "rows", &text); !errors.Is(err, runlane.ErrValidationFailed) {
				return permanent("another type: %v", err)
			}
			if _, err := a.Restore(ctx, "rows", n); !errors.Is(err, runlane.ErrValidationFailed) {
				return permanent("no pointer: %v", err)
			}
			found, err := a.Restore(ctx, "none", &n)
			if err != nil || found || n != 101 {
				return permanent("without one: %t, %v", found, err)
			}
		default:
			return nil
		}
		return errNotYet
	})
	run := s.attempts()
	s.wantSucceeded(run)
	records, err := s.rt.Runs().Steps(t.Context(), run.ID)
	s.must(err)
	if len(records) != 1 || records[0].Attempt != 2 || string(records[0].Result) != "101" {
		t.Errorf("recorded are %+v", records)
	}
}

func stepSnapshots(t *testing.T, h Harness) {
	var s *stepScene
	s = newStepScene(t, h, func(ctx context.Context, a *runlane.Attempt) error {
		for i := range a.Number {
			if err := a.Snapshot(ctx, fmt.Sprint("turn/", i), map[string]int{"attempt": a.Number}); err != nil {
				return permanent("%v", err)
			}
			s.clock.Advance(time.Millisecond)
		}
		seen, err := a.Snapshots(ctx)
		if err != nil || len(seen) != a.Number || seen[0].Name != fmt.Sprint("turn/", a.Number-1) {
			return permanent("%+v, %v", seen, err)
		}
		if a.Number < 3 {
			return errNotYet
		}
		return a.Do(ctx, "a step is no snapshot", func(context.Context) error { return nil })
	})
	run := s.attempts()
	s.wantSucceeded(run)
	snapshots, err := s.rt.Runs().Snapshots(t.Context(), run.ID)
	s.must(err)
	for i, r := range snapshots {
		if want := fmt.Sprintf(`{"attempt":%d}`, 3-i); string(r.Result) != want || r.Attempt != 3-i {
			t.Errorf("snapshot %d is %+v, want %s", i, r, want)
		}
	}
	if len(snapshots) != 3 {
		t.Errorf("%d snapshots", len(snapshots))
	}
}

func stepListed(t *testing.T, h Harness) {
	var s *stepScene
	s = newStepScene(t, h, func(ctx context.Context, a *runlane.Attempt) error {
		for _, name := range []string{"z", "a"} {
			_, err := runlane.Step(ctx, a, name, func(context.Context) (json.RawMessage, error) {
				s.clock.Advance(time.Second)
				return json.RawMessage(`{"n": 1.0e0}`), nil
			})
			if err != nil {
				return permanent("%v", err)
			}
		}
		return nil
	})
	began := runlane.UTCMillis(s.now())
	run := s.attempts()
	s.wantSucceeded(run)
	records, err := s.rt.Runs().Steps(t.Context(), run.ID)
	s.must(err)
	if len(records) != 2 || records[0].Name != "z" {
		t.Fatalf("%+v", records)
	}
	r := records[1]
	if !r.StartedAt.Equal(began.Add(time.Second)) || !r.At.Equal(began.Add(2*time.Second)) || r.Attempt != 1 ||
		r.Type != "json.RawMessage" || string(r.Result) != `{"n": 1.0e0}` || r.Kind != runlane.StepKindStep {
		t.Errorf("%+v", r)
	}
	_, err = s.rt.Runs().Steps(t.Context(), "run_missing")
	s.wantCode(err, runlane.ErrRunNotFound)
}
