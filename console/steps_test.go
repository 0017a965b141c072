package console_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/memlane"
)

// A page has as much of what a run remembers as a person reads, and says where the rest is.
func TestRun_WithManyLargeSteps_IsAPageOfSomeSize(t *testing.T) {
	t.Parallel()
	many := runlane.NewTask[int]("many", nil)
	large := func(context.Context) (string, error) { return strings.Repeat("<", 100_000), nil }
	program := programOn(t, memlane.New(), many.Handle(func(ctx context.Context, a *runlane.Attempt, _ int) error {
		for i := range 230 {
			if _, err := runlane.Step(ctx, a, fmt.Sprint("step/", i), large); err != nil {
				return err
			}
		}
		return nil
	}))
	run, err := program.RunNow(t.Context(), many.With(1), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := siteOf(t, program, nil)
	page := s.get(http.StatusOK, "/runs/"+string(run.Run.ID))
	s.has(page, "130 more: ", "runlane runs steps "+string(run.Run.ID), "the first 4096")
	if len(page) > 4<<20 {
		t.Errorf("a page of %d bytes", len(page))
	}
}
