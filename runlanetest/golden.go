package runlanetest

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
)

// UpdateVariable is the environment variable that makes [RequireGolden] write instead of compare, if it is "1". It is
// not a flag, because a flag would take its name from every test that imports this package.
const UpdateVariable = "RUNLANETEST_UPDATE"

// String returns the history as text, the content of golden files:
//
//	task     emails.welcome
//	queue    default
//	payload  {"userId":"u_1"}
//	key      idempotency u_1
//
//	+0s  triggered
//	+0s  attempt 1 started
//	+0s  attempt 1 failed: task_failed, retry in 1s (connection refused)
//	+1s  attempt 2 started
//	+1s  attempt 2 succeeded
//
//	status   succeeded
//	counts   attempts 2, failures 1, retries 1, releases 0
//	output   {"messageId":7}
//	child    reports.daily {"of":"RUN"}
//
// Times count from the run's creation. Transitions have the form of [History.Transitions], followed by a failure's
// message in parentheses. Empty fields, and a priority of 0, have no line; each key (idempotency, singleton, concurrency), meta entry and
// child has its own line; source appears only if no program triggered the run directly. IDs are replaced everywhere:
// the run's by RUN, its source's by SOURCE, its children's by CHILD1, CHILD2 and so on.
func (h *History) String() string {
	var text strings.Builder
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&text, "%-8s %s\n", name, oneLine(value))
		}
	}
	key := func(kind, value string) {
		if value != "" {
			field("key", kind+" "+value)
		}
	}
	field("task", string(h.TaskID))
	field("queue", string(h.Queue))
	field("payload", string(h.Payload))
	key("idempotency", h.IdempotencyKey)
	key("singleton", h.SingletonKey)
	key("concurrency", h.ConcurrencyKey)
	if h.Priority != 0 {
		field("priority", strconv.Itoa(h.Priority))
	}
	field("source", describeSource(h.Source))
	for _, name := range slices.Sorted(maps.Keys(h.Meta)) {
		field("meta", name+" "+h.Meta[name])
	}
	text.WriteString("\n")
	for _, line := range h.timeline() {
		text.WriteString(oneLine(line) + "\n")
	}
	text.WriteString("\n")
	field("status", string(h.Status))
	c := h.Counters
	field(
		"counts",
		fmt.Sprintf("attempts %d, failures %d, retries %d, releases %d", c.Attempts, c.Failures, c.Retries, c.Releases),
	)
	field("output", string(h.Output))
	for i := range h.Children {
		field("child", string(h.Children[i].TaskID)+" "+string(h.Children[i].Payload))
	}
	return h.names().Replace(text.String())
}

// names replaces IDs, which differ between executions.
func (h *History) names() *strings.Replacer {
	var pairs []string
	name := func(id runlane.RunID, as string) {
		if id != "" { // "" would match between all letters
			pairs = append(pairs, string(id), as)
		}
	}
	name(h.ID, "RUN")
	name(h.Source.RunID, "SOURCE")
	for i := range h.Children {
		name(h.Children[i].ID, fmt.Sprintf("CHILD%d", i+1))
	}
	return strings.NewReplacer(pairs...)
}

// describeSource returns "" for a run triggered directly by a program.
func describeSource(s runlane.Source) string {
	switch {
	case s.ScheduleID != "":
		return string(s.Type) + " " + string(s.ScheduleID)
	case s.RunID != "":
		return string(s.Type) + " " + string(s.RunID)
	default:
		return ""
	}
}

// RequireGolden ends the test unless the history equals the content of a file, in the form of [History.String]. The
// path is relative to the package's folder; by custom it is in testdata. With RUNLANETEST_UPDATE=1 ([UpdateVariable])
// it writes the file instead: review the difference.
func RequireGolden(t testing.TB, run *History, path string) {
	t.Helper()
	got := run.String()
	if os.Getenv(UpdateVariable) == "1" {
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, []byte(got), 0o644)
		}
		if err != nil {
			t.Fatalf("runlanetest: the golden history cannot be written: %v", err)
		}
		t.Logf("runlanetest: wrote %s", path)
		return
	}
	content, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.Fatalf(
			"runlanetest: there is no golden history %s: write it with %s=1 go test, and read it",
			path,
			UpdateVariable,
		)
	case err != nil:
		t.Fatalf("runlanetest: the golden history cannot be read: %v", err)
	}
	want := strings.ReplaceAll(string(content), "\r\n", "\n") // some checkouts use CRLF
	if want != got {
		t.Fatalf(
			"runlanetest: the history of a run of task %q is not that of %s (-file +run); %s=1 go test accepts it\n%s",
			run.TaskID,
			path,
			UpdateVariable,
			diff(splitLines(want), splitLines(got), same),
		)
	}
}

func oneLine(text string) string {
	return strings.NewReplacer("\r", `\r`, "\n", `\n`).Replace(text)
}
