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
)

const passedOver = `msg="due run passed over for now"`

// without is a runtime that polls, beside a due run of a task that it has no handler for.
func (p *polling) without(t *testing.T, log *bytes.Buffer) *core.Runtime {
	t.Helper()
	rt := p.logging(t, slog.New(slog.NewTextHandler(log, nil)))
	trigger(t, rt, runlane.NewTask[payload]("gone", nil).With(payload{}))
	return rt
}

// A worker that polls has no wakeup to hand back: it logs that it passes over the run, and meets it again after a minute or later.
func TestWork_PollingWithoutAHandler_PassesOverTheRunForAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		rt := newPolling(0).without(t, &log)
		stop := startWork(t, rt, nil)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		stop()
		text := log.String()
		if n := strings.Count(text, passedOver); n < 3 || n > 10 {
			t.Errorf("passed over %d times in ten minutes:\n%s", n, text)
		}
		if strings.Contains(text, "handed back") {
			t.Errorf("there was no wakeup:\n%s", text)
		}
	})
}

// A drain meets such a run once, however long its attempts take.
func TestWork_DrainWithoutAHandler_PassesOverTheRunToItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		p := newPolling(10 * time.Minute)
		rt := p.without(t, &log)
		trigger(t, rt, p.task.With(numbered{}))
		if err := rt.Work(t.Context(), &core.WorkOptions{Drain: true, NoTick: true}); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(log.String(), passedOver); n != 1 {
			t.Errorf("passed over %d times:\n%s", n, log.String())
		}
		if time.Since(p.epoch) < 10*time.Minute {
			t.Errorf("drained after %s", time.Since(p.epoch))
		}
	})
}
