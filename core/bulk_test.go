package core

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
)

func TestBulkEach_CountsAndKeepsTheFirstHundredErrors(t *testing.T) {
	t.Parallel()
	var ids []runlane.RunID
	for i := range 300 {
		ids = append(ids, runlane.RunID(fmt.Sprintf("run_%03d", i)))
	}
	broken := errors.New("broken")
	total := &BulkResult{}
	for range 2 {
		total.add(bulkEach(t.Context(), ids, func(_ context.Context, id runlane.RunID) (bool, error) {
			switch id[len(id)-1] {
			case '0':
				return true, nil
			case '1':
				return false, nil // there was nothing left to do
			case '2':
				return false, &runlane.Error{Code: runlane.ErrRunNotFound, RunID: id}
			case '3':
				return false, &runlane.Error{Code: runlane.ErrValidationFailed, RunID: id, Cause: errMovedOn}
			default:
				return false, broken
			}
		}))
	}
	if total.Changed != 60 || total.Skipped != 180 || len(total.Failed) != maxFailed {
		t.Errorf("%d changed, %d skipped, %d failures kept", total.Changed, total.Skipped, len(total.Failed))
	}
	for id, err := range total.Failed {
		if !errors.Is(err, broken) {
			t.Errorf("%s failed with %v", id, err)
		}
	}
}

func TestBulkEach_StopsWithItsCaller(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	ids := make([]runlane.RunID, 1000)
	result := bulkEach(ctx, ids, func(ctx context.Context, _ runlane.RunID) (bool, error) {
		stop()
		return false, ctx.Err()
	})
	if len(result.Failed) != 0 || result.Changed != 0 || result.Skipped != 0 {
		t.Errorf("what the caller stopped counts as %+v", result)
	}
}

func TestCursor_BelongsToItsRequest(t *testing.T) {
	t.Parallel()
	cursor := sealCursor("this request", "here")
	if at, err := openCursor(cursor, "this request", "After"); err != nil || at != "here" {
		t.Errorf("got %q, %v", at, err)
	}
	for name, c := range map[string]struct {
		cursor runlane.Cursor
		scope  string
	}{
		"another request": {cursor, "that request"},
		"cut off":         {cursor[:len(cursor)-3], "this request"},
		"altered":         {"A" + cursor[1:], "this request"},
		"made up":         {"page 2", "this request"},
	} {
		_, err := openCursor(c.cursor, c.scope, "After")
		if e, ok := errors.AsType[*runlane.Error](err); !ok || e.Code != runlane.ErrValidationFailed || e.Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRepeatID_DependsOnSourceKindAndEnvironment(t *testing.T) {
	t.Parallel()
	seen := map[runlane.RunID]bool{}
	source := func(e runlane.Environment, id runlane.RunID, created int64) *runlane.Run {
		return &runlane.Run{Environment: e, ID: id, CreatedAt: time.UnixMilli(created)}
	}
	for _, environment := range []runlane.Environment{"default", "staging"} {
		for _, kind := range []runlane.SourceType{runlane.SourceRerun, runlane.SourceManualRetry} {
			for _, of := range []*runlane.Run{
				source(environment, "run_1", 1), source(environment, "run_1", 2), source(environment, "run_2", 1),
			} {
				id := repeatID(of, kind)
				if seen[id] || id.Validate() != nil || id != repeatID(of, kind) {
					t.Errorf("%s %s %s is %s", environment, kind, of.ID, id)
				}
				seen[id] = true
			}
		}
	}
	kind := runlane.SourceRerun
	if repeatID(source("", "run_1", 1), kind) != repeatID(source(runlane.DefaultEnvironment, "run_1", 1), kind) {
		t.Error("the default environment has two names")
	}
}

func TestRepeatMeta_HasTheReasonOfThisRepetition(t *testing.T) {
	t.Parallel()
	source := map[string]string{"a": "b", metaReason: "the one before"}
	with, without := change{reason: "now"}.repeatMeta(source), change{}.repeatMeta(source)
	if with["a"] != "b" || with[metaReason] != "now" || len(with) != 2 || without["a"] != "b" || len(without) != 1 {
		t.Errorf("with a reason %v, without %v", with, without)
	}
	if source[metaReason] != "the one before" {
		t.Error("the source's meta was changed")
	}
	if meta := (change{reason: "now"}).repeatMeta(nil); len(meta) != 1 || (change{}).repeatMeta(nil) != nil {
		t.Errorf("of a run without meta: %v", meta)
	}
}
