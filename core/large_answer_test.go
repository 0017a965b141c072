package core_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// narrow keeps no record of more than 1,000 bytes.
type narrow struct{ lane.Storage }

func (s narrow) KeepRecord(ctx context.Context, c *lane.KeepCommand) (*lane.StepRecord, error) {
	if len(c.Record.Result) > 1000 {
		return nil, c.TooLarge("", len(c.Record.Result), 1000)
	}
	return s.Storage.KeepRecord(ctx, c)
}

// Bodies that fit beside the run one by one, and into no record together, answer a wait in every attempt: for all of several
// signals, for one, and for those that came within the time limit.
func TestWait_BodiesTooLargeForARecord_AreReadBesideTheRun(t *testing.T) {
	t.Parallel()
	first, second, never := runlane.NewSignal[string]("first"), runlane.NewSignal[string]("second"), runlane.NewSignal[string]("never")
	a, b := strings.Repeat("a", 700), strings.Repeat("b", 1500)
	for name, c := range map[string]struct {
		cases func(x, y **string) []runlane.Case
		limit bool
		want  [2]string
	}{
		"all":         {func(x, y **string) []runlane.Case { return []runlane.Case{second.Into(y), first.Into(x)} }, false, [2]string{a, b}},
		"any":         {func(_, y **string) []runlane.Case { return []runlane.Case{second.Into(y)} }, false, [2]string{"", b}},
		"one is late": {func(x, y **string) []runlane.Case { return []runlane.Case{second.Into(y), never.Into(x)} }, true, [2]string{"", b}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := memlane.New()
				l.Storage = narrow{l.Storage}
				var answers [][2]string
				task := runlane.NewTask("task", &runlane.TaskOptions[int]{Retry: runlane.Retry{MaxAttempts: 3, Backoff: runlane.Fixed(time.Second)}})
				rt := openStranger(t, l, task.Handle(func(ctx context.Context, at *runlane.Attempt, _ int) error {
					var x, y *string
					options := &runlane.WaitOptions{Name: "answer"}
					if c.limit {
						options.Timeout = runlane.NoWait
					}
					err := runlane.WaitAll(ctx, at, options, c.cases(&x, &y)...)
					if c.limit && errors.Is(err, runlane.ErrWaitTimedOut) {
						err = nil
					}
					if err != nil {
						return err
					}
					var got [2]string
					for i, body := range []*string{x, y} {
						if body != nil {
							got[i] = *body
						}
					}
					if answers = append(answers, got); len(answers) < 2 {
						return errors.New("once more")
					}
					return nil
				}))
				id := rt.trigger(task.With(1), &runlane.TriggerOptions{RunID: "run_a"})
				rt.signal(id, first.With(a))
				rt.signal(id, second.With(b))
				rt.drain()
				time.Sleep(time.Minute)
				rt.drain()
				run, err := rt.Runs().Get(t.Context(), id)
				if err != nil || run.Status != runlane.StatusSucceeded {
					t.Fatalf("%s: %+v, %v", run.Status, run.Failure, err)
				}
				if len(answers) != 2 || answers[0] != c.want || answers[1] != c.want {
					t.Errorf("answers have %d entries: %v", len(answers), answers)
				}
			})
		})
	}
}
