package cli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// A large payload is shown by its size and hash, and written when it is asked for. One without a run is found and removed.
func TestBodies(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.bodies = &lane.Bodies{Store: memlane.NewBodyStore(), Above: lane.MinBodiesAbove}
	payload := `{"to":"` + strings.Repeat("u", 2000) + `"}`
	wants := func(want string, args ...string) {
		t.Helper()
		if r := w.run(t.Context(), args...); r.code != cli.ExitOK || !strings.Contains(r.stdout, want) {
			t.Errorf("%v: %+v", args, r)
		}
	}
	wants("run-1", "trigger", "emails.welcome", payload, "--id", "run-1")
	wants("2009 bytes apart from the run, sha256 ", "runs", "get", "run-1")
	wants(`"payloadApart":{"bytes":2009,"sha256":"`, "runs", "get", "run-1", "--json")
	wants(payload, "runs", "get", "run-1", "--payload")
	wants("bodies: 1 body seen, each of a run", "doctor")
	w.millis.Store(time.Now().AddDate(1, 0, 0).UnixMilli())
	key := lane.NewReference(time.UnixMilli(1), []byte("orphan")).Key(lane.RunKey{RunID: "run-0"})
	if err := w.bodies.Store.Put(t.Context(), key, []byte("orphan")); err != nil {
		t.Fatal(err)
	}
	wants("1 of 2 bodies seen, with 6 bytes, belong to no run", "doctor")
	wants("1 of 2 bodies belong to no run, with 6 bytes; 0 removed", "runs", "prune", "--orphans", "--dry-run")
	wants(`"orphans":1,"bytes":6,"removed":1`, "runs", "prune", "--orphans", "--json")
	wants(payload, "runs", "get", "run-1", "--payload")
}
