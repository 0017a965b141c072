package scenarios

import (
	"context"
	"errors"
	"testing"

	"github.com/runlane/runlane-go"
)

// callItself has a task that calls itself for ever: its runs end, the deepest first, and none is made beyond the bound.
func callItself(t *testing.T, h Harness) {
	var last error
	self := runlane.NewFunc[int, int]("scenario.call-itself", nil)
	s := newScene(t, h, self.Handle(func(ctx context.Context, a *runlane.Attempt, n int) (int, error) {
		got, err := self.Call(ctx, a, n, nil)
		if err != nil && !runlane.Suspended(err) && last == nil {
			last = err
		}
		return got, err
	}))
	runs := []*runlane.Run{s.execute(s.trigger(self.With(1), nil))}
	for runs[0].Status == runlane.StatusReleased && len(runs) <= runlane.MaxCallDepth {
		child := s.children(runs[0].ID, 1)[0]
		if want := len(runs) - 1; child.Source.Depth != want {
			t.Fatalf("called run %d is %d deep, want %d", len(runs), child.Source.Depth, want)
		}
		runs = append([]*runlane.Run{s.execute(child)}, runs...)
	}
	if len(runs) != runlane.MaxCallDepth+1 || !errors.Is(last, runlane.ErrValidationFailed) {
		t.Fatalf("%d runs were called, and the last one got %v", len(runs)-1, last)
	}
	s.wantStatus(runs[0], runlane.StatusFailed)
	for _, run := range runs[1:] {
		s.wantStatus(s.execute(s.get(run.ID)), runlane.StatusFailed)
	}
}
