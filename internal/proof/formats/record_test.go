package formats_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

var update = flag.Bool("update", false, "write the current recording")

// started is when every recording begins.
var started = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// record plays the lives with today's code.
func record(t *testing.T) *recording {
	t.Helper()
	w := openWorld(t, started, []item{decodeItem(t, `{"pk":{"S":"recorded:config"},"sk":{"S":"shards"},"rd":{"N":"8"},"wr":{"N":"8"}}`)})
	w.live()
	r := &recording{At: w.now(), Items: w.items(), Messages: w.mailbox.all()}
	renumber(r.Items)
	for _, it := range r.Items {
		if kindOf(it) != "run" {
			continue
		}
		id := runlane.RunID(strings.Split(text(it["pk"]), ":")[2])
		run := w.get(id)
		l := life{Run: []byte(encodeJSON(t, run)), Ends: runlane.StatusSucceeded}
		for _, e := range w.history(id) {
			l.Events = append(l.Events, []byte(encodeJSON(t, e)))
		}
		switch {
		case id == "run_pruned":
			l.Ends = ""
		case run.Status.Terminal():
			l.Ends = run.Status
		case run.Status == runlane.StatusCancellationRequested:
			l.Ends = runlane.StatusCancelled
		}
		r.Lives = append(r.Lives, l)
	}
	return r
}

// history is a run's, as far as it is there.
func (w *world) history(id runlane.RunID) []runlane.EventRecord {
	w.Helper()
	page, err := w.store.ListRunEvents(w.Context(), &lane.EventQuery{
		PageQuery: lane.PageQuery{Environment: environment, Limit: runlane.MaxPageLimit}, RunID: id,
	})
	if err != nil {
		w.Fatal(err)
	}
	return page.Items
}

const whatNow = `What is stored or sent is not what recording %s has. Undo that, or, if it is meant (docs/compatibility.md, Changing a format):
  - recording %[1]s belongs to no release yet: go test ./internal/proof/formats -run TestRecord -update
  - only something optional was added, which older programs may ignore: keep testdata/%[1]s, let current name the next addition, update
  - anything else: readers first, in a separate release; then raise dynamostore's format and current, keep testdata/%[1]s, update`

// Today's code stores and sends exactly what the current recording has.
func TestRecord_TodaysCodeStoresWhatTheCurrentRecordingHas(t *testing.T) {
	t.Parallel()
	today := record(t)
	files := today.files(t)
	if *update {
		write(t, files)
		return
	}
	changed := false
	for _, file := range []string{atFile, messagesFile, livesFile, shapesFile} {
		if diff := cmp.Diff(lines(readFile(t, current, file)), lines(files[file])); diff != "" {
			changed = true
			t.Errorf("%s (-recording %s +today):\n%.4000s", file, current, diff)
		}
	}
	kept := loadRecording(t, current)
	if diff := cmp.Diff(byKey(t, kept.Items), byKey(t, today.Items)); diff != "" {
		changed = true
		t.Errorf("items (-recording %s +today):\n%.8000s", current, diff)
	}
	if changed {
		t.Errorf(whatNow, current)
	}
}

func byKey(t *testing.T, items []item) map[string]any {
	t.Helper()
	out := map[string]any{}
	for _, it := range items {
		out[keyOf(it)] = readable(t, it)
	}
	return out
}

func write(t *testing.T, files map[string]string) {
	t.Helper()
	if _, ok := released(t)[current]; ok {
		t.Fatalf("recording %s belongs to a release and never changes: name the next one", current)
	}
	if err := os.MkdirAll(folderOf(current), 0o750); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folderOf(current), name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A recording that belongs to a release is as it was released.
func TestReleased_RecordingsNeverChange(t *testing.T) {
	t.Parallel()
	for _, fault := range releaseFaults(recordings(t), released(t), func(name string) string { return sumOf(t, name) }) {
		t.Error(fault)
	}
}

// releaseFaults compares recordings with those of releases. The current one may still be in the making, earlier ones may not.
func releaseFaults(names []string, released map[string]string, sum func(name string) string) (faults []string) {
	for name, was := range released {
		if !slices.Contains(names, name) {
			faults = append(faults, fmt.Sprintf("recording %s of a release is gone", name))
		} else if is := sum(name); is != was {
			faults = append(faults, fmt.Sprintf("recording %s of a release has changed: its sum is %s, was %s", name, is, was))
		}
	}
	for _, name := range names {
		if _, ok := released[name]; !ok && name != current {
			faults = append(faults, fmt.Sprintf("recording %s is neither the current one nor of a release: %s lacks %q", name, releasedFile, name+" "+sum(name)))
		}
	}
	return faults
}

// The recording has everything there is, so that nothing changes unseen.
func TestRecording_HasEveryStatusEventAndKindOfItem(t *testing.T) {
	t.Parallel()
	r := loadRecording(t, current)
	missing := map[string]bool{}
	for _, s := range runlane.Statuses() {
		missing["status "+string(s)] = true
	}
	for _, e := range runlane.EventTypes() {
		missing["event "+string(e)] = true
	}
	for _, s := range []lane.OutboxStatus{
		lane.OutboxPending, lane.OutboxClaimed, lane.OutboxPublished, lane.OutboxFailed, lane.OutboxDeadLettered,
	} {
		missing["delivery "+string(s)] = true
	}
	for _, kind := range []string{
		"run", "run log", "run note", "run kept", "run payload", "run output", "idem", "single", "slot", "sched", "schedule", "task", "config shards", "config dispatch",
	} {
		missing["item "+kind] = true
	}
	for _, place := range []string{"pz 1", "pz 2", "pz 3", "pz 4", "oz 1", "oz 3", "oz 4"} {
		missing["bulk "+place] = true
	}
	for _, marker := range []string{"q", "o", "x", "w", "d", "l"} {
		missing["marker "+marker] = true
	}
	for kind := range shapesOf(t, r) {
		delete(missing, "item "+kind)
		delete(missing, kind)
	}
	for _, it := range r.Items {
		for _, seen := range partsOf(it) {
			delete(missing, seen)
		}
	}
	for what := range missing {
		t.Errorf("recording %s has no %s", current, what)
	}
}

// partsOf names what an item shows of what there has to be.
func partsOf(it item) (parts []string) {
	if kindOf(it) == "run" {
		parts = append(parts, "status "+text(it["st"]), "bulk pz "+digits(it["pz"]), "bulk oz "+digits(it["oz"]))
		if marker := strings.Split(text(it["dp"]), ":"); len(marker) == 3 {
			parts = append(parts, "marker "+marker[1])
		}
	}
	if list, ok := it["dl"].(*types.AttributeValueMemberL); ok {
		for _, row := range list.Value {
			if m, ok := row.(*types.AttributeValueMemberM); ok {
				parts = append(parts, "delivery "+text(m.Value["st"]))
			}
		}
	}
	return parts
}

func digits(v types.AttributeValue) string {
	if n, ok := v.(*types.AttributeValueMemberN); ok {
		return n.Value
	}
	return ""
}
