package runlanetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// History is a run with all of its events. It is a copy, made at one instant.
type History struct {
	runlane.Run

	// Events are complete, oldest first.
	Events []runlane.EventRecord
	// Children are the runs that this run triggered or called, and its reruns and manual retries, in order of creation.
	Children []runlane.Run
	// Steps are the run's records, in order of recording.
	Steps []runlane.StepRecord
}

// HistoryOf returns the history of a run in any runtime, for tests with another lane. An error ends the test. Lists may
// lag a little on AWS, so a new child may be missing.
func HistoryOf(t testing.TB, rt *core.Runtime, id runlane.RunID) *History {
	t.Helper()
	h, err := readHistory(t.Context(), rt, id)
	if err != nil {
		t.Fatalf("runlanetest: run %q cannot be read: %v", id, err)
	}
	return h
}

func readHistory(ctx context.Context, rt *core.Runtime, id runlane.RunID) (*History, error) {
	run, err := rt.Runs().Get(ctx, id)
	if err != nil {
		return nil, err
	}
	children, err := listRuns(ctx, rt, &core.ListOptions{RunFilter: core.RunFilter{SourceRunID: id}})
	if err != nil {
		return nil, err
	}
	h := &History{Run: *run, Children: children}
	return h, h.readEvents(ctx, rt)
}

// readHistories lists the runs once, instead of once for each run's children.
func readHistories(ctx context.Context, rt *core.Runtime, task runlane.TaskID) ([]*History, error) {
	runs, err := listRuns(ctx, rt, &core.ListOptions{Limit: runlane.MaxPageLimit})
	if err != nil {
		return nil, err
	}
	children := map[runlane.RunID][]runlane.Run{}
	for i := range runs {
		source := runs[i].Source.RunID
		children[source] = append(children[source], runs[i])
	}
	var histories []*History
	for i := range runs {
		if task != "" && runs[i].TaskID != task {
			continue
		}
		h := &History{Run: runs[i], Children: children[runs[i].ID]}
		if err := h.readEvents(ctx, rt); err != nil {
			return nil, err
		}
		histories = append(histories, h)
	}
	return histories, nil
}

func (h *History) readEvents(ctx context.Context, rt *core.Runtime) error {
	if rt.Lane().Capabilities().Storage.SuspendsRuns {
		steps, err := rt.Runs().Steps(ctx, h.ID)
		if err != nil {
			return err
		}
		h.Steps = steps
	}
	for record, err := range rt.Runs().Events(ctx, h.ID, nil) {
		if err != nil {
			return err
		}
		h.Events = append(h.Events, record)
	}
	return nil
}

// listRuns returns whole runs in order of creation.
func listRuns(ctx context.Context, rt *core.Runtime, options *core.ListOptions) ([]runlane.Run, error) {
	var runs []runlane.Run
	for summary, err := range rt.Runs().All(ctx, options) {
		if err != nil {
			return nil, err
		}
		run, err := rt.Runs().Get(ctx, summary.ID)
		if err != nil {
			return nil, err
		}
		runs = append(runs, *run)
	}
	slices.SortFunc(runs, func(a, b runlane.Run) int {
		if order := a.CreatedAt.Compare(b.CreatedAt); order != 0 {
			return order
		}
		return strings.Compare(string(a.ID), string(b.ID))
	})
	return runs, nil
}

