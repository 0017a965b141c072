package core_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// What a run remembers is told attempt by attempt, also where the second one's clock is behind the first one's.
func TestSteps_OfAWorkerWhoseClockIsBehind_ComeAfterThoseBefore(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	task := runlane.NewTask[int]("ordered", nil)
	rt := openQuiet(t, memlane.New(), core.Options{
		World: &core.World{Now: func() time.Time { return now }},
		Handlers: []runlane.Handler{task.Handle(func(ctx context.Context, a *runlane.Attempt, _ int) error {
			if a.Number > 1 {
				return a.Do(ctx, "a second", func(context.Context) error { return nil })
			}
			now = now.Add(time.Hour)
			defer func() { now = now.Add(-time.Hour) }()
			return errors.Join(a.Do(ctx, "first", func(context.Context) error { return nil }), runlane.Release(time.Second, "again"))
		})},
	})
	result := trigger(t, rt, task.With(1))
	for range 2 {
		if _, err := rt.ExecuteNext(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		now = now.Add(2 * time.Second)
	}
	records, err := rt.Runs().Steps(t.Context(), result.ID)
	var names []string
	for i := range records {
		names = append(names, records[i].Name)
	}
	if err != nil || !slices.Equal(names, []string{"first", "a second"}) {
		t.Errorf("%v, %v", names, err)
	}
}
