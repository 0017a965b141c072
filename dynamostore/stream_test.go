package dynamostore

import (
	"errors"
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
