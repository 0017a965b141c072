package reducer_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/reducer"
)

var update = flag.Bool("update", false, "rewrite golden files")

// noon is when every event of the matrix occurs. The states around it are told by their distance to it.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// noRun stands for the status of a run that does not exist.
const noRun = "no run"

// state is a run written by hand, so that the reducer's output is never its own expectation. nil means no run.
type state struct {
	name string
	run  *runlane.Run
}

// states holds every status, on both sides of every moment that matters.
func states() []state {
	run := func(status runlane.Status, sequence int64, counters runlane.Counters, change func(*runlane.Run)) *runlane.Run {
		r := &runlane.Run{
			ID: "run_1", Environment: "production", TaskID: "hooks.deliver", Queue: "hooks", Status: status, EventSequence: sequence,
			Counters: counters, Payload: []byte(`{"n":1.0}`), ConcurrencyKey: "c", IdempotencyKey: "i",
			Retention: runlane.KeyRetention{TTL: time.Hour}, SingletonKey: "s",
			Source:       runlane.Source{Type: runlane.SourceRerun, RunID: "run_0"},
			TraceCarrier: map[string]string{"traceparent": "of-creation"}, Meta: map[string]string{"origin": "creation"},
			CreatedAt: noon.Add(-time.Hour), UpdatedAt: noon.Add(-time.Minute),
		}
		if counters.Attempts > 0 {
			r.StartedAt = noon.Add(-2 * time.Minute)
		}
		change(r)
		return r
	}
	var (
		untried  = runlane.Counters{}
		trying   = runlane.Counters{Attempts: 3, Failures: 1, Retries: 1, Releases: 1}
		retried  = runlane.Counters{Attempts: 2, Failures: 1, Retries: 1}
		releases = runlane.Counters{Attempts: 2, Failures: 1, Retries: 1, Releases: 1}
		failure  = runlane.Failure{Code: "old_failure", Message: "old", Meta: map[string]string{"k": "v"}}
	)
	lease := func(end time.Time) func(*runlane.Run) {
		return func(r *runlane.Run) {
			r.RunAt = noon.Add(-5 * time.Minute)
			r.Lease = runlane.Lease{Token: "token-1", WorkerID: "worker-1", ExpiresAt: end}
		}
	}
	due := func(at time.Time) func(*runlane.Run) { return func(r *runlane.Run) { r.RunAt = at } }
	retry := func(at time.Time) func(*runlane.Run) {
		return func(r *runlane.Run) { r.RunAt, r.Failure = at, failure }
	}
	finished := func(r *runlane.Run) { r.FinishedAt = r.UpdatedAt }
	soon := noon.Add(time.Millisecond)

	return []state{
		{noRun, nil},
		{"queued", run(runlane.StatusQueued, 1, untried, func(*runlane.Run) {})},
		{"queued, due now", run(runlane.StatusQueued, 8, retried, retry(noon))},
		{"queued, due later", run(runlane.StatusQueued, 1, untried, due(soon))},
		{"queued with a slot", run(runlane.StatusQueued, 2, untried, func(r *runlane.Run) {
			r.RunAt, r.DispatchedAt, r.DispatchExpiresAt = r.UpdatedAt, r.UpdatedAt, noon.Add(time.Minute)
		})},
		{"scheduled, due now", run(runlane.StatusScheduled, 2, untried, due(noon))},
		{"scheduled, due later", run(runlane.StatusScheduled, 2, untried, func(r *runlane.Run) {
			r.RunAt, r.Debounced = soon, &runlane.Debounced{Latest: noon.Add(time.Hour), Triggers: 2}
		})},
		{"running, not started", run(runlane.StatusRunning, 3, untried, lease(noon.Add(time.Minute)))},
		{"running again, not started", run(runlane.StatusRunning, 9, retried, func(r *runlane.Run) {
			lease(soon)(r)
			r.Failure = failure
		})},
		{"running", run(runlane.StatusRunning, 12, trying, lease(soon))},
		{"running, lease over now", run(runlane.StatusRunning, 12, trying, lease(noon))},
		{"cancellation_requested", run(runlane.StatusCancellationRequested, 13, trying, lease(soon))},
		{"cancellation_requested, lease over now", run(runlane.StatusCancellationRequested, 13, trying, lease(noon))},
		{"retrying, due now", run(runlane.StatusRetrying, 7, retried, retry(noon))},
		{"retrying, due later", run(runlane.StatusRetrying, 7, retried, retry(soon))},
		{"released, due now", run(runlane.StatusReleased, 9, releases, due(noon))},
		{"released, due later", run(runlane.StatusReleased, 9, releases, due(soon))},
		{"succeeded", run(runlane.StatusSucceeded, 13, trying, func(r *runlane.Run) { finished(r); r.Output = []byte(`"old"`) })},
		{"failed", run(runlane.StatusFailed, 13, trying, func(r *runlane.Run) { finished(r); r.Failure = failure })},
		{"cancelled", run(runlane.StatusCancelled, 2, untried, finished)},
		{"unknown status", run("paused", 5, trying, lease(soon))},
	}
}

