package lambdatest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/functions/eventsource"
	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
)

// A FIFO queue with two groups; in the middle of one stands a run that this version of the program has no handler for. Its group
// waits for the next version, the other one does not.
func TestFIFO_RecordFailsInTheMiddle_OrderIsKept(t *testing.T) {
	t.Parallel()
	i := install(t, installOptions{fifo: true, visibility: shortVisibility}) // a poll that is cut off may take messages along
	var ids []runlane.RunID
	for _, name := range []string{"a1", "b1", "a2", "a3", "b2", "a4", "b3"} {
		task := lambdatest.Play
		if name == "a2" {
			task = lambdatest.Other
		}
		ids = append(ids, i.act(task, lambdatest.Act{Name: name}, &runlane.TriggerOptions{ConcurrencyKey: name[:1]}))
	}
	first := i.deploy("program", functions.RoleBridge, lambdatest.Options{}, map[string]string{lambdatest.WithoutVariable: "other"})
	stop := i.mapQueue(first, eventsource.QueueOptions{})
	until(t, "the record without a handler was handed back, and group b is through", func() bool {
		return strings.Count(first.Log(), "task_not_found") >= 1 && slices.Contains(i.attempts(), "b3")
	})
	stop()
	of := func(group string) (names []string) {
		for _, name := range i.attempts() {
			if strings.HasPrefix(name, group) {
				names = append(names, name)
			}
		}
		return names
	}
	equal(t, "group a before", of("a"), []string{"a1"})
	equal(t, "group b", of("b"), []string{"b1", "b2", "b3"})

	i.mapQueue(i.deploy("program", functions.RoleBridge, lambdatest.Options{}, nil), eventsource.QueueOptions{})
	i.succeeds(ids...)
	equal(t, "group a", of("a"), []string{"a1", "a2", "a3", "a4"})
	i.sound()
}

// Processes share the work whose clocks are as far apart as may be. Nothing is executed twice, nothing is left over.
func TestClocks_Apart_NothingIsLostOrRepeated(t *testing.T) {
	t.Parallel()
	i := install(t, installOptions{})
	for _, clock := range []string{"1250ms", "-1250ms"} {
		changes := map[string]string{lambdatest.ClockVariable: clock}
		i.mapQueue(i.deploy("program", functions.RoleBridge, lambdatest.Options{}, changes), eventsource.QueueOptions{Concurrency: 2, BatchSize: 3})
		i.tickEvery(i.deploy("program", functions.RoleTick, lambdatest.Options{}, changes), 2*time.Second)
	}
	var ids []runlane.RunID
	for n := range 40 {
		act := lambdatest.Act{Name: fmt.Sprint("run-", n)}
		if n%4 == 3 {
			act.Do = lambdatest.Fail // once
		}
		ids = append(ids, i.act(lambdatest.Play, act, &runlane.TriggerOptions{Delay: time.Duration(n%5) * time.Second}))
	}
	i.succeeds(ids...)
	got := i.attempts()
	slices.Sort(got)
	if unique := slices.Compact(slices.Clone(got)); len(unique) != len(got) || len(got) != 50 {
		t.Errorf("%d attempts, %d different ones: %v", len(got), len(unique), got)
	}
	i.sound()
}
