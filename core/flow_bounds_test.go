package core_test

import (
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
