package core_test

import (
	"context"
	"errors"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// A run that this process cannot read holds up none behind it, and is the error once nothing else is due.
func TestExecuteNext_ARunThatCannotBeRead_IsPassedOver(t *testing.T) {
	t.Parallel()
	l := memlane.New()
	coded := openQuiet(t, l, core.Options{Codec: &scriptedCodec{key: "k"}})
	first, err := coded.Trigger(t.Context(), codedTask.With(1), nil)
	if err != nil {
		t.Fatal(err)
	}
	executed := 0
	plain := openQuiet(t, l, core.Options{}, codedTask.Handle(func(context.Context, *runlane.Attempt, int) error {
		executed++
		return nil
	}))
	second, err := plain.Trigger(t.Context(), codedTask.With(2), nil)
	if err != nil {
		t.Fatal(err)
	}
	done, err := plain.ExecuteNext(t.Context(), nil)
	if err != nil || done.Run == nil || done.Run.ID != second.Run.ID || executed != 1 {
		t.Fatalf("%+v, %v, %d executed", done, err, executed)
	}
	_, err = plain.ExecuteNext(t.Context(), nil)
	if e, _ := errors.AsType[*runlane.Error](err); !errors.Is(err, runlane.ErrPayloadUnreadable) || e.RunID != first.Run.ID {
		t.Errorf("with nothing else due: %v", err)
	}
}
