package runlane_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestRun_JSONRoundTrips(t *testing.T) {
	t.Parallel()
	want := filled[runlane.Run](t)
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got runlane.Run
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestRun_JSONLeavesOutWhatIsAbsent(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(&runlane.Run{
		ID: "run_1", Environment: "production", TaskID: "t", Queue: "q", Status: runlane.StatusQueued, EventSequence: 1,
		Source: runlane.Source{Type: runlane.SourceTrigger}, CreatedAt: noon, UpdatedAt: noon,
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"runId":"run_1","environment":"production","taskId":"t","queue":"q","status":"queued","eventSequence":1,` +
		`"counters":{"attempts":0,"failures":0,"retries":0,"releases":0},"source":{"type":"trigger"},` +
		`"createdAt":"2026-03-01T12:00:00Z","updatedAt":"2026-03-01T12:00:00Z"}`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Error(diff)
	}
}

func TestRun_DecodeOutput(t *testing.T) {
	t.Parallel()
	var out struct{ N int }
	if ok, err := (&runlane.Run{}).DecodeOutput(&out); ok || err != nil {
		t.Errorf("no output: %t, %v", ok, err)
	}
	run := &runlane.Run{ID: "run_1", Output: []byte(`{"n": 7}`)}
	if ok, err := run.DecodeOutput(&out); !ok || err != nil || out.N != 7 {
		t.Errorf("got %t, %v, %+v", ok, err, out)
	}
	run.Output = []byte(`"secret"`)
	ok, err := run.DecodeOutput(&out)
	got, is := errors.AsType[*runlane.Error](err)
	if !ok || !is || got.Code != runlane.ErrValidationFailed || got.RunID != "run_1" || strings.Contains(got.Message, "secret") {
		t.Errorf("got %t, %#v", ok, err)
	}
}

func TestRun_Abandoned_CountsAttemptsWithoutAnOutcome(t *testing.T) {
	t.Parallel()
	counters := runlane.Counters{Attempts: 5, Failures: 2, Retries: 2, Releases: 1}
	lease := runlane.Lease{Token: "t", WorkerID: "w", ExpiresAt: noon}
	for _, c := range []struct {
		status runlane.Status
		lease  runlane.Lease
		at     time.Time
		want   int
	}{
		{runlane.StatusQueued, runlane.Lease{}, noon, 2},
		{runlane.StatusRetrying, runlane.Lease{}, noon, 2},
		{runlane.StatusRunning, lease, noon.Add(-time.Millisecond), 1}, // one is still at it
		{runlane.StatusRunning, lease, noon, 2},                        // over at its very millisecond
		{runlane.StatusCancellationRequested, lease, noon.Add(-time.Millisecond), 1},
		{runlane.StatusCancellationRequested, lease, noon, 2},
	} {
		run := &runlane.Run{Status: c.status, Counters: counters, Lease: c.lease}
		if got := run.Abandoned(c.at); got != c.want {
			t.Errorf("%s at %v: got %d, want %d", c.status, c.at, got, c.want)
		}
	}
}

func TestLease_IsOverAtItsVeryMillisecond(t *testing.T) {
	t.Parallel()
	lease := runlane.Lease{Token: "t", WorkerID: "w", ExpiresAt: noon}
	for at, want := range map[time.Time]bool{
		noon.Add(-time.Millisecond): false, noon.Add(-time.Nanosecond): false, noon: true, noon.Add(time.Hour): true,
	} {
		if got := lease.Expired(at); got != want {
			t.Errorf("%v: got %t", at, got)
		}
	}
	if !(runlane.Lease{}).Expired(noon) {
		t.Error("a zero lease is not over")
	}
}

func TestRun_SummaryHasNoPayloadAndNoDetail(t *testing.T) {
	t.Parallel()
	run := filled[runlane.Run](t)
	want := runlane.RunSummary{
		ID: run.ID, TaskID: run.TaskID, Queue: run.Queue, Status: run.Status, Counters: run.Counters, FailureCode: run.Failure.Code,
		Waiting: run.Waiting, Source: run.Source, RunAt: run.RunAt, CreatedAt: run.CreatedAt, FinishedAt: run.FinishedAt,
		ConcurrencyKey: run.ConcurrencyKey, Priority: run.Priority, DispatchExpiresAt: run.DispatchExpiresAt,
	}
	if diff := cmp.Diff(want, run.Summary()); diff != "" {
		t.Error(diff)
	}
	filledFields := filled[runlane.RunSummary](t) // a new field must be filled from the run as well
	a, _ := json.Marshal(run.Summary())
	b, _ := json.Marshal(filledFields)
	var got, all map[string]any
	if err := errors.Join(json.Unmarshal(a, &got), json.Unmarshal(b, &all)); err != nil {
		t.Fatal(err)
	}
	for field := range all {
		if _, ok := got[field]; !ok {
			t.Errorf("%s is never set", field)
		}
	}
}
