package sqlitelane_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/sqlitelane"
)

func TestBodyStore_Conformance(t *testing.T) {
	t.Parallel()
	lanetest.RunBodyStore(t, func(t testing.TB) lane.BodyStore {
		l, err := sqlitelane.Open(t.Context(), filepath.Join(t.TempDir(), "state.db"), nil)
		if err != nil {
			t.Fatal(err)
		}
		return l.Bodies.Store
	})
}

// A copy has the bodies beside the file, and a restored file gets them back.
func TestBodyStore_GoesWithCopiesOfTheFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	open := func(name string) (*core.Runtime, *sqlitelane.Storage) {
		t.Helper()
		l, err := sqlitelane.Open(t.Context(), filepath.Join(folder, name), nil)
		if err != nil {
			t.Fatal(err)
		}
		rt, err := core.Open(t.Context(), l, &core.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		storage, _ := lane.As[*sqlitelane.Storage](l.Storage)
		return rt, storage
	}
	closed := func(rt *core.Runtime) {
		t.Helper()
		if err := rt.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
	task := runlane.NewTask[string]("large", nil)
	rt, storage := open("state.db")
	result, err := rt.Trigger(t.Context(), task.With(strings.Repeat("x", 2<<20)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := storage.CopyTo(t.Context(), filepath.Join(folder, "copy.db")); err != nil {
		t.Fatal(err)
	}
	closed(rt)
	rt, storage = open("copy.db")
	if _, err := storage.RestoreTo(t.Context(), filepath.Join(folder, "restored.db")); err != nil {
		t.Fatal(err)
	}
	closed(rt)
	for _, name := range []string{"copy.db", "restored.db"} {
		rt, _ := open(name)
		run, err := rt.Runs().Get(t.Context(), result.Run.ID)
		if err != nil || run.PayloadError() != nil || len(run.Payload) != 2<<20+2 {
			t.Errorf("%s: %v, %v", name, run.PayloadError(), err)
		}
		closed(rt)
	}
}
