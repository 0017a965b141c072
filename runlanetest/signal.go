package runlanetest

import (
	"slices"
	"testing"

	"github.com/runlane/runlane-go"
)

// MustSignal is [core.Runtime.Signal], except that an error ends the test. It executes no runs: a run that waits for
// the signal becomes due, and [Runtime.Settle], Advance or Finish calls its handler.
func (rt *Runtime) MustSignal(id runlane.RunID, value runlane.SignalValue) {
	rt.t.Helper()
	if err := rt.Signal(rt.t.Context(), id, value, nil); err != nil {
		rt.t.Fatalf("runlanetest: signal %q was not sent to run %s: %v", value.Name(), id, err)
	}
}

// MustAnswer is [core.Runtime.Answer], except that an error ends the test. It executes no runs. The runtime has a key
// for answer tokens.
func (rt *Runtime) MustAnswer(token string, value runlane.SignalValue) {
	rt.t.Helper()
	if err := rt.Answer(rt.t.Context(), token, value, nil); err != nil {
		rt.t.Fatalf("runlanetest: answer %q was not taken: %v", value.Name(), err)
	}
}

// RequireWaiting ends the test unless the run is suspended and waits for signals of exactly these names, in any order;
// without names, unless it waits for no signal.
func RequireWaiting(t testing.TB, run *History, want ...string) {
	t.Helper()
	var got []string
	if run.Waiting != nil {
		got = slices.Sorted(slices.Values(run.Waiting.Names))
	}
	wanted := slices.Sorted(slices.Values(want))
	if !slices.Equal(wanted, got) {
		t.Fatalf("runlanetest: run %s of task %q is %s and waits for other signals (-want +got)\n%s",
			run.ID, run.TaskID, run.Status, diff(wanted, got, same))
	}
}
