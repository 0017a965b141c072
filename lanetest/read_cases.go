package lanetest

import (
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Reads.
func readCases() []storageCase {
	return []storageCase{
		{"AnAbsentRunIsRunNotFound", nil, readAbsent},
		{"GetRunsKeepsOrderAndRepeatsAndOmitsMissing", nil, readMany},
		{"GetRunsCanLeavePayloadAndOutputOut", needsLeases, readLean},
		{"InspectRunShowsTheLatestDelivery", needsBoth(needsOutbox, needsLeases), readInspection},
		{"FailuresComeBackWhole", needsLeases, readFailure},
		{"ListRunsFilters", needsBoth(needsHistory, needsLeases), readFilters},
		{"ListRunsShowsActiveOnesByUrgencyThenTheNewestFinished", needsBoth(needsHistory, needsLeases), readOrder},
		{"SummariesSayWhatRunsAre", needsBoth(needsHistory, needsLeases), readSummary},
		{"ATraceCarrierThatEndsATraceIsKept", needsHistory, readEmptyTrace},
	}
}

func readAbsent(t *testing.T, b *bundle) {
	_, err := b.storage.GetRun(b.ctx(), b.key("run_absent"))
	wantError(t, err, runlane.ErrRunNotFound)
	_, err = b.storage.InspectRun(b.ctx(), &lane.InspectQuery{RunKey: b.key("run_absent")})
	wantError(t, err, runlane.ErrRunNotFound)
}

func readMany(t *testing.T, b *bundle) {
	first := b.create(noon, RunOptions{Payload: []byte(`"first"`)})
	second := b.create(noon, RunOptions{Payload: []byte(`"second"`)})
	got := must(b.storage.GetRuns(b.ctx(), &lane.RunsQuery{
		Environment: b.env, IDs: []runlane.RunID{second.ID, "run_absent", first.ID, second.ID},
	}))(t)
	equal(t, "runs", []*runlane.Run{second, first, second}, got)
	if got[0] == got[2] {
		t.Error("a repeated run is the same pointer twice")
	}
	none := must(b.storage.GetRuns(b.ctx(), &lane.RunsQuery{Environment: b.env}))(t)
	if len(none) != 0 {
		t.Fatalf("no ids returned %d runs", len(none))
	}
}

func readLean(t *testing.T, b *bundle) {
	run := b.running(noon, noon.Add(time.Minute), RunOptions{Payload: filler(2000)})
	run = b.push(run, noon, Succeeded(run, filler(2000)))
	got := must(b.storage.GetRuns(b.ctx(), &lane.RunsQuery{
		Environment:    b.env,
		IDs:            []runlane.RunID{run.ID},
		WithoutPayload: true,
	}))(t)
	want := run.Clone()
	want.Payload, want.Output = nil, nil
	equal(t, "runs", []*runlane.Run{want}, got)
}

func readInspection(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{NoDelivery: true})
	if got := b.row(run.ID); got != nil {
		t.Fatalf("nothing was requested, and the delivery is %+v", got)
	}
	commit := b.deliver(run, noon, noon, lane.InitialOutbox{})
	inspection := b.inspect(run.ID)
	equal(t, "run", commit.Run, inspection.Run)
	equal(t, "delivery", &commit.Outbox[0], inspection.Delivery)
	b.claim(commit.Run, noon, noon.Add(time.Minute))
	if got := b.row(run.ID); got != nil {
		t.Fatalf("the run was claimed, and the delivery is %+v", got)
	}
}

func readFailure(t *testing.T, b *bundle) {
	run := b.running(noon, noon.Add(time.Minute), RunOptions{})
	body := Retried(run, noon.Add(time.Hour))
	body.Failure = runlane.NewFailure(runlane.ErrTaskPanicked, string(filler(1000)), map[string]string{
		"stack": string(filler(3000)),
	})
	run = b.push(run, noon, body)
	stored := b.get(run.ID)
	equal(t, "failure", body.Failure, stored.Failure)
	next := b.claim(stored, noon.Add(time.Hour), noon.Add(2*time.Hour))
	equal(t, "failure after the next start", runlane.Failure{}, b.get(next.ID).Failure)
}

