package runlane_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/sealed"
)

// An operator without the keys sees everything of a run but its payload and its output.
func ExampleRun_PayloadError() {
	ctx, storage := context.Background(), memlane.NewStorage(nil)
	task := runlane.NewTask[string]("letter.send", nil)
	key, err := sealed.NewKey("2026-11")
	if err != nil {
		panic(err)
	}
	codec, err := sealed.New([]sealed.Key{key}, nil)
	if err != nil {
		panic(err)
	}
	open := func(codec runlane.Codec) *core.Runtime {
		l, err := lane.New(storage, memlane.NewTransport(nil), nil)
		if err != nil {
			panic(err)
		}
		rt, err := core.Open(ctx, l, &core.Options{Codec: codec})
		if err != nil {
			panic(err)
		}
		return rt
	}
	result, err := open(codec).Trigger(ctx, task.With("Dear Ada"), nil)
	if err != nil {
		panic(err)
	}
	run, err := open(nil).Runs().Get(ctx, result.Run.ID)
	if err != nil {
		panic(err)
	}
	fmt.Println(run.Status, len(run.Payload), run.Sealed.PayloadKey)
	fmt.Println(errors.Is(run.PayloadError(), runlane.ErrPayloadUnreadable), run.OutputError())
	// Output:
	// queued 0 2026-11
	// true <nil>
}
