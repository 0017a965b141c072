package cli_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/cli"
)

func TestMove_FromOneLaneToAnother(t *testing.T) {
	t.Parallel()
	from := newWorld()
	mustRun(t, from, "trigger", "emails.welcome", `{"to":"u_1"}`, "--id", "moved")
	r := from.run(t.Context(), "export")
	if r.code != cli.ExitOK || !strings.HasPrefix(r.stderr, "wrote 1 run, ") {
		t.Fatalf("%+v", r)
	}
	file := filepath.Join(t.TempDir(), "state.ndjson")
	if err := os.WriteFile(file, []byte(r.stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	to := newWorld()
	if r := to.run(t.Context(), "import", file); r.code != cli.ExitOK || !strings.HasPrefix(r.stdout, "read 1 run, of which 1 had to be written; ") {
		t.Errorf("%+v", r)
	}
	if r := to.run(t.Context(), "runs", "get", "moved"); r.code != cli.ExitOK || !strings.Contains(r.stdout, "queued") {
		t.Errorf("%+v", r)
	}
	to.stdin = r.stdout
	if r := to.run(t.Context(), "import", "-", "--json"); r.code != cli.ExitOK || !strings.HasPrefix(r.stdout, `{"v":1,"kind":"import","runs":1,"written":0,`) {
		t.Errorf("%+v", r)
	}
	to.stdin = r.stdout[:len(r.stdout)-10]
	if r := to.run(t.Context(), "import", "-"); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "nothing was written") {
		t.Errorf("%+v", r)
	}
	if r := to.run(t.Context(), "import", file+".absent"); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "cannot be read") {
		t.Errorf("%+v", r)
	}
	to.down = true
	for _, args := range [][]string{{"export"}, {"import", file}} {
		if r := to.run(t.Context(), args...); r.code != cli.ExitUnavailable {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

// An import says which queues have lost their order.
func TestImport_NamesQueuesThatWereOrdered(t *testing.T) {
	t.Parallel()
	world := newWorld()
	r := world.run(t.Context(), "export")
	head, _, _ := strings.Cut(r.stdout, "\n")
	head = strings.TrimSuffix(head, "}}") + `,"ordered":["emails"]}}` + "\n"
	world.stdin = head + fmt.Sprintf(`{"end":{"runs":0,"schedules":0,"tasks":0,"sha256":"%x"}}`, sha256.Sum256([]byte(head)))
	if r := world.run(t.Context(), "import", "-"); r.code != cli.ExitOK || !strings.Contains(r.stderr, "queue emails was an ordered queue") {
		t.Errorf("%+v", r)
	}
	if r := world.run(t.Context(), "import", "-", "--json"); r.code != cli.ExitOK || !strings.Contains(r.stdout, `"unordered":["emails"]`) {
		t.Errorf("%+v", r)
	}
}
