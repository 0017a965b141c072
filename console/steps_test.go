package console_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/server"
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

// A receipt is shown with its texts, as text; who may not see payloads sees neither headers nor outputs.
func TestRun_Receipts(t *testing.T) {
	t.Parallel()
	called := runlane.NewTask[int]("called", nil)
	program := programOn(t, memlane.New(), called.Handle(func(_ context.Context, a *runlane.Attempt, _ int) error {
		a.SetReceipt(runlane.Receipt{
			Target: runlane.ReceiptHTTP, Request: "POST https://example.com", Status: 202, BodyBytes: 9,
			Headers: map[string]string{"X-Request-Id": "<r-1>"}, Body: "<b>it</b>",
		})
		return nil
	}))
	run, err := program.RunNow(t.Context(), called.With(1), nil)
	if err != nil {
		t.Fatal(err)
	}
	path := "/runs/" + string(run.Run.ID)
	s := siteOf(t, program, nil)
	s.has(s.get(http.StatusOK, path), "POST https://example.com", "202, 9 bytes", "X-Request-Id: &lt;r-1&gt;", "&lt;b&gt;it&lt;/b&gt;")
	s = siteOf(t, program, &server.Options{HidePayloads: true})
	page := s.get(http.StatusOK, path)
	if s.has(page, "202, 9 bytes", "hidden"); strings.Contains(page, "r-1") || strings.Contains(page, "it&lt;") {
		t.Error("a receipt's texts are shown")
	}
}
