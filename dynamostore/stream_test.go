package dynamostore

import (
	"errors"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

func TestParseStreamImage(t *testing.T) {
	t.Parallel()
	client := newScripted()
	store := New(client, "table", nil)
	c := creation(t, "run_1")
	c.Outbox = lane.InitialOutbox{}
	commit, err := store.AppendRunEvents(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	log := client.items["test:run:run_1 log:0000000001"]
	record, err := ParseStreamImage(log)
	want := StreamRecord{Environment: "test", RunID: "run_1", OutboxIDs: []string{commit.Outbox[0].ID}}
	if err != nil || !cmp.Equal(record, want) {
		t.Errorf("%+v %v", record, err)
	}
	if item.TextOf(log[RelayAttribute]) != RelayValue {
		t.Error("the stream's filter would not see it")
	}
	for name, image := range map[string]item.Item{"no item": nil, "a run": client.items["test:run:run_1 run"], "foreign": {"pk": item.Text("x")}} {
		if record, err := ParseStreamImage(image); err != nil || record.OutboxIDs != nil {
			t.Errorf("%s: %+v %v", name, record, err)
		}
	}
	if _, err := ParseStreamImage(item.Item{"pk": item.Text("test:run:run_1"), "sk": item.Text("log:x"), "relay": item.Text("1")}); !errors.Is(err, runlane.ErrInvariantViolation) {
		t.Errorf("broken log: %v", err)
	}
}

// Rows claimed from the start, and rows for later, are none of the relay's business.
func TestRelayAttribute_OnlyOnPendingRowsThatAreDue(t *testing.T) {
	t.Parallel()
	client := newScripted()
	if _, err := New(client, "table", nil).AppendRunEvents(t.Context(), creation(t, "run_1")); err != nil {
		t.Fatal(err)
	}
	if _, there := client.items["test:run:run_1 log:0000000001"][RelayAttribute]; there {
		t.Error("a row claimed from the start would invoke the relay")
	}
}

// A called run is written once more after its end, when its caller was told: that is no news.
func TestParseStreamRun(t *testing.T) {
	t.Parallel()
	client := newScripted()
	if _, err := New(client, "table", nil).AppendRunEvents(t.Context(), creation(t, "run_1")); err != nil {
		t.Fatal(err)
	}
	image := client.items["test:run:run_1 run"]
	with := func(pairs ...string) item.Item {
		changed := maps.Clone(image)
		for i := 0; i < len(pairs); i += 2 {
			changed[pairs[i]] = item.Text(pairs[i+1])
		}
		return changed
	}
	ended := []string{"st", "succeeded", "so", "call", "dp", "test:e:1", "da", "1:default"}
	for name, row := range map[string]struct {
		image item.Item
		want  runlane.Status // "": none
	}{
		"active": {image, runlane.StatusQueued}, "ended": {with(ended...), runlane.StatusSucceeded},
		"told":         {with(append(ended, "dp", "", "da", "")...), ""},
		"nothing told": {with("st", "failed", "dp", "", "da", ""), runlane.StatusFailed},
		"a log":        {client.items["test:run:run_1 log:0000000001"], ""}, "none": {nil, ""},
	} {
		run, err := ParseStreamRun(row.image)
		var got runlane.Status
		if run != nil {
			got = run.Status
		}
		if err != nil || got != row.want {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	if _, err := ParseStreamRun(with("sq", "many")); !errors.Is(err, runlane.ErrInvariantViolation) {
		t.Errorf("broken run: %v", err)
	}
	image = with("pl", "payload", "ou", "output")
	DropStreamBytes(image)
	if image["pl"] != nil || image["ou"] != nil || image["tk"] == nil {
		t.Errorf("left are %v", image)
	}
}
