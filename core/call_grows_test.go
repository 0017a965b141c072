package core_test

import (
	"context"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

type (
	pageBefore struct{ ID int }
	pageGrown  struct {
		ID   int
		Lang string
	}
	pageWithOption struct {
		ID   int
		Lang string `json:",omitempty"`
	}
)

// A deployment changes what a run calls while it waits for it: the failure says what differs and, for a payload's type that has got a
// field, what to do. With that done the run goes on.
func TestCalls_ChangedWhileTheCallerWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		now  func(ctx context.Context, a *runlane.Attempt) error
		want string // of the failure; "" for none
	}{
		"a field": {func(ctx context.Context, a *runlane.Attempt) error {
			_, err := runlane.NewFunc[pageGrown, int]("render", nil).Call(ctx, a, pageGrown{ID: 1}, nil)
			return err
		}, "has other payloads than in an earlier attempt, as when their type has got a field without omitempty"},
		"a field with omitempty": {func(ctx context.Context, a *runlane.Attempt) error {
			_, err := runlane.NewFunc[pageWithOption, int]("render", nil).Call(ctx, a, pageWithOption{ID: 1}, nil)
			return err
		}, ""},
		"more of them": {func(ctx context.Context, a *runlane.Attempt) error {
			pages := []pageBefore{{1}, {2}}
			_, err := runlane.CallAll(ctx, a, runlane.NewFunc[pageBefore, int]("render", nil), pages, nil)
			return err
		}, "has 2 runs, and had 1"},
		"another task": {func(ctx context.Context, a *runlane.Attempt) error {
			options := &runlane.CallOptions{Name: "render"}
			_, err := runlane.NewFunc[pageBefore, int]("draw", nil).Call(ctx, a, pageBefore{1}, options)
			return err
		}, `is of task "draw", and was of "render"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := memlane.New()
			render := runlane.NewFunc[pageBefore, int]("render", nil)
			book := runlane.NewTask[int]("book", nil)
			old := &retryWorld{Runtime: openQuiet(t, l, core.Options{},
				book.Handle(func(ctx context.Context, a *runlane.Attempt, _ int) error {
					_, err := render.Call(ctx, a, pageBefore{1}, nil)
					return err
				}))}
			triggerWith(t, old, book.With(1), &runlane.TriggerOptions{RunID: "run_p"})
			old.drain(t)
			now := &retryWorld{Runtime: openQuiet(t, l, core.Options{},
				book.Handle(func(ctx context.Context, a *runlane.Attempt, _ int) error { return c.now(ctx, a) }),
				render.Handle(func(context.Context, *runlane.Attempt, pageBefore) (int, error) { return 1, nil }))}
			now.drain(t)
			run, err := now.Runs().Get(t.Context(), "run_p")
			switch {
			case err != nil:
				t.Fatal(err)
			case c.want == "" && run.Status != runlane.StatusSucceeded:
				t.Errorf("%s: %+v", run.Status, run.Failure)
			case c.want != "" && (run.Failure.Code != runlane.ErrValidationFailed || !strings.Contains(run.Failure.Message, c.want)):
				t.Errorf("%s: %+v, want %q", run.Status, run.Failure, c.want)
			}
		})
	}
}
