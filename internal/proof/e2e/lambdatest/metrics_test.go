package lambdatest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
)

// metrics adds up what CloudWatch would make of a log, and counts the lines.
func metrics(t *testing.T, log, function string) (sums map[string]float64, lines int) {
	t.Helper()
	sums = map[string]float64{}
	for line := range strings.Lines(log) {
		var fields map[string]any
		if json.Unmarshal([]byte(line), &fields) != nil || fields["_aws"] == nil {
			continue
		}
		lines++
		if fields[functions.DimensionFunction] != function {
			t.Errorf("dimensions are wrong: %s", line)
		}
		for name, value := range fields {
			if number, ok := value.(float64); ok {
				sums[name] += number
			}
		}
	}
	return sums, lines
}

func TestMetrics_TellWhatTheFunctionsDid(t *testing.T) {
	t.Parallel()
	i := install(t, installOptions{})
	bridge := i.deploy("program", functions.RoleBridge, lambdatest.Options{}, nil)
	quiet := i.deploy("program", functions.RoleBridge, lambdatest.Options{}, map[string]string{functions.MetricsVariable: "off"})
	tick := i.deploy("program", functions.RoleTick, lambdatest.Options{}, nil)
	const runs = 4
	for n := range runs {
		i.act(lambdatest.Play, lambdatest.Act{Name: fmt.Sprint("parent-", n), Do: lambdatest.Follow}, nil)
	}
	if answer := invoke(t, bridge, i.receive(runs)); answer.Failure != "" {
		t.Fatalf("answer is %+v", answer)
	}
	if answer := invoke(t, quiet, i.receive(runs)); answer.Failure != "" { // the followers
		t.Fatalf("answer is %+v", answer)
	}
	i.act(lambdatest.Play, lambdatest.Act{Name: "late"}, nil)
	until(t, "the tick sees the run wait", func() bool {
		before, _ := metrics(t, tick.Log(), functions.RoleTick)
		if answer := invoke(t, tick, map[string]string{}); answer.Failure != "" {
			t.Fatalf("answer is %+v", answer)
		}
		after, _ := metrics(t, tick.Log(), functions.RoleTick)
		return after[functions.MetricOldestDueSeconds]-before[functions.MetricOldestDueSeconds] > 1
	})
	sums, lines := metrics(t, bridge.Log(), functions.RoleBridge)
	equal(t, "lines of one invocation", lines, 1)
	equal(t, "runs created", sums[functions.MetricRunsCreated], float64(runs))
	equal(t, "runs succeeded", sums[functions.MetricRunsSucceeded], float64(runs))
	if _, lines := metrics(t, quiet.Log(), functions.RoleBridge); lines != 0 {
		t.Errorf("%d lines, and metrics are off", lines)
	}
}
