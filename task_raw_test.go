package runlane_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
)

// order is a payload whose encoded form has more than its keys need.
type order struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
}

// A program with the task makes the same run from an encoded payload as from the payload itself.
func TestNewRawCall_ComputesTheKeysThatTheTaskComputes(t *testing.T) {
	t.Parallel()
	ship := runlane.NewTask("orders.ship", &runlane.TaskOptions[order]{
		ConcurrencyKey: func(o order) string { return o.Tenant }, IdempotencyKey: func(o order) string { return o.ID },
		SingletonKey: func(o order) string { return o.Tenant + "/" + o.ID }, IdempotencyTTL: time.Hour,
	})
	payload := order{ID: "o_1", Tenant: "acme"}
	want, err := ship.With(payload).Prepare()
	if err != nil {
		t.Fatal(err)
	}
	got, err := runlane.NewRawCall(ship.Definition(), []byte(`{"id":"o_1","tenant":"acme"}`)).Prepare()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-task +raw call)\n%s", diff)
	}
	if want.IdempotencyKey != "o_1" || want.SingletonKey != "acme/o_1" || want.ConcurrencyKey != "acme" || want.IdempotencyTTL != time.Hour {
		t.Errorf("the task itself prepares %+v", want)
	}
	if keys := ship.Definition().Keys; keys != (runlane.TaskKeys{Concurrency: true, Idempotency: true, Singleton: true}) || !keys.Any() {
		t.Errorf("the definition tells of %+v", keys)
	}
	if _, err := runlane.NewRawCall(ship.Definition(), []byte(`{"id":7}`)).Prepare(); !errors.Is(err, runlane.ErrValidationFailed) {
		t.Errorf("a payload that does not decode: %v", err)
	}
	if got, err = runlane.NewRawCall(ship.Definition(), []byte(`{"id": "\u0000"}`)).Prepare(); !errors.Is(err, runlane.ErrValidationFailed) {
		t.Errorf("a key that cannot be one: %+v, %v", got, err)
	}
}

func TestNewRawCall_WithoutKeyFunctions_ReadsNoPayload(t *testing.T) {
	t.Parallel()
	plain := runlane.NewTask("orders.count", &runlane.TaskOptions[order]{IdempotencyTTL: runlane.WhileActive})
	if plain.Definition().Keys.Any() {
		t.Errorf("the definition tells of %+v", plain.Definition().Keys)
	}
	got, err := runlane.NewRawCall(plain.Definition(), []byte(`{"id": 7}`)).Prepare()
	want := runlane.Prepared{Payload: json.RawMessage(`{"id": 7}`), IdempotencyTTL: runlane.WhileActive}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	byHand := &runlane.Definition{ID: "by.hand", Queue: runlane.DefaultQueue}
	if got, err = runlane.NewRawCall(byHand, []byte(`1`)).Prepare(); err != nil || got.IdempotencyTTL != runlane.DefaultIdempotencyTTL {
		t.Errorf("a definition made by hand prepares %+v, %v", got, err)
	}
}
