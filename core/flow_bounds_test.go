package core_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
)

// An undo that names nothing would run at once.
func TestStartFlow_UndoOfNothing_IsRefused(t *testing.T) {
	t.Parallel()
	w := newRetryWorld(t, func(int) error { return nil })
	f := runlane.NewFlow("f")
	f.Add("pay", w.task.With(1), nil)
	f.Add("refund", w.task.With(2), &runlane.NodeOptions{If: runlane.IfFailed})
	_, err := w.StartFlow(t.Context(), f, nil)
	if runlane.CodeOf(err) != runlane.ErrValidationFailed || !strings.Contains(err.Error(), `"refund"`) {
		t.Fatal(err)
	}
	if _, err := w.Flows().Get(t.Context(), "f"); runlane.CodeOf(err) != runlane.ErrFlowNotFound {
		t.Errorf("after the refusal: %v", err)
	}
}

// What was paid and refunded is not shipped: a retry, and its plan, say so. Where everything is renewed that an undo undid, a retry is
// made.
func TestFlows_RetryAfterAnUndo_BuildsOnNothingUndone(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		pays    bool
		undoes  []string
		refused bool
	}{
		"undone at once":       {true, []string{"pay", "ship"}, true},
		"undone by what ships": {true, []string{"ship"}, true},
		"nothing was paid":     {false, []string{"pay"}, false},
	} {
		var done []string
		fails := true
		w := newRetryWorld(t, nil)
		w.handle = func(n int) error {
			if n == 2 && fails || n == 1 && fails && !c.pays {
				return runlane.Permanent(errRetry)
			}
			done = append(done, []string{"", "pay", "ship", "refund"}[n])
			return nil
		}
		f := runlane.NewFlow("f")
		pay := f.Add("pay", w.task.With(1), nil)
		f.Add("ship", w.task.With(2), &runlane.NodeOptions{After: []runlane.Node{pay}})
		undo := &runlane.NodeOptions{If: runlane.IfFailed}
		for _, name := range c.undoes {
			undo.After = append(undo.After, runlane.Node{Name: name})
		}
		f.Add("refund", w.task.With(3), undo)
		w.start(t, f)
		fails = false
		_, planned := w.Flows().PlanRetry(t.Context(), "f")
		_, err := w.Flows().Retry(t.Context(), "f", nil)
		w.drain(t)
		for _, err := range []error{planned, err} {
			if (runlane.CodeOf(err) == runlane.ErrValidationFailed) != c.refused || !c.refused && err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		if c.refused && !strings.Contains(err.Error(), `"pay"`) {
			t.Errorf("%s: %v", what, err)
		}
		if shipped := slices.Contains(done, "ship"); shipped == c.refused {
			t.Errorf("%s: %v", what, done)
		}
	}
}