// Transitions returns the history of the run, one line each:
//
//	triggered                                          or: triggered to begin in 10m
//	made by schedule nightly                           rerun, retried by hand: the other ways to begin
//	attempt 1 started
//	attempt 1 failed: task_failed, retry in 1s
//	attempt 2 released for 10m: mailbox is not there
//	attempt 3 succeeded                                or: attempt 3 failed: task_panicked
//	cancellation requested: by mistake                 without a reason, no colon
//	cancelled: by mistake
//
// Leases, heartbeats and wakeups are omitted, because they differ between lanes.
func (h *History) Transitions() []string {
	var texts []string
	for i := range h.Events {
		if text, _ := describe(&h.Events[i]); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// timeline returns the transitions with times and messages of failures.
func (h *History) timeline() []string {
	var times, texts []string
	width := 0
	for i := range h.Events {
		text, detail := describe(&h.Events[i])
		if text == "" {
			continue
		}
		if detail != "" {
			text += fmt.Sprintf(" (%s)", detail)
		}
		at := since(h.CreatedAt, h.Events[i].OccurredAt)
		width = max(width, len(at))
		times, texts = append(times, at), append(texts, text)
	}
	for i := range texts {
		texts[i] = fmt.Sprintf("%-*s  %s", width, times[i], texts[i])
	}
	return texts
}

// describe returns the transition of an event, or "" for none.
func describe(record *runlane.EventRecord) (text, detail string) {
	switch body := record.Body.(type) {
	case *runlane.RunCreated:
		return describeCreation(body, record.OccurredAt), ""
	case *runlane.RunDebounced:
		return "triggered again, to begin in " + runlane.FormatDuration(body.RunAt.Sub(record.OccurredAt)), ""
	case *runlane.RunStarted:
		return fmt.Sprintf("attempt %d started", body.Attempt), ""
	case *runlane.RunSucceeded:
		return fmt.Sprintf("attempt %d succeeded", body.Attempt), ""
	case *runlane.RunFailed:
		return fmt.Sprintf("attempt %d failed: %s", body.Attempt, body.Failure.Code), body.Failure.Message
	case *runlane.RunRetryScheduled:
		wait := runlane.FormatDuration(body.RetryAt.Sub(record.OccurredAt))
		return fmt.Sprintf(
			"attempt %d failed: %s, retry in %s",
			body.Attempt,
			body.Failure.Code,
			wait,
		), body.Failure.Message
	case *runlane.RunReleased:
		return withReason(fmt.Sprintf("attempt %d %s", body.Attempt, releasedText(record, body)), body.Reason), ""
	case *runlane.RunResumed:
		by := strings.TrimSpace(string(body.By) + " " + body.Name)
		if by != "" {
			by = " by " + by
		}
		return withReason("resumed"+by, body.Reason), ""
	case *runlane.RunCancellationRequested:
		return withReason("cancellation requested", body.Reason), ""
	case *runlane.RunCancelled:
		return withReason("cancelled", body.Reason), ""
	case *runlane.RunDeliveryRequested, *runlane.RunLeaseClaimed, *runlane.RunLeaseHeartbeat:
		return "", ""
	case *runlane.UnknownEvent:
		return "unknown event " + string(body.Type), ""
	default:
		return "", ""
	}
}

func describeCreation(body *runlane.RunCreated, at time.Time) string {
	text := ""
	switch body.Source.Type {
	case runlane.SourceSchedule:
		text = "made by schedule " + string(body.Source.ScheduleID)
	case runlane.SourceRerun:
		text = "rerun"
	case runlane.SourceManualRetry:
		text = "retried by hand"
	case runlane.SourceTrigger:
		text = "triggered"
	default:
		text = "made by " + string(body.Source.Type)
	}
	if body.RunAt.After(at) {
		text += " to begin in " + runlane.FormatDuration(body.RunAt.Sub(at))
	}
	return text
}

func withReason(text, reason string) string {
	if reason == "" {
		return text
	}
	return text + ": " + reason
}

// RequireTransitions ends the test unless the run has exactly these transitions, in the form of [History.Transitions].
// A line that ends in "..." matches every line with that beginning.
func RequireTransitions(t testing.TB, run *History, want ...string) {
	t.Helper()
	got := run.Transitions()
	met := func(want, got string) bool {
		start, open := strings.CutSuffix(want, "...")
		return want == got || open && strings.HasPrefix(got, start)
	}
	if slices.EqualFunc(want, got, met) {
		return
	}
	t.Fatalf(
		"runlanetest: run %s of task %q has other transitions (-want +got)\n%s",
		run.ID,
		run.TaskID,
		diff(want, got, met),
	)
}

// releasedText returns how long an attempt was released for, or the run's wait.
func releasedText(record *runlane.EventRecord, body *runlane.RunReleased) string {
	text := ""
	if !body.ResumeAt.Equal(runlane.FarMoment()) {
		text = " for " + runlane.FormatDuration(body.ResumeAt.Sub(record.OccurredAt))
	}
	if w := body.Wait; w != nil {
		kinds := make([]string, len(w.For))
		for i, kind := range w.For {
			kinds[i] = string(kind)
		}
		text += strings.TrimRight(" until "+strings.Join(kinds, " or ")+" "+strings.Join(w.Names, ", "), " ")
	}
	return "released" + text
}

// RequireSteps ends the test unless the run has records with exactly these names, in order of recording: steps, sleeps,
// checkpoints, snapshots, and answers of waits. A wait with a time limit has two: the limit, with ":limit" after its
// name, and the answer.
func RequireSteps(t testing.TB, run *History, want ...string) {
	t.Helper()
	got := make([]string, len(run.Steps))
	for i := range run.Steps {
		got[i] = run.Steps[i].Name
	}
	if !slices.Equal(want, got) {
		t.Fatalf("runlanetest: run %s of task %q remembers something else (-want +got)\n%s", run.ID, run.TaskID,
			diff(want, got, same))
	}
}
