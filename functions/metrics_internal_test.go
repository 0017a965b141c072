package functions

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// watchedStorage has the abilities that a meter looks for.
type watchedStorage struct {
	lane.Storage

	since     time.Time
	conflicts int64
}

func (s *watchedStorage) Unwrap() lane.Storage { return s.Storage }

func (s *watchedStorage) OldestDue(context.Context, runlane.Environment, time.Time) (time.Time, error) {
	return s.since, nil
}

func (s *watchedStorage) Stats() dynamostore.Stats { return dynamostore.Stats{Conflicts: s.conflicts} }

func newTestMeter(t *testing.T, storage *watchedStorage) (m *meter, rt *core.Runtime, out *bytes.Buffer) {
	t.Helper()
	storage.Storage = memlane.NewStorage(nil)
	l, err := lane.New(storage, memlane.NewTransport(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	if rt, err = core.Open(t.Context(), l, &core.Options{Environment: "prod"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	out = &bytes.Buffer{}
	return &meter{function: "stack-Tick-1", level: "INFO", out: out, values: map[string]float64{}}, rt, out
}

// embeddedLine is what CloudWatch reads.
type embeddedLine struct {
	AWS struct {
		Timestamp         int64
		CloudWatchMetrics []struct {
			Namespace  string
			Dimensions [][]string
			Metrics    []struct{ Name, Unit string }
		}
	} `json:"_aws"`
}

var testsBegan = time.Now().Truncate(time.Millisecond)

// readEmbedded returns the metrics of a line by name, with their units, after checking what they all share.
func readEmbedded(t *testing.T, line string) (values map[string]float64, units map[string]string) {
	t.Helper()
	var l embeddedLine
	var fields map[string]any
	for _, into := range []any{&l, &fields} {
		if err := json.Unmarshal([]byte(line), into); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
	}
	if written := time.UnixMilli(l.AWS.Timestamp); written.Before(testsBegan) || written.After(time.Now()) {
		t.Errorf("the timestamp is %s", written)
	}
	if len(l.AWS.CloudWatchMetrics) != 1 {
		t.Fatalf("line is %s", line)
	}
	d := l.AWS.CloudWatchMetrics[0]
	if diff := cmp.Diff([][]string{{"FunctionName"}}, d.Dimensions); diff != "" || d.Namespace != "Runlane" {
		t.Errorf("namespace %q, dimensions %s", d.Namespace, diff)
	}
	if fields["FunctionName"] != "stack-Tick-1" {
		t.Errorf("the dimension is %v", fields["FunctionName"])
	}
	at, _ := fields["timestamp"].(string)
	if moment, err := time.Parse(time.RFC3339, at); err != nil || moment.UnixMilli() != l.AWS.Timestamp {
		t.Errorf("timestamp %q: %v", at, err)
	}
	values, units = map[string]float64{}, map[string]string{}
	for _, m := range d.Metrics {
		number, ok := fields[m.Name].(float64)
		if !ok {
			t.Errorf("%s has no value", m.Name)
		}
		values[m.Name], units[m.Name] = number, m.Unit
	}
	if len(fields) != 4+len(values) { // _aws, the dimension, level and timestamp
		t.Errorf("the line has more than its metrics: %s", line)
	}
	return values, units
}

func TestMeter_OneInvocation_IsOneLine(t *testing.T) {
	t.Parallel()
	storage := &watchedStorage{since: time.Now().Add(-90 * time.Second), conflicts: 4}
	m, rt, out := newTestMeter(t, storage)
	m.measure(t.Context(), rt)
	m.Count(core.MetricRunsFailed, 2, core.Labels{TaskID: "a"})
	m.Count(core.MetricRunsFailed, 1, core.Labels{TaskID: "b"})
	m.Count(core.MetricHeartbeats, 9, core.Labels{}) // has no metric
	m.Observe(core.MetricRunTime, time.Second, core.Labels{})
	m.throttled()
	m.flush(rt)
	if n := strings.Count(out.String(), "\n"); n != 1 {
		t.Fatalf("%d lines: %s", n, out)
	}
	values, units := readEmbedded(t, out.String())
	if age := values[MetricOldestDueSeconds]; math.Abs(age-90) > 5 || units[MetricOldestDueSeconds] != "Seconds" {
		t.Errorf("the oldest is %v %s old", age, units[MetricOldestDueSeconds])
	}
	delete(values, MetricOldestDueSeconds)
	if diff := cmp.Diff(map[string]float64{MetricRunsFailed: 3, MetricThrottles: 1, MetricCommitConflicts: 4}, values); diff != "" {
		t.Error(diff)
	}
	if units[MetricRunsFailed] != "Count" {
		t.Errorf("unit is %q", units[MetricRunsFailed])
	}

	out.Reset()
	storage.conflicts = 5
	m.flush(rt)
	if values, _ := readEmbedded(t, out.String()); values[MetricCommitConflicts] != 1 || len(values) != 1 {
		t.Errorf("the second line repeats the first: %s", out)
	}
	out.Reset()
	m.flush(rt)
	if out.Len() > 0 {
		t.Errorf("nothing happened, and yet: %s", out)
	}
}

func TestMeter_NothingDue_IsZeroAndNotMissing(t *testing.T) {
	t.Parallel()
	m, rt, out := newTestMeter(t, &watchedStorage{})
	m.measure(t.Context(), rt)
	m.flush(rt)
	values, _ := readEmbedded(t, out.String())
	if diff := cmp.Diff(map[string]float64{MetricOldestDueSeconds: 0}, values); diff != "" {
		t.Error(diff)
	}
}

// Every function of an environment sends the same metric of a task, and a process names a bounded number of tasks.
func TestMeter_FailedRuns_AreALineOfEachTask(t *testing.T) {
	t.Setenv(awslane.TableVariable, "runs")
	m := newMeter(RoleBridge)
	var out bytes.Buffer
	m.out = &out
	for i := range 2 * namedTasks {
		for range 2 {
			m.Count(core.MetricRunsFailed, 1, core.Labels{Environment: "prod", TaskID: runlane.TaskID(fmt.Sprint("tâche", i))})
		}
	}
	m.Count(core.MetricRunsSucceeded, 1, core.Labels{TaskID: "fine"})
	m.flush(nil)
	tasks := map[string]float64{}
	for line := range strings.Lines(out.String()) {
		var l embeddedLine
		var fields map[string]any
		if err := errors.Join(json.Unmarshal([]byte(line), &l), json.Unmarshal([]byte(line), &fields)); err != nil {
			t.Fatal(err)
		}
		d := l.AWS.CloudWatchMetrics[0]
		if d.Metrics[0].Name != MetricTaskRunsFailed {
			continue
		}
		if diff := cmp.Diff([][]string{{"Environment", "TableName", "TaskId"}}, d.Dimensions); diff != "" || fields["Environment"] != "prod" || fields["TableName"] != "runs" {
			t.Errorf("%s: %s", diff, line)
		}
		tasks[fields["TaskId"].(string)] += fields[MetricTaskRunsFailed].(float64)
	}
	if len(tasks) != namedTasks+1 || tasks[`t\u00e2che0`] != 2 || tasks[OtherTasks] != 2*namedTasks {
		t.Errorf("%d tasks, %v", len(tasks), tasks)
	}
	out.Reset()
	m.flush(nil)
	if out.Len() > 0 {
		t.Errorf("counted twice: %s", out.String())
	}
}

// Lines hold each count once, whichever call flushes.
func TestMeter_InvocationsSideBySide_LoseAndRepeatNothing(t *testing.T) {
	t.Parallel()
	m, rt, out := newTestMeter(t, &watchedStorage{})
	var invocations sync.WaitGroup
	for range 8 {
		invocations.Go(func() {
			for range 100 {
				m.Count(core.MetricRunsSucceeded, 1, core.Labels{})
				m.flush(rt)
			}
		})
	}
	invocations.Wait()
	total := 0.0
	for line := range strings.Lines(out.String()) {
		values, _ := readEmbedded(t, line)
		total += values[MetricRunsSucceeded]
	}
	if total != 800 {
		t.Errorf("%v in all", total)
	}
}

// Lambda drops what is below the function's level, and takes a line without level and timestamp for INFO.
func TestMeter_Lines_SurviveEveryLogLevel(t *testing.T) {
	levels := []string{"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"}
	for i, level := range append(slices.Clone(levels), "") { // "": Lambda did not tell
		t.Setenv(logLevelVariable, level)
		m := newMeter(RoleTick)
		var out bytes.Buffer
		m.out = &out
		m.throttled()
		m.flush(nil)
		var line struct{ Level, Timestamp string }
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if slices.Index(levels, line.Level) < min(i, len(levels)-1) || line.Timestamp == "" {
			t.Errorf("at %q the line is dropped: %s", level, out.String())
		}
	}
}

// Two deployments of one environment in one account have functions of different names.
func TestMeter_TwoStacks_ShareNoMetric(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"one-Tick-A", "two-Tick-B", ""} {
		t.Setenv(functionNameVariable, name)
		m := newMeter(RoleTick)
		var out bytes.Buffer
		m.out = &out
		m.throttled()
		m.flush(nil) // a function that could not open counts too
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		dimension := line[DimensionFunction].(string)
		if seen[dimension] || name != "" && dimension != name {
			t.Errorf("%q sends as %q", name, dimension)
		}
		seen[dimension] = true
	}
}

func TestMeter_Off_DoesNothing(t *testing.T) {
	t.Setenv(MetricsVariable, "off")
	m := newMeter(RoleTick)
	if m != nil {
		t.Fatal("there is a meter")
	}
	m.throttled()
	m.measure(t.Context(), nil)
	m.flush(nil)
	t.Setenv(MetricsVariable, "")
	if newMeter(RoleTick) == nil {
		t.Error("there is none by default")
	}
}
