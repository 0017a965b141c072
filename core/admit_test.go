package core_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// crowded takes some triggers, and no further ones.
type crowded struct {
	lane.Storage

	takes atomic.Int64
}

func (s *crowded) Unwrap() lane.Storage { return s.Storage }

func (s *crowded) AdmitRuns(n int) error {
	if s.takes.Add(-int64(n)) < 0 {
		return &runlane.Error{Code: runlane.ErrOverloaded, Message: "full", Retryable: true, RetryAfter: 3 * time.Second}
	}
	return nil
}

// What comes from outside is refused, before anything is written. What a run that executes triggers is made.
func TestAdmit_OverloadedStorage_RefusesTriggersFromOutside(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		storage := &crowded{Storage: memlane.NewStorage(nil)}
		storage.takes.Store(1)
		child := runlane.NewTask[payload]("child", nil)
		parent := runlane.NewTask[payload]("parent", nil)
		rt := openQuiet(t, newLane(t, storage, memlane.NewTransport(nil)), core.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))},
			child.Handle(func(context.Context, *runlane.Attempt, payload) error { return nil }),
			parent.Handle(func(ctx context.Context, a *runlane.Attempt, _ payload) error {
				_, err := a.Trigger(ctx, child.With(payload{}), nil)
				return err
			}))
		trigger(t, rt, parent.With(payload{}))
		for range 2 {
			_, err := rt.Trigger(t.Context(), child.With(payload{}), nil)
			if e, ok := errors.AsType[*runlane.Error](err); !ok || e.Code != runlane.ErrOverloaded || e.RetryAfter != 3*time.Second {
				t.Errorf("got %v", err)
			}
		}
		flow := runlane.NewFlow("f")
		flow.Add("a", child.With(payload{}), nil)
		if _, err := rt.StartFlow(t.Context(), flow, nil); !errors.Is(err, runlane.ErrOverloaded) {
			t.Errorf("got %v", err)
		}
		results, err := rt.TriggerBatch(t.Context(), []core.BatchItem{{Call: child.With(payload{})}, {Call: child.With(payload{})}})
		if !errors.Is(err, runlane.ErrOverloaded) || !errors.Is(results[0].Err, runlane.ErrOverloaded) || !errors.Is(results[1].Err, runlane.ErrOverloaded) {
			t.Errorf("got %v, %v", results, err)
		}
		for range 2 {
			if done, err := rt.ExecuteNext(t.Context(), nil); err != nil || done.Run.Status != runlane.StatusSucceeded {
				t.Fatal(done, err)
			}
		}
		if page, err := rt.Runs().List(t.Context(), nil); err != nil || len(page.Items) != 2 {
			t.Errorf("%d runs, %v", len(page.Items), err)
		}
		if lines := strings.Count(log.String(), "triggers are refused"); lines != 1 {
			t.Errorf("%d lines in the log:\n%s", lines, &log)
		}
	})
}
