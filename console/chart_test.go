package console

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

func TestChart_CountsWhatWasMadeAndEndedInEachPart(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	ago := func(hours float64) time.Time { return now.Add(-time.Duration(hours * float64(time.Hour))) }
	ended := []runlane.RunSummary{
		{Status: runlane.StatusSucceeded, CreatedAt: ago(1.5), FinishedAt: now},
		{Status: runlane.StatusCancelled, CreatedAt: ago(1.5), FinishedAt: ago(1.5)},
		{Status: runlane.StatusFailed, CreatedAt: ago(23.9), FinishedAt: ago(12.5)},
	}
	active := []runlane.RunSummary{{CreatedAt: ago(0.5)}, {CreatedAt: ago(100)}}
	parts, each := chartOf(ended, active, false, now)
	if len(parts) != chartParts || each != 59*time.Minute+45*time.Second {
		t.Fatalf("%d parts of %s", len(parts), each)
	}
	for i, want := range map[int][4]int{0: {1}, 11: {0, 0, 1}, 22: {2, 0, 0, 1}, 23: {1, 1}} {
		got := [4]int{parts[i].made, parts[i].succeeded, parts[i].failed, parts[i].rest}
		if got != want {
			t.Errorf("part %d has %v, want %v", i, got, want)
		}
	}
}

// Before the first of those that were read, some that ended are not known: the chart does not begin there.
func TestChart_OfMoreThanWereRead_BeginsWithTheFirstOfThem(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	ended := []runlane.RunSummary{
		{Status: runlane.StatusSucceeded, CreatedAt: now.Add(-48 * time.Hour), FinishedAt: now.Add(-24 * time.Minute)},
	}
	parts, each := chartOf(ended, nil, true, now)
	if each != time.Minute || parts[0].succeeded != 1 || parts[0].made != 0 {
		t.Errorf("parts of %s, the first %+v", each, parts[0])
	}
}

func TestTimeline_HasAnAxis(t *testing.T) {
	t.Parallel()
	for whole, want := range map[time.Duration][]string{
		8 * time.Minute:  {"0", "2 min 0 s", "4 min 0 s", "6 min 0 s", "8 min 0 s"},
		time.Millisecond: {"0", "0 ms", "1 ms"},
	} {
		var page strings.Builder
		if err := timelineAxis(whole, 44).Render(&page); err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if strings.Count(page.String(), ">"+text+"</text>") != 1 {
				t.Errorf("%s: not one %s in %s", whole, text, &page)
			}
		}
	}
}

func TestTimeline_HasWaitsBetweenAttempts(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	run := &runlane.Run{CreatedAt: at(0), Status: runlane.StatusReleased}
	attempts := []core.AttemptSummary{
		{Status: runlane.AttemptRetrying, StartedAt: at(1), FinishedAt: at(2)},
		{Status: runlane.AttemptReleased, StartedAt: at(5), FinishedAt: at(6)},
	}
	steps := []runlane.StepRecord{{Name: "looked up", StartedAt: at(5), At: at(6)}, {Name: "slept", At: at(6)}}
	rows := timelineOf(run, attempts, steps, &core.RunTree{Calls: []core.CallTree{
		{Name: "parts", Runs: []core.RunTree{{Run: &runlane.Run{CreatedAt: at(6), Status: runlane.StatusQueued}}, {}}},
	}})
	want := []timelineRowOf{
		{"waits", []span{{"wait", at(0), at(1)}, {"wait", at(2), at(5)}, {"wait", at(6), time.Time{}}}},
		{"attempts", []span{{"retrying", at(1), at(2)}, {"released", at(5), at(6)}}},
		{"step looked up", []span{{"step", at(5), at(6)}}},
		{"step slept", []span{{"step", at(6), at(6)}}},
		{"parts, 1", []span{{"queued", at(6), time.Time{}}}},
	}
	if diff := cmp.Diff(want, rows, cmp.AllowUnexported(timelineRowOf{}, span{})); diff != "" {
		t.Error(diff)
	}
}
