package runlane_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/runlane/runlane-go"
)

func ExampleSchemaOf() {
	type Decision struct {
		Approved bool   `json:"approved"`
		Note     string `json:"note,omitempty"`
	}
	fmt.Println(string(runlane.SchemaOf[Decision]()))
	// Output: {"type":"object","properties":{"approved":{"type":"boolean"},"note":{"type":"string"}},"required":["approved"]}
}

// What does not fit is refused to its sender, and the run waits on.
func ExampleSignal_WithSchema() {
	ctx := context.Background()
	approved := runlane.NewSignal[bool]("approved").WithSchema(runlane.SchemaOf[bool]())
	rt, id := remembering(func(ctx context.Context, a *runlane.Attempt) error {
		yes, err := approved.Wait(ctx, a, nil)
		fmt.Println(yes, runlane.Suspended(err))
		return err
	})
	wrong := rt.Signal(ctx, id, runlane.NewRawSignal("approved", json.RawMessage(`{"approved":true}`)), nil)
	fmt.Println(runlane.CodeOf(wrong))
	fmt.Println(rt.Signal(ctx, id, approved.With(true), nil))
	_, _ = rt.ExecuteNext(ctx, nil)
	_ = rt.Close(ctx)
	// Output:
	// false true
	// validation_failed
	// <nil>
	// true false
}
