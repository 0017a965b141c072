package core_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// logStorage counts the writes of logs.
type logStorage struct {
	*memlane.Storage

	mu      sync.Mutex
	written []string
	fails   int // writes that fail first
}

func (s *logStorage) KeepRecord(ctx context.Context, c *lane.KeepCommand) (*lane.StepRecord, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails > 0 {
		s.fails--
		return nil, &runlane.Error{Code: runlane.ErrStorageUnavailable}
	}
	s.written = append(s.written, c.Record.Name)
	return s.Storage.KeepRecord(ctx, c)
}

// logs executes one attempt of a handler and returns the kept lines as "message" or "-dropped".
func (s *logStorage) logs(
	t *testing.T, handler func(ctx context.Context, a *runlane.Attempt, rt *core.Runtime) error,
) []string {
	t.Helper()
	s.Storage = memlane.NewStorage(nil)
	task := runlane.NewTask("logs", &runlane.TaskOptions[struct{}]{KeepLogs: true})
	var rt *core.Runtime
	rt = openQuiet(t, newLane(t, s, memlane.NewTransport(nil)), core.Options{}, task.Handle(
		func(ctx context.Context, a *runlane.Attempt, _ struct{}) error { return handler(ctx, a, rt) }))
	result, err := rt.RunNow(t.Context(), task.With(struct{}{}), nil)
	if err != nil {
		t.Fatal(err)
	}
	return linesOf(t, rt, result.Run.ID, nil)
}

func linesOf(t *testing.T, rt *core.Runtime, id runlane.RunID, o *core.LogOptions) (lines []string) {
	t.Helper()
	for line, err := range rt.Runs().Logs(t.Context(), id, o) {
		if err != nil {
			t.Fatal(err)
		}
		var said struct{ Msg string }
		if line.Dropped > 0 {
			said.Msg = fmt.Sprint(-line.Dropped)
		} else if err := json.Unmarshal(line.Line, &said); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, said.Msg)
	}
	return lines
}

func TestLogs_OneWriteForAShortAttemptAndFewForALongOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &logStorage{fails: 2}
		got := s.logs(t, func(_ context.Context, a *runlane.Attempt, _ *core.Runtime) error {
			a.Logger().Debug("below the level")
			a.Logger().Info("one")
			a.Logger().Warn("two")
			return nil
		})
		if strings.Join(got, " ") != "one two" || len(s.written) != 1 {
			t.Errorf("lines %q, written %q", got, s.written)
		}
		s = &logStorage{}
		got = s.logs(t, func(_ context.Context, a *runlane.Attempt, _ *core.Runtime) error {
			for range 900 { // fifteen minutes
				a.Logger().Info("x")
				time.Sleep(time.Second)
			}
			return nil
		})
		if len(got) != 900 || len(s.written) > 130 {
			t.Errorf("%d lines in %d writes", len(got), len(s.written))
		}
	})
}

func TestLogs_KeepTheFirstAndTheLastLines(t *testing.T) {
	t.Parallel()
	s := &logStorage{}
	got := s.logs(t, func(_ context.Context, a *runlane.Attempt, _ *core.Runtime) error {
		a.Logger().Info(strings.Repeat("x", runlane.MaxLogBytes/4))
		for i := range 2000 {
			a.Logger().Info(fmt.Sprintf("%04d", i))
		}
		return nil
	})
	dropped := 0
	for i, line := range got {
		if n, err := fmt.Sscanf(line, "-%d", &dropped); n == 1 && err == nil {
			if before, after := got[i-1], got[i+1]; fmt.Sprintf("%04d", i-1) != before ||
				fmt.Sprintf("%04d", i-1+dropped) != after {
				t.Errorf("%d lines are dropped between %s and %s", dropped, before, after)
			}
		}
	}
	if got[0] != "0000" || got[len(got)-1] != "1999" || len(got)-1+dropped != 2001 || len(s.written) != 2 {
		t.Errorf("%d lines from %s to %s, %d dropped, %q", len(got), got[0], got[len(got)-1], dropped, s.written)
	}
}

func TestLogs_AreFollowedWhileTheAttemptRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, seen := &logStorage{}, make(chan string, 10)
		var following sync.WaitGroup
		s.logs(t, func(_ context.Context, a *runlane.Attempt, rt *core.Runtime) error {
			following.Go(func() {
				for _, line := range linesOf(t, rt, a.Run.ID, &core.LogOptions{Follow: true, Attempt: 1}) {
					seen <- "end " + line
				}
			})
			following.Go(func() {
				for line, err := range rt.Runs().Logs(t.Context(), a.Run.ID, &core.LogOptions{Follow: true}) {
					if err == nil {
						seen <- string(line.Line)
					}
				}
			})
			a.Logger().Info("begins")
			if line := <-seen; !strings.Contains(line, "begins") { // a deadlock if it comes with the outcome
				t.Errorf("followed %s", line)
			}
			a.Logger().Info("ends")
			return errors.New("no")
		})
		following.Wait()
		if close(seen); len(seen) != 3 {
			t.Errorf("%d more lines, want 3", len(seen))
		}
	})
}