// stateNamed returns a fresh copy.
func stateNamed(t *testing.T, name string) *runlane.Run {
	t.Helper()
	for _, s := range states() {
		if s.name == name {
			return s.run
		}
	}
	t.Fatalf("no state %q", name)
	return nil
}

// eventFor is an event of the type that fits the run in everything but, perhaps, its status.
func eventFor(kind runlane.EventType, run *runlane.Run) runlane.Event {
	attempts := 0
	if run != nil {
		attempts = run.Counters.Attempts
	}
	failure := runlane.Failure{Code: "new_failure", Message: "new", Meta: map[string]string{"n": "w"}}
	lease := runlane.Lease{Token: "token-1", WorkerID: "worker-1", ExpiresAt: noon.Add(time.Minute)}
	bodies := map[runlane.EventType]runlane.EventBody{
		runlane.EventCreated: &runlane.RunCreated{
			TaskID: "hooks.new", Queue: "new", Payload: []byte(`{"new":true}`), RunAt: noon.Add(time.Hour), ConcurrencyKey: "new-c",
			IdempotencyKey: "new-i", Retention: runlane.KeyRetention{WhileActive: true}, SingletonKey: "new-s",
			Source: runlane.Source{Type: runlane.SourceSchedule, ScheduleID: "nightly", FireTime: noon.Add(-time.Second)},
		},
		runlane.EventDeliveryRequested: &runlane.RunDeliveryRequested{Delivery: runlane.Delivery{
			Environment: "production", RunID: "run_1", Queue: "hooks", AvailableAt: noon, RequestedAt: noon,
		}},
		runlane.EventDebounced: &runlane.RunDebounced{RunAt: noon.Add(time.Minute), Payload: []byte(`{"newer":true}`)},
		runlane.EventLeaseClaimed: &runlane.RunLeaseClaimed{
			Lease: runlane.Lease{Token: "token-2", WorkerID: "worker-2", ExpiresAt: noon.Add(time.Minute)},
		},
		runlane.EventLeaseHeartbeat: &runlane.RunLeaseHeartbeat{Lease: lease},
		runlane.EventStarted:        &runlane.RunStarted{Attempt: attempts + 1},
		runlane.EventSucceeded:      &runlane.RunSucceeded{Attempt: attempts, Output: []byte(`{"new":1}`)},
		runlane.EventFailed:         &runlane.RunFailed{Attempt: attempts, Failure: failure},
		runlane.EventRetryScheduled: &runlane.RunRetryScheduled{Attempt: attempts, Failure: failure, RetryAt: noon.Add(2 * time.Second)},
		runlane.EventReleased: &runlane.RunReleased{
			Attempt: attempts, ResumeAt: noon.Add(3 * time.Second), Reason: "not provisioned",
		},
		runlane.EventResumed:               &runlane.RunResumed{Reason: "operator"},
		runlane.EventCancellationRequested: &runlane.RunCancellationRequested{Reason: "operator"},
		runlane.EventCancelled:             &runlane.RunCancelled{Reason: "operator"},
	}
	return runlane.Event{
		RunID: "run_1", Environment: "production", OccurredAt: noon, Actor: runlane.SystemActor, Body: bodies[kind],
		Meta: map[string]string{"origin": "event"}, TraceCarrier: map[string]string{"traceparent": "of-event"},
	}
}

