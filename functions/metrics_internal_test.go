package functions

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
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
	return &meter{function: RoleTick, out: out, values: map[string]float64{}}, rt, out
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
	if age := time.Since(time.UnixMilli(l.AWS.Timestamp)); age < -time.Second || age > time.Minute {
		t.Errorf("the timestamp is %s old", age)
	}
	if len(l.AWS.CloudWatchMetrics) != 1 {
		t.Fatalf("line is %s", line)
	}
	d := l.AWS.CloudWatchMetrics[0]
	if diff := cmp.Diff([][]string{{"Environment", "Function"}}, d.Dimensions); diff != "" || d.Namespace != "Runlane" {
		t.Errorf("namespace %q, dimensions %s", d.Namespace, diff)
	}
	if fields["Environment"] != "prod" || fields["Function"] != "tick" {
		t.Errorf("dimensions are %v, %v", fields["Environment"], fields["Function"])
	}
	values, units = map[string]float64{}, map[string]string{}
	for _, m := range d.Metrics {
		number, ok := fields[m.Name].(float64)
		if !ok {
			t.Errorf("%s has no value", m.Name)
		}
		values[m.Name], units[m.Name] = number, m.Unit
	}
	if len(fields) != 3+len(values) {
		t.Errorf("the line has more than its metrics: %s", line)
	}
	return values, units
}

func TestMeter_OneInvocation_IsOneLine(t *testing.T) {
	t.Parallel()
	storage := &watchedStorage{since: time.Now().Add(-90 * time.Second), conflicts: 4}
	m, rt, out := newTestMeter(t, storage)
	m.look(t.Context(), rt)
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
	m.look(t.Context(), rt)
	m.flush(rt)
	values, _ := readEmbedded(t, out.String())
	if diff := cmp.Diff(map[string]float64{MetricOldestDueSeconds: 0}, values); diff != "" {
		t.Error(diff)
	}
}

// Lines hold each count once, whoever flushes.
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

func TestMeter_Off_DoesNothing(t *testing.T) {
	t.Setenv(MetricsVariable, "off")
	m := newMeter(RoleTick)
	if m != nil {
		t.Fatal("there is a meter")
	}
	m.throttled()
	m.look(t.Context(), nil)
	m.flush(nil)
	t.Setenv(MetricsVariable, "")
	if newMeter(RoleTick) == nil {
		t.Error("there is none by default")
	}
}
