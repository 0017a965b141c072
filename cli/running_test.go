package cli_test

import (
	"context"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/lane"
)

// TestRunning_IsShownWithoutItsToken reads a run from inside its handler: a caller that knows the token could write in the worker's name.
func TestRunning_IsShownWithoutItsToken(t *testing.T) {
	t.Parallel()
	w := newWorld()
	looked := false
	w.during = func(ctx context.Context, id runlane.RunID) error {
		looked = true
		run, err := w.storage.GetRun(ctx, lane.RunKey{Environment: "default", RunID: id})
		if err != nil {
			return err
		}
		if err := runlane.AttemptFrom(ctx).Progress(ctx, "half of it"); err != nil {
			return err
		}
		var all strings.Builder
		for _, c := range []struct{ args, shows string }{
			{"runs get", "worker       w1, until 2026-03-01 12:01:00Z (in 1m)"},
			{"runs get", "progress     half of it, 2026-03-01 12:00:00Z (now)"},
			{"runs get --json", `"workerId":"w1"`},
			{"runs explain", "waits for  lease"},
			{"runs explain --json", `"wait":"lease"`},
			{"runs events", "run.lease_claimed           w1"},
			{"runs events --json", `"token":""`},
			{"runs attempts", "running"},
			{"runs list", "running"},
			{"runs cancel", "is cancellation_requested"},
			{"runs list", "cancellation_requested"},
			{"runs list --status cancellation_requested", string(id)},
			{"runs explain", "waits for  cancellation"},
		} {
			args := append(strings.Fields(c.args), string(id))
			if strings.HasPrefix(c.args, "runs list") {
				args = strings.Fields(c.args)
			}
			r := w.run(ctx, args...)
			all.WriteString(r.stdout + r.stderr)
			if !strings.Contains(r.stdout, c.shows) {
				t.Errorf("%s does not show %q: %+v", c.args, c.shows, r)
			}
		}
		if run.Lease.Token == "" || strings.Contains(all.String(), run.Lease.Token) {
			t.Errorf("the token %q is shown:\n%s", run.Lease.Token, all.String())
		}
		return nil
	}
	mustRun(t, w, "trigger", "emails.watched", "{}")
	if r := w.run(t.Context(), "worker", "--drain", "--no-tick", "--worker-id", "w1"); r.code != cli.ExitOK || !looked {
		t.Fatalf("%+v", r)
	}
}