// allowed is the whole matrix, written by hand: the states in which an event is accepted. Everywhere else it is an invariant
// violation.
var allowed = map[runlane.EventType][]string{
	runlane.EventCreated: {noRun},
	runlane.EventDeliveryRequested: {
		"queued", "queued, due now", "queued, due later", "queued with a slot", "scheduled, due now", "retrying, due now",
		"released, due now", "running, lease over now",
	},
	runlane.EventDebounced: {"scheduled, due later"},
	runlane.EventLeaseClaimed: {
		"queued", "queued, due now", "queued with a slot", "scheduled, due now", "retrying, due now", "released, due now",
		"running, lease over now",
	},
	runlane.EventLeaseHeartbeat: {
		"running, not started", "running again, not started", "running", "running, lease over now",
		"cancellation_requested", "cancellation_requested, lease over now",
	},
	runlane.EventStarted:        {"running, not started", "running again, not started", "running"},
	runlane.EventSucceeded:      executing,
	runlane.EventFailed:         executing,
	runlane.EventRetryScheduled: executing,
	runlane.EventReleased:       executing,
	runlane.EventResumed: {
		"queued, due later", "scheduled, due now", "scheduled, due later", "retrying, due now", "retrying, due later", "released, due now", "released, due later",
	},
	runlane.EventCancellationRequested: {
		"running, not started", "running again, not started", "running", "running, lease over now",
	},
	runlane.EventCancelled: {
		"queued", "queued, due now", "queued, due later", "queued with a slot", "scheduled, due now", "scheduled, due later",
		"retrying, due now", "retrying, due later", "released, due now", "released, due later",
		"cancellation_requested", "cancellation_requested, lease over now",
	},
}

// executing are the states in which an attempt can have an outcome. "running again, not started" is one: the reducer infers
// nothing from the order of events, and attempt 2 is still the current one.
var executing = []string{
	"running again, not started", "running", "running, lease over now", "cancellation_requested", "cancellation_requested, lease over now",
}

// statusAfter is where each accepted event leads.
var statusAfter = map[runlane.EventType]runlane.Status{
	runlane.EventCreated:               runlane.StatusQueued,
	runlane.EventDeliveryRequested:     runlane.StatusQueued,
	runlane.EventLeaseClaimed:          runlane.StatusRunning,
	runlane.EventLeaseHeartbeat:        "", // stays
	runlane.EventStarted:               runlane.StatusRunning,
	runlane.EventSucceeded:             runlane.StatusSucceeded,
	runlane.EventFailed:                runlane.StatusFailed,
	runlane.EventRetryScheduled:        runlane.StatusRetrying,
	runlane.EventReleased:              runlane.StatusReleased,
	runlane.EventResumed:               "", // stays
	runlane.EventCancellationRequested: runlane.StatusCancellationRequested,
	runlane.EventCancelled:             runlane.StatusCancelled,
}

