package core_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// Every kind of wait that a transport can delay itself, up to its 15 minutes, ends within a second of its time though no process ticks.
func TestWork_ShortWaitsEndOnTimeWithoutATick(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{time.Second, time.Minute, 14*time.Minute + 59*time.Second} {
		for name, c := range map[string]struct {
			options *runlane.TriggerOptions
			first   error // what the first attempt returns
		}{
			"delayed":     {options: &runlane.TriggerOptions{Delay: wait}},
			"released":    {first: runlane.Release(wait, "not yet")},
			"retried":     {first: errors.New("not yet")},
			"retry after": {first: runlane.RetryAfter(wait, errors.New("not yet"))},
		} {
			t.Run(name+" "+wait.String(), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { shortWait(t, wait, c.options, c.first) })
			})
		}
	}
}

func shortWait(t *testing.T, wait time.Duration, options *runlane.TriggerOptions, first error) {
	t.Helper()
	task := runlane.NewTask[payload]("short.wait", &runlane.TaskOptions[payload]{
		Retry: runlane.Retry{MaxAttempts: 2, Backoff: runlane.BackoffFunc(func(int) time.Duration { return wait }), NoJitter: true},
	})
	var began []time.Time
	finished := make(chan struct{})
	handler := task.Handle(func(context.Context, *runlane.Attempt, payload) error {
		began = append(began, time.Now())
		if first != nil && len(began) == 1 {
			return first
		}
		close(finished)
		return nil
	})
	rt := openQuiet(t, memlane.New(), core.Options{}, handler)
	defer startWork(t, rt, &core.WorkOptions{NoTick: true})()
	triggered := time.Now()
	triggerWith(t, rt, task.With(payload{}), options)
	select {
	case <-finished:
	case <-time.After(time.Hour):
		t.Error("the wait never ended")
	}
	if due := triggered.Add(wait); len(began) > 0 {
		if last := began[len(began)-1]; last.Before(due) || last.After(due.Add(time.Second)) {
			t.Errorf("due after %s, begun after %s", wait, last.Sub(triggered))
		}
	}
}
