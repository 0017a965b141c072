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
	first := trigger(t, coded, codedTask.With(1))
	executed := 0
	plain := openQuiet(t, l, core.Options{}, codedTask.Handle(func(context.Context, *runlane.Attempt, int) error {
		executed++
		return nil
	}))
	second := trigger(t, plain, codedTask.With(2))
	done, err := plain.ExecuteNext(t.Context(), nil)
	if err != nil || done.Run == nil || done.Run.ID != second.ID || executed != 1 {
		t.Fatalf("%+v, %v, %d executed", done, err, executed)
	}
	_, err = plain.ExecuteNext(t.Context(), nil)
	if e, _ := errors.AsType[*runlane.Error](err); !errors.Is(err, runlane.ErrPayloadUnreadable) || e.RunID != first.ID {
		t.Errorf("with nothing else due: %v", err)
	}
}