// TestProject_EveryEventInEveryStatus holds the matrix twice: which cells are allowed by the table above, what exactly comes
// out of each by the golden file of the event.
func TestProject_EveryEventInEveryStatus(t *testing.T) {
	t.Parallel()
	for _, kind := range runlane.EventTypes() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			cells, ok := allowed[kind]
			if !ok {
				t.Fatal("the table has no row for this event")
			}
			var golden strings.Builder
			for _, s := range states() {
				sequence := int64(0)
				if s.run != nil {
					sequence = s.run.EventSequence
				}
				before := s.run.Clone()
				after, err := reducer.Project(s.run, sequence, eventFor(kind, s.run))
				if diff := cmp.Diff(before, s.run); diff != "" {
					t.Errorf("%s: current was changed: %s", s.name, diff)
				}

				fmt.Fprintf(&golden, "## %s\n", s.name)
				if !slices.Contains(cells, s.name) {
					if after != nil || !errors.Is(err, runlane.ErrInvariantViolation) {
						t.Errorf("%s: got %v, %v, want an invariant violation", s.name, after, err)
						continue
					}
					fmt.Fprintf(&golden, "rejected: %v\n\n", err)
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", s.name, err)
					continue
				}
				want := statusAfter[kind]
				if want == "" {
					want = s.run.Status
				}
				if after.Status != want {
					t.Errorf("%s: status is %s, want %s", s.name, after.Status, want)
				}
				if after.EventSequence != sequence+1 || !after.UpdatedAt.Equal(noon) {
					t.Errorf("%s: sequence %d, updated at %v", s.name, after.EventSequence, after.UpdatedAt)
				}
				golden.WriteString(describe(before, after))
				golden.WriteString("\n")
			}
			compareGolden(t, filepath.Join("testdata", "project", string(kind)+".golden"), golden.String())
		})
	}
}

// TestProject_MatrixHasEveryStatus: a status that is added has to be thought of here.
func TestProject_MatrixHasEveryStatus(t *testing.T) {
	t.Parallel()
	for _, status := range runlane.Statuses() {
		if !slices.ContainsFunc(states(), func(s state) bool { return s.run != nil && s.run.Status == status }) {
			t.Errorf("no state is %s", status)
		}
	}
	if len(allowed) != len(runlane.EventTypes()) {
		t.Errorf("the table has %d events, the contract %d", len(allowed), len(runlane.EventTypes()))
	}
	for kind, cells := range allowed {
		for _, cell := range cells {
			if !slices.ContainsFunc(states(), func(s state) bool { return s.name == cell }) {
				t.Errorf("%s: no state %q", kind, cell)
			}
		}
	}
}

// describe writes the whole record, one field a line. "~" marks a field that the event changed, "-" one that it emptied.
func describe(before, after *runlane.Run) string {
	if before == nil {
		before = &runlane.Run{}
	}
	var text strings.Builder
	from, to := reflect.ValueOf(*before), reflect.ValueOf(*after)
	for i := range to.NumField() {
		was, is := from.Field(i), to.Field(i)
		mark := " "
		switch {
		case is.IsZero() && was.IsZero():
			continue
		case is.IsZero():
			mark = "-"
		case !reflect.DeepEqual(was.Interface(), is.Interface()):
			mark = "~"
		}
		value := ""
		if mark != "-" {
			value = show(is.Interface())
		}
		text.WriteString(strings.TrimRight(fmt.Sprintf("%s %-18s %s", mark, to.Type().Field(i).Name, value), " ") + "\n")
	}
	return text.String()
}

func show(v any) string {
	switch v := v.(type) {
	case time.Time:
		return v.Format("2006-01-02T15:04:05.000Z07:00")
	case runlane.Lease:
		return fmt.Sprintf("%s of %s until %s", v.Token, v.WorkerID, show(v.ExpiresAt))
	case runlane.Counters:
		return fmt.Sprintf("attempts %d, failures %d, retries %d, releases %d", v.Attempts, v.Failures, v.Retries, v.Releases)
	case runlane.Failure:
		return fmt.Sprintf("%s: %q %v", v.Code, v.Message, v.Meta)
	case runlane.Source:
		text := string(v.Type)
		if v.RunID != "" {
			text += " of " + string(v.RunID)
		}
		if v.ScheduleID != "" {
			text += fmt.Sprintf(" of %s at %s", v.ScheduleID, show(v.FireTime))
		}
		return text
	case fmt.Stringer:
		return v.String()
	default:
		if b := reflect.ValueOf(v); b.Kind() == reflect.Slice {
			return string(b.Bytes())
		}
		return fmt.Sprintf("%+v", v)
	}
}

func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-golden +code), after a review accept with -update:\n%s", path, diff)
	}
}
