package guide

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/runlane/runlane-go/core"
)

// WorkOff executes all runs that are due now or within half a minute.
func WorkOff(ctx context.Context, rt *core.Runtime) error {
	report := core.DrainReport{}
	if err := rt.Work(ctx, &core.WorkOptions{
		Drain:       true,
		DrainWait:   30 * time.Second,
		DrainReport: &report,
	}); err != nil {
		return err
	}
	if report.Interrupted {
		return errors.New("the time was over before everything due was done")
	}
	if report.Left > 0 {
		slog.Info("runs are left", "at_least", report.Left, "next_due", report.NextDue)
	}
	return nil
}
