package runlanetest_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/runlanetest"
)

// Outputs and payloads that a table could not hold are refused here too, at the same size; what compresses is not.
func TestLimits_AreThoseOfATable(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 1<<20)
	_, _ = rand.Read(noise)
	table := dynamostore.New(nil, "none", nil)
	for _, c := range []struct {
		what   string
		output any
	}{
		{"noise that fits", noise[:180<<10]}, {"noise that does not", noise[:220<<10]}, {"much noise", noise},
		{"much that compresses", strings.Repeat("abc", 1<<20)},
	} {
		a := runlanetest.NewAttempt(t, nil)
		refused := a.SetOutput(c.output)
		stored := runlane.NewAttempt(runlane.Run{}, 1, runlane.AttemptHost{Reports: outputs(func(b json.RawMessage) error {
			return table.CheckOutput("run_1", b)
		})}).SetOutput(c.output)
		if (refused == nil) != (stored == nil) || refused != nil && !errors.Is(refused, runlane.ErrValidationFailed) {
			t.Errorf("%s: %v here, %v on a table", c.what, refused, stored)
		}
		var within error
		runlanetest.Run(t, echo.Handle(func(_ context.Context, a *runlane.Attempt, _ string) error {
			within = a.SetOutput(c.output)
			return nil
		}), echo.With("x"))
		if (within == nil) != (stored == nil) {
			t.Errorf("%s: %v in a run, %v on a table", c.what, within, stored)
		}
	}
	bulk := runlane.NewTask[[]byte]("bulk", nil)
	var r runlanetest.Recorder
	for _, triggerer := range []runlane.Triggerer{runlanetest.New(t, nil), &r} {
		if _, err := triggerer.Trigger(t.Context(), bulk.With(noise[:400<<10]), nil); !errors.Is(err, runlane.ErrValidationFailed) {
			t.Errorf("a payload that no table holds: %v", err)
		}
		if _, err := triggerer.Trigger(t.Context(), bulk.With(noise[:240<<10]), nil); err != nil {
			t.Errorf("a payload that every table holds: %v", err)
		}
	}
}

// outputs takes outputs, and no notes.
type outputs func(json.RawMessage) error

func (o outputs) ReportOutput(b json.RawMessage) error { return o(b) }

func (outputs) ReportProgress(context.Context, string) error { return nil }
