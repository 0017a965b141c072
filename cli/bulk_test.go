package cli_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/lane"
)

// crowd makes more runs than one round of a bulk call takes, none of them due.
func crowd(t *testing.T, w *world) {
	t.Helper()
	crowdOf(t, w, "emails.welcome", `"delay":"1h"`)
}

// crowdOf makes as many runs of a task, each with a field.
func crowdOf(t *testing.T, w *world, task, field string) {
	t.Helper()
	for n := range 1100 {
		w.stdin += fmt.Sprintf(`{"runId":"crowd-%04d",%s}`+"\n", n, field)
	}
	mustRun(t, w, "trigger", task, "--batch", "-")
	w.stdin = ""
}

func TestPrefix_AmongMoreRunsThanAreLookedAt(t *testing.T) {
	t.Parallel()
	w := newWorld()
	crowd(t, w)
	if r := w.run(t.Context(), "runs", "get", "crowd-0007", "--json"); r.code != cli.ExitOK {
		t.Errorf("a whole id: %+v", r)
	}
	if r := w.run(t.Context(), "runs", "get", "crowd-000"); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "crowd-0000, crowd-0001") {
		t.Errorf("an ambiguous prefix: %+v", r)
	}
	// One of those that were read begins with it; the others are unknown.
	mustRun(t, w, "trigger", "emails.welcome", "--id", "single-run")
	if r := w.run(t.Context(), "runs", "get", "single"); r.code != cli.ExitOK {
		t.Errorf("looking: %+v", r)
	}
	if r := w.run(t.Context(), "runs", "cancel", "single"); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "give the whole id") {
		t.Errorf("changing: %+v", r)
	}
	if r := w.run(t.Context(), "runs", "get", "absent-run"); r.code != cli.ExitNotFound || !strings.Contains(r.stderr, "first 1000 active") {
		t.Errorf("none: %+v", r)
	}
}

func TestList_BeyondOnePage_HasOneHeader(t *testing.T) {
	t.Parallel()
	w := newWorld()
	crowd(t, w)
	r := w.run(t.Context(), "runs", "list", "--all")
	if lines := strings.Count(r.stdout, "\n"); lines != 1101 || strings.Count(r.stdout, "STATUS") != 1 {
		t.Errorf("%d lines, %d headers", lines, strings.Count(r.stdout, "STATUS"))
	}
	if r := w.run(t.Context(), "runs", "list", "--limit", "600"); strings.Count(r.stdout, "\n") != 601 || !strings.Contains(r.stderr, "there is more") {
		t.Errorf("%d lines, %s", strings.Count(r.stdout, "\n"), r.stderr)
	}
}

// longList is a storage whose list of finished runs has more new ones before the old than are counted.
type longList struct{ lane.Storage }

func (longList) ListRuns(context.Context, *lane.RunQuery) (*runlane.Page[runlane.RunSummary], error) {
	return &runlane.Page[runlane.RunSummary]{Next: "further"}, nil
}

func TestPrune_OldRunsBehindMoreThanIsCounted_AreRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for _, args := range []string{"trigger emails.welcome --id old-run", "worker --drain --no-tick"} {
		mustRun(t, w, strings.Fields(args)...)
	}
	w.millis.Add(time.Hour.Milliseconds())
	w.wrap = func(s lane.Storage) lane.Storage { return longList{s} }
	r := w.run(t.Context(), "runs", "prune", "--older-than", "1m")
	if want := "error: at least 0 runs match: remove them? There is no terminal to ask on\n"; r.code != cli.ExitUsage || !strings.HasPrefix(r.stderr, want) {
		t.Errorf("it does not ask: %+v", r)
	}
	if r := w.run(t.Context(), "runs", "prune", "--older-than", "1m", "--yes"); r.code != cli.ExitOK || r.stdout != "removed: 1, skipped: 0, failed: 0\n" {
		t.Errorf("%+v", r)
	}
}
