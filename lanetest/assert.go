package lanetest

import (
	"cmp"
	"errors"
	"slices"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
	"github.com/runlane/runlane-go/lane"
)

// must ends the case on an error.
func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatalf("unexpected error: %v, cause: %v", err, errors.Unwrap(err))
		}
		return v
	}
}

// eventually runs check until it returns "" if the harness allows late reads, otherwise once.
func (b *bundle) eventually(check func() string) {
	b.t.Helper()
	deadline := time.Now().Add(patience.Limit) // an index is three seconds late at times, and then something else
	for {
		problem := check()
		if problem == "" {
			return
		}
		if !b.h.EventuallyConsistent || time.Now().After(deadline) {
			b.t.Fatal(problem)
		}
		select {
		case <-b.t.Context().Done():
			b.t.Fatal(problem)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// wantError demands an error of the code.
func wantError(t testing.TB, err error, code runlane.ErrorCode) {
	t.Helper()
	if got := runlane.CodeOf(err); got != code {
		t.Fatalf("error is %v (code %q), want %q", err, got, code)
	}
}

// wantConflict demands a conflict of the kind, and its run where id is set.
func wantConflict(t testing.TB, err error, kind runlane.ConflictKind, id runlane.RunID) {
	t.Helper()
	e, ok := asError(err)
	if !ok || e.Code != runlane.ErrStorageConflict || e.Conflict != kind {
		t.Fatalf("error is %v, want conflict %q", err, kind)
	}
	if id != "" && e.RunID != id {
		t.Fatalf("conflict %q names run %q, want %q", kind, e.RunID, id)
	}
}

// equal demands that two values are the same. Absent and empty maps and slices are.
func equal[T any](t testing.TB, what string, want, got T) {
	t.Helper()
	if d := difference(want, got); d != "" {
		t.Fatalf("%s (-want +got):\n%s", what, d)
	}
}

func difference[T any](want, got T) string {
	return diff.Diff(want, got, cmpopts.EquateEmpty())
}

// ids of runs, in order.
func refIDs(refs []lane.RunRef) []runlane.RunID {
	ids := make([]runlane.RunID, len(refs))
	for i, r := range refs {
		ids[i] = r.RunID
	}
	return ids
}

func sorted[T cmp.Ordered](items []T) []T { return slices.Sorted(slices.Values(items)) }

func asError(err error) (*runlane.Error, bool) { return errors.AsType[*runlane.Error](err) }

func isConflict(err error, kind runlane.ConflictKind) bool {
	e, ok := asError(err)
	return ok && e.Code == runlane.ErrStorageConflict && e.Conflict == kind
}
