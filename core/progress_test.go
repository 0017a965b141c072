package core_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
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

func TestProgress_OneASecondAndTheLastOneAlways(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		storage, task := &notedStorage{Storage: memlane.NewStorage(nil)}, runlane.NewTask[payload]("noted", nil)
		rt := openOn(t, storage, memlane.NewTransport(nil), task.Handle(func(ctx context.Context, a *runlane.Attempt, _ payload) error {
			for _, none := range []string{strings.Repeat("a", runlane.MaxReasonBytes+1), "\xff"} {
				if err := a.Progress(ctx, none); runlane.CodeOf(err) != runlane.ErrValidationFailed || len(storage.notes) > 0 {
					t.Errorf("what is no note: %v, %q", err, storage.notes)
				}
			}
			for i := range 25 { // the last ones before a second is over are 7, 15 and 23
				if err := a.Progress(ctx, fmt.Sprint(i)); err != nil {
					return err
				}
				time.Sleep(130 * time.Millisecond)
			}
			return nil
		}))
		result, err := rt.RunNow(t.Context(), task.With(payload{}), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(storage.notes, " "); got != "0 7 15 23 24" {
			t.Errorf("written: %s", got)
		}
		p, err := rt.Runs().Progress(t.Context(), result.Run.ID)
		if err != nil || p.Note != "24" || p.Attempt != 1 {
			t.Errorf("last note is %+v, %v", p, err)
		}
	})
}
