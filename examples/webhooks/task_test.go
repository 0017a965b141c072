package webhooks

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/examples/webhooks/data"
)

func TestDelivery_PayloadSurvivesTheRunByteForByte(t *testing.T) {
	t.Parallel()
	for name, body := range bodies {
		want := Delivery{ID: "1", Event: "push", Endpoint: "main", Payload: body}
		stored, err := Deliver.With(want).Prepare()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := Deliver.Decode(stored.Payload)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-given +decoded)\n%s", name, diff)
		}
		if stored.IdempotencyKey != "1" {
			t.Errorf("%s: idempotency key is %q", name, stored.IdempotencyKey)
		}
	}
}

func TestDelivery_BrokenUTF8_IsRefusedInsteadOfChanged(t *testing.T) {
	t.Parallel()
	_, err := Deliver.With(Delivery{ID: "1", Event: "push", Payload: "\"\xff\""}).Prepare()
	if !errors.Is(err, runlane.ErrValidationFailed) {
		t.Errorf("got %v", err)
	}
}

func TestDeliver_DefinitionIsSound(t *testing.T) {
	t.Parallel()
	if err := Deliver.Definition().Err(); err != nil {
		t.Error(err)
	}
	if d := Deliver.Definition(); d.Retry.Attempts() != MaxAttempts || d.Timeout <= RequestTimeout || d.Queue != Queue {
		t.Errorf("got %+v", d)
	}
}

func TestGitHubWebhooks_AllLinesAreDeliveries(t *testing.T) {
	t.Parallel()
	input, err := data.GitHubWebhooks()
	if err != nil {
		t.Fatal(err)
	}
	lines, events := 0, map[string]bool{}
	for line := range ReadDeliveries(input) {
		if line.Err != nil {
			t.Error(line.Err)
		}
		if !json.Valid([]byte(line.Delivery.Payload)) {
			t.Errorf("line %d has a payload that is not JSON", line.Number)
		}
		lines, events[line.Delivery.Event] = lines+1, true
	}
	if lines != 329 || len(events) != 58 {
		t.Errorf("%d lines with %d events", lines, len(events))
	}
}