func readFilters(t *testing.T, b *bundle) {
	runs := b.everyStatus()
	byTask := b.create(noon, RunOptions{TaskID: "lanetest.other"})
	byQueue := b.create(noon, RunOptions{Queue: "special"})
	bySchedule := b.create(noon, RunOptions{
		Source: runlane.Source{Type: runlane.SourceSchedule, ScheduleID: "nightly", FireTime: noon},
	})
	bySource := b.create(noon, RunOptions{
		Source: runlane.Source{Type: runlane.SourceRerun, RunID: runs[runlane.StatusFailed].ID},
	})
	for what, c := range map[string]struct {
		query lane.RunQuery
		want  []*runlane.Run
	}{
		"task":     {lane.RunQuery{TaskID: "lanetest.other"}, []*runlane.Run{byTask}},
		"queue":    {lane.RunQuery{Queue: "special"}, []*runlane.Run{byQueue}},
		"schedule": {lane.RunQuery{ScheduleID: "nightly"}, []*runlane.Run{bySchedule}},
		"source":   {lane.RunQuery{SourceRunID: runs[runlane.StatusFailed].ID}, []*runlane.Run{bySource}},
		"nothing":  {lane.RunQuery{Queue: "special", TaskID: "lanetest.other"}, nil},
		"statuses": {
			lane.RunQuery{Statuses: []runlane.Status{runlane.StatusRunning, runlane.StatusFailed}},
			[]*runlane.Run{runs[runlane.StatusRunning], runs[runlane.StatusFailed]},
		},
	} {
		c.query.PageQuery = lane.PageQuery{Environment: b.env}
		var want []runlane.RunID
		for _, run := range c.want {
			want = append(want, run.ID)
		}
		b.eventually(func() string { return difference(sorted(want), sorted(b.listRuns(&c.query))) })
		if t.Failed() {
			t.Fatal("filter by " + what)
		}
	}
}

func readOrder(_ *testing.T, b *bundle) {
	var want []runlane.RunID
	for i := range 3 { // due later and later
		want = append(want, b.create(noon, RunOptions{RunAt: noon.Add(time.Duration(i+1) * time.Hour)}).ID)
	}
	var finished []runlane.RunID
	for i := range 3 {
		status := []runlane.Status{runlane.StatusSucceeded, runlane.StatusFailed, runlane.StatusCancelled}[i]
		finished = append(
			finished,
			b.end(b.create(noon, RunOptions{}), noon.Add(time.Duration(i)*time.Second), status).ID,
		)
	}
	slices.Reverse(finished)
	want = append(want, finished...)
	q := &lane.RunQuery{PageQuery: lane.PageQuery{Environment: b.env}}
	b.eventually(func() string { return difference(want, b.listRuns(q)) })
}

func readSummary(t *testing.T, b *bundle) {
	run := b.running(noon, noon.Add(time.Minute), RunOptions{
		Queue: "special", Source: runlane.Source{Type: runlane.SourceSchedule, ScheduleID: "nightly", FireTime: noon},
	})
	run = b.push(run, noon.Add(time.Second), Failed(run))
	active := b.create(noon, RunOptions{RunAt: noon.Add(time.Hour)})
	q := &lane.RunQuery{PageQuery: lane.PageQuery{Environment: b.env}}
	b.eventually(func() string {
		got := collect(t, &q.PageQuery, func() (*runlane.Page[runlane.RunSummary], error) {
			return b.storage.ListRuns(b.ctx(), q)
		})
		return difference([]runlane.RunSummary{active.Summary(), run.Summary()}, got)
	})
}

// An absent trace carrier replaces nothing, an empty one does: histories must keep them apart.
func readEmptyTrace(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{TraceCarrier: map[string]string{"traceparent": "00-1"}})
	body := Delivery(run, noon, noon)
	body.Delivery.TraceCarrier = map[string]string{}
	run = b.push(run, noon, body)
	if got := b.get(run.ID).TraceCarrier; len(got) != 0 {
		t.Fatalf("trace carrier is %v, want none", got)
	}
	// That the history still folds to this run is proved after the case.
}
