package core_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// 200 runs of a task that no program has wrote 72,200 lines of log in six minutes.
func TestWork_RunsWithoutAHandler_AreHandedBackAtGrowingDistances(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		rt := openQuiet(t, memlane.New(), core.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, handle("mail", nil))
		defer startWork(t, rt, nil)()
		for range 200 {
			trigger(t, rt, runlane.NewTask[payload]("gone", nil).With(payload{}))
		}
		time.Sleep(6 * time.Minute)
		synctest.Wait()
		if lines := strings.Count(log.String(), "\n"); lines < 200 || lines > 200*9 { // at 0, 1, 3, 7 … 255 s
			t.Errorf("%d lines in six minutes", lines)
		}
	})
}
