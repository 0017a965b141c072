package core_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// All runs of a call by a program are there before it waits for the first: none of these ends before the last has begun. The process
// that commits an end tells it at once to those that wait.
func TestRuntime_CallsAndWaits_TogetherAndUntilTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const runs = 30
		var all sync.WaitGroup
		all.Add(runs)
		var ended atomic.Int64
		task := runlane.NewFunc[int, int]("task", nil)
		rt := openQuiet(t, memlane.New(), core.Options{},
			task.Handle(func(ctx context.Context, _ *runlane.Attempt, n int) (int, error) {
				all.Done()
				all.Wait()
				time.Sleep(time.Hour)
				ended.Store(time.Now().UnixNano())
				return n, nil
			}))
		defer startWork(t, rt, &core.WorkOptions{Concurrency: runs})()
		payloads := make([]int, runs)
		if _, err := runlane.CallAll(t.Context(), rt, task, payloads, nil); err != nil {
			t.Fatal(err)
		}
		if late := time.Since(time.Unix(0, ended.Load())); late != 0 {
			t.Errorf("told %s after the end", late)
		}
	})
}
