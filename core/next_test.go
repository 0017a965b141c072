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

// However many runs of a paused task are due before it, a run of another task is found.
func TestExecuteNext_RunsOfAPausedTask_HideNoOthers(t *testing.T) {
	t.Parallel()
	handle := func(context.Context, *runlane.Attempt, int) error { return nil }
	held, free := runlane.NewTask[int]("held", nil), runlane.NewTask[int]("free", nil)
	rt := openQuiet(t, memlane.New(), core.Options{}, held.Handle(handle), free.Handle(handle))
	if _, err := rt.Tasks().Pause(t.Context(), held.ID(), nil); err != nil {
		t.Fatal(err)
	}
	for range 250 {
		trigger(t, rt, held.With(1))
	}
	other := trigger(t, rt, free.With(1))
	done, err := rt.ExecuteNext(t.Context(), nil)
	if err != nil || done.Run == nil || done.Run.ID != other.ID {
		t.Fatalf("%+v, %v", done, err)
	}
}
