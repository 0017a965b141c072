package core_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

var (
	moveAsks  = runlane.NewTask[string]("move.asks", nil)
	moveFirst = runlane.NewSignal[string]("first")
	moveThen  = runlane.NewSignal[string]("then").WithSchema(runlane.SchemaOf[string]())
)

// newAsking is a program whose runs wait for two signals, one after the other.
func newAsking(t *testing.T) *mover {
	t.Helper()
	rt := openQuiet(t, memlane.New(), core.Options{
		Handlers: []runlane.Handler{moveAsks.Handle(func(ctx context.Context, a *runlane.Attempt, _ string) error {
			first, err := moveFirst.Wait(ctx, a, nil)
			if err != nil {
				return err
			}
			then, err := moveThen.Wait(ctx, a, nil)
			if err != nil {
				return err
			}
			return a.SetOutput(first + " and " + then)
		})},
	})
	return &mover{Runtime: rt, t: t}
}

func (m *mover) signal(id runlane.RunID, value runlane.SignalValue) {
	m.t.Helper()
	if err := m.Signal(m.t.Context(), id, value, nil); err != nil {
		m.t.Fatal(err)
	}
}

// A run that waits moves with what it was answered, and goes on waiting where it is imported.
func TestMove_RunsThatWaitForSignals_GoOn(t *testing.T) {
	t.Parallel()
	from := newAsking(t)
	id := from.trigger(moveAsks.With(""), nil)
	from.drain()
	from.signal(id, moveFirst.With("a"))
	from.drain()
	file := from.export()
	to := newAsking(t)
	if _, err := to.Import(t.Context(), bytes.NewReader(file)); err != nil {
		t.Fatal(err)
	}
	run, err := to.Runs().Get(t.Context(), id)
	if err != nil || !run.Waiting.Has(runlane.WaitingSignal) || strings.Join(run.Waiting.Names, " ") != "then" {
		t.Fatalf("it waits for %+v, %v", run.Waiting, err)
	}
	if want, got := from.histories()[id], to.histories()[id]; want != got {
		t.Errorf("another history: %s, want %s", got, want)
	}
	if err := to.Signal(t.Context(), id, runlane.NewRawSignal("then", []byte("1")), nil); !errors.Is(err, runlane.ErrValidationFailed) {
		t.Errorf("what does not fit the schema of its wait: %v", err)
	}
	to.signal(id, moveThen.With("b"))
	to.drain()
	if run, err = to.Runs().Get(t.Context(), id); err != nil || string(run.Output) != `"a and b"` {
		t.Errorf("%s: %s, %v", run.Status, run.Output, err)
	}
}

// A record that only names a signal, as that was too large for it, is no place of the signal: the export refuses the run.
func TestExport_SignalsThatARecordOnlyNames_AreRefused(t *testing.T) {
	t.Parallel()
	then := runlane.NewSignal[string]("then")
	l := memlane.New()
	l.Storage = narrow{l.Storage}
	from := openStranger(t, l, moveAsks.Handle(func(ctx context.Context, a *runlane.Attempt, _ string) error {
		if _, err := moveFirst.Wait(ctx, a, nil); err != nil {
			return err
		}
		_, err := then.Wait(ctx, a, nil)
		return err
	}))
	id := from.trigger(moveAsks.With(""), nil)
	from.signal(id, moveFirst.With(strings.Repeat("a", 1500)))
	from.drain()
	if run, err := from.Runs().Get(t.Context(), id); err != nil || !run.Waiting.Has(runlane.WaitingSignal) {
		t.Fatal(run, err)
	}
	if _, err := from.Export(t.Context(), io.Discard, nil); !errors.Is(err, runlane.ErrStorageConflict) {
		t.Errorf("error is %v", err)
	}
	from.signal(id, then.With("b"))
	from.drain()
	if _, err := from.Export(t.Context(), io.Discard, nil); err != nil {
		t.Errorf("a run that ended has nothing to read: %v", err)
	}
}

// A signal that no wait has read would be lost: the export says so, and writes no whole file.
func TestExport_SignalsThatWereNotRead_AreRefused(t *testing.T) {
	t.Parallel()
	from := newAsking(t)
	id := from.trigger(moveAsks.With(""), nil)
	from.drain()
	from.signal(id, moveThen.With("early"))
	_, err := from.Export(t.Context(), io.Discard, nil)
	if !errors.Is(err, runlane.ErrStorageConflict) || !strings.Contains(err.Error(), "1 signals that it has not read") {
		t.Errorf("error is %v", err)
	}
	if _, err := from.Export(t.Context(), io.Discard, &core.ExportOptions{LeaveSignals: true}); err != nil {
		t.Errorf("they are to be left behind: %v", err)
	}
	from.signal(id, moveFirst.With("a"))
	from.drain()
	if _, err := from.Export(t.Context(), io.Discard, nil); err != nil {
		t.Errorf("a run that ended has nothing to read: %v", err)
	}
}
