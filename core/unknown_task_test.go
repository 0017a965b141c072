package core_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// sharing opens a runtime with one task beside others on a storage and a transport, and works with it until the test ends.
func sharing(t *testing.T, storage lane.Storage, transport lane.Transport, logger *slog.Logger, handler runlane.Handler) *core.Runtime {
	t.Helper()
	rt := openQuiet(t, newLane(t, storage, transport), core.Options{Logger: logger}, handler)
	t.Cleanup(startWork(t, rt, nil))
	return rt
}

func counting(id runlane.TaskID) (*runlane.Task[payload], runlane.Handler, *atomic.Int64) {
	executed := new(atomic.Int64)
	task := runlane.NewTask[payload](id, nil)
	return task, task.Handle(func(context.Context, *runlane.Attempt, payload) error {
		executed.Add(1)
		return nil
	}), executed
}

// Two programs with different tasks share an embedded lane, and each gets its runs at once, whichever is asked first.
func TestWork_TwoProgramsOnOneEmbeddedLane_EachExecutesItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		storage, transport, quiet := memlane.NewStorage(nil), memlane.NewTransport(nil), slog.New(slog.DiscardHandler)
		mail, mailHandler, mails := counting("mail")
		bill, billHandler, bills := counting("bill")
		rt := sharing(t, storage, transport, quiet, mailHandler)
		sharing(t, storage, transport, quiet, billHandler)
		synctest.Wait() // both receive
		for range 100 {
			for _, call := range []runlane.Call{mail.With(payload{}), bill.With(payload{})} {
				trigger(t, rt, call)
			}
		}
		time.Sleep(time.Second / 2)
		synctest.Wait()
		if mails.Load() != 100 || bills.Load() != 100 {
			t.Errorf("%d mails and %d bills after half a second", mails.Load(), bills.Load())
		}
	})
}

// 200 runs of a task that no program has wrote 72,200 lines of log in six minutes.
func TestWork_RunsWithoutAHandler_AreHandedBackAtGrowingDistances(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		_, handler, _ := counting("mail")
		rt := sharing(t, memlane.NewStorage(nil), memlane.NewTransport(nil), slog.New(slog.NewTextHandler(&log, nil)), handler)
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
