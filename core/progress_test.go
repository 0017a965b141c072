package core_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// notedStorage counts what is written of progress.
type notedStorage struct {
	*memlane.Storage
	notes []string
}

func (s *notedStorage) PutProgress(ctx context.Context, key lane.RunKey, token string, p runlane.Progress) error {
	s.notes = append(s.notes, p.Note)
	return s.Storage.PutProgress(ctx, key, token, p)
}

// noted executes one attempt of a handler and returns the runtime, the run and what was written.
func noted(t *testing.T, handler func(ctx context.Context, a *runlane.Attempt) error) (*core.Runtime, *runlane.Run, []string) {
	t.Helper()
	storage := &notedStorage{Storage: memlane.NewStorage(nil)}
	l := newLane(t, storage, memlane.NewTransport(nil))
	task := runlane.NewTask[struct{}]("noted", nil)
	rt := openQuiet(t, l, core.Options{
		Handlers: []runlane.Handler{
			task.Handle(func(ctx context.Context, a *runlane.Attempt, _ struct{}) error { return handler(ctx, a) }),
		},
	})
	result, err := rt.RunNow(t.Context(), task.With(struct{}{}), nil)
	if err != nil {
		t.Fatal(err)
	}
	return rt, result.Run, storage.notes
}

func TestProgress_OneASecondAndTheLastOneAlways(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt, run, notes := noted(t, func(ctx context.Context, a *runlane.Attempt) error {
			for i := range 25 { // the last ones before a second is over are 7, 15 and 23
				if err := a.Progress(ctx, fmt.Sprint(i)); err != nil {
					return err
				}
				time.Sleep(130 * time.Millisecond)
			}
			return nil
		})
		if got := strings.Join(notes, " "); got != "0 7 15 23 24" {
			t.Errorf("written: %s", got)
		}
		p, err := rt.Runs().Progress(t.Context(), run.ID)
		if err != nil || p.Note != "24" || p.Attempt != 1 {
			t.Errorf("last note is %+v, %v", p, err)
		}
	})
}

func TestProgress_RefusesWhatIsNoNote(t *testing.T) {
	t.Parallel()
	rt, run, notes := noted(t, func(ctx context.Context, a *runlane.Attempt) error {
		for _, note := range []string{strings.Repeat("a", runlane.MaxReasonBytes+1), "\xff"} {
			if err := a.Progress(ctx, note); runlane.CodeOf(err) != runlane.ErrValidationFailed {
				t.Errorf("error is %v", err)
			}
		}
		return nil
	})
	if run.Status != runlane.StatusSucceeded || len(notes) != 0 {
		t.Errorf("run is %s, %d notes", run.Status, len(notes))
	}
	if p, err := rt.Runs().Progress(t.Context(), run.ID); p != nil || err != nil {
		t.Errorf("%+v, %v", p, err)
	}
}
