package runlane_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
)

func TestError_IsItsCodeItsConflictAndItsCause(t *testing.T) {
	t.Parallel()
	conflict := runlane.NewConflict(runlane.ConflictSingletonKey, "held")
	conflict.Cause = fmt.Errorf("driver: %w", io.ErrUnexpectedEOF)
	wrapped := fmt.Errorf("trigger: %w", conflict)
	for _, target := range []error{runlane.ErrStorageConflict, runlane.ConflictSingletonKey, io.ErrUnexpectedEOF, conflict} {
		if !errors.Is(wrapped, target) {
			t.Errorf("is not %v", target)
		}
	}
	for _, other := range []error{
		runlane.ErrRunNotFound, runlane.ConflictIdempotencyKey, io.EOF, runlane.ConflictKind(""), runlane.ErrorCode("singleton_key"),
		runlane.ConflictKind("storage_conflict"), &runlane.Error{Code: runlane.ErrStorageConflict},
	} {
		if errors.Is(wrapped, other) {
			t.Errorf("is %#v", other)
		}
	}
	if errors.Is(&runlane.Error{Code: runlane.ErrInternal}, runlane.ConflictKind("")) {
		t.Error("an error without a conflict is the empty conflict")
	}
	got, ok := errors.AsType[*runlane.Error](wrapped)
	if !ok || got != conflict || !got.Retryable {
		t.Errorf("as: got %v", got)
	}
}

func TestError_SaysEverythingOnOneLine(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]*runlane.Error{
		"run_not_found: no run":                        {Code: runlane.ErrRunNotFound, Message: "no run"},
		"run_not_found: no run (look again)":           {Code: runlane.ErrRunNotFound, Message: "no run", Hint: "look again", Cause: io.EOF},
		"storage_conflict/event_sequence: moved on":    runlane.NewConflict(runlane.ConflictEventSequence, "moved on"),
		"storage_conflict/lease_ownership: lost (end)": {Code: runlane.ErrStorageConflict, Conflict: runlane.ConflictLeaseOwnership, Message: "lost", Hint: "end"},
	} {
		if got := e.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestCodeOf_FindsTheOutermost(t *testing.T) {
	t.Parallel()
	inner := &runlane.Error{Code: runlane.ErrValidationFailed}
	outer := &runlane.Error{Code: runlane.ErrConfigurationInvalid, Cause: inner}
	for name, c := range map[string]struct {
		err  error
		want runlane.ErrorCode
	}{
		"nil":        {nil, ""},
		"foreign":    {io.EOF, ""},
		"plain":      {inner, runlane.ErrValidationFailed},
		"nested":     {fmt.Errorf("x: %w", outer), runlane.ErrConfigurationInvalid},
		"joined":     {errors.Join(io.EOF, inner), runlane.ErrValidationFailed},
		"bare code":  {fmt.Errorf("x: %w", runlane.ErrRunNotFound), runlane.ErrRunNotFound},
		"a conflict": {runlane.ConflictEventSequence, ""},
	} {
		if got := runlane.CodeOf(c.err); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestHandlerErrors_KeepWhatTheyWrap(t *testing.T) {
	t.Parallel()
	if err := runlane.Permanent(nil); err != nil {
		t.Errorf("Permanent(nil) is %v", err)
	}
	if err := runlane.RetryAfter(time.Second, nil); err != nil {
		t.Errorf("RetryAfter(d, nil) is %v", err)
	}
	permanent := fmt.Errorf("send: %w", runlane.Permanent(io.EOF))
	if _, ok := errors.AsType[*runlane.PermanentError](permanent); !ok || !errors.Is(permanent, io.EOF) || permanent.Error() != "send: EOF" {
		t.Errorf("got %v", permanent)
	}
	later := fmt.Errorf("send: %w", runlane.RetryAfter(time.Minute, io.EOF))
	if got, ok := errors.AsType[*runlane.RetryAfterError](later); !ok || got.Delay != time.Minute || !errors.Is(later, io.EOF) || later.Error() != "send: EOF" {
		t.Errorf("got %v", later)
	}
	release := fmt.Errorf("wait: %w", runlane.Release(time.Minute, "not ready"))
	got, ok := errors.AsType[*runlane.ReleaseError](release)
	if !ok {
		t.Fatalf("got %v", release)
	}
	if diff := cmp.Diff(&runlane.ReleaseError{Delay: time.Minute, Reason: "not ready"}, got); diff != "" {
		t.Error(diff)
	}
	if release.Error() != "wait: release for 1m0s: not ready" {
		t.Errorf("got %q", release)
	}
	// Permanent and RetryAfter are told apart however they are nested: the reader asks for Permanent first.
	both := runlane.RetryAfter(time.Second, runlane.Permanent(io.EOF))
	if _, ok := errors.AsType[*runlane.PermanentError](both); !ok {
		t.Error("a permanent error is hidden by RetryAfter")
	}
}

func TestErrors_NilPointers_CanBeLookedAt(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		(*runlane.Error)(nil), (*runlane.ReleaseError)(nil), (*runlane.PermanentError)(nil), (*runlane.RetryAfterError)(nil),
		&runlane.PermanentError{}, &runlane.RetryAfterError{}, runlane.Permanent((*runlane.Error)(nil)),
	} {
		if err.Error() == "" || errors.Is(err, runlane.ErrRunNotFound) || runlane.CodeOf(err) != "" {
			t.Errorf("%T: %q, code %q", err, err.Error(), runlane.CodeOf(err))
		}
	}
}

func TestPrepare_PanicOfTheApplication_FailsTheCall(t *testing.T) {
	t.Parallel()
	task := runlane.NewTask("t", &runlane.TaskOptions[map[string]int]{IdempotencyKey: func(m map[string]int) string {
		m["x"] = 1 // of a nil map
		return ""
	}})
	_, err := task.With(nil).Prepare()
	e, ok := errors.AsType[*runlane.Error](err)
	if !ok || e.Code != runlane.ErrValidationFailed || !strings.Contains(e.Message, "nil map") || !strings.Contains(e.Meta["stack"], "TestPrepare") {
		t.Errorf("%+v", err)
	}
}
