package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/server"
)

// metricsWorld is a world whose runtime counts.
func metricsWorld(t *testing.T, m *server.Metrics) *world {
	t.Helper()
	return metricsWorldOn(t, memlane.New(), m)
}

func metricsWorldOn(t *testing.T, l *lane.Lane, m *server.Metrics) *world {
	t.Helper()
	rt, err := core.Open(t.Context(), l, &core.Options{
		Logger:  slog.New(slog.DiscardHandler),
		Metrics: m,
		Handlers: []runlane.Handler{
			welcome.Handle(func(context.Context, *runlane.Attempt, json.RawMessage) error { return nil }),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close(context.Background()) })
	w := &world{Runtime: rt, log: &lockedBuffer{}}
	if w.handler, err = server.New(rt, &server.Options{Metrics: m, Logger: discard}); err != nil {
		t.Fatal(err)
	}
	return w
}

var (
	metricName = `[a-zA-Z_:][a-zA-Z0-9_:]*`
	metricLine = regexp.MustCompile(`^(` + metricName + `)(\{` + metricName + `="(?:[^"\\\n]|\\[\\"n])*"(?:,` + metricName + `="(?:[^"\\\n]|\\[\\"n])*")*\})? (\S+)$`)
	typeLine   = regexp.MustCompile(`^# TYPE (` + metricName + `) (counter|gauge|histogram)$`)
)

// wellFormed judges a text by the rules of Prometheus' text format: a type before its lines and once, every line a
// name, labels and a number, buckets that only grow and end with the count.
func wellFormed(text string) (faults []string) {
	types, last := map[string]string{}, map[string]float64{}
	current := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m := typeLine.FindStringSubmatch(line); m != nil {
			if types[m[1]] != "" {
				faults = append(faults, m[1]+" has its type twice")
			}
			types[m[1]], current = m[2], m[1]
			continue
		}
		m := metricLine.FindStringSubmatch(line)
		if m == nil {
			faults = append(faults, "no line: "+line)
			continue
		}
		value, err := strconv.ParseFloat(m[3], 64)
		if err != nil || !strings.HasPrefix(m[1], current) || current == "" {
			faults = append(faults, "out of place: "+line)
		}
		if bucket, le, ok := strings.Cut(m[2], `,le="`); ok && types[current] == "histogram" {
			if value < last[current+bucket] {
				faults = append(faults, "buckets shrink: "+line)
			}
			if last[current+bucket] = value; le == `+Inf"}` {
				last[current+bucket+"}"] = value
			}
		}
		if count, ok := strings.CutSuffix(m[1], "_count"); ok && types[current] == "histogram" && last[count+m[2]] != value {
			faults = append(faults, "the count is not that of the buckets: "+line)
		}
	}
	return faults
}

func TestMetrics_CountsAndDurations(t *testing.T) {
	t.Parallel()
	w := metricsWorld(t, &server.Metrics{})
	w.trigger(t, welcome, "one", true)
	w.ask(t, "GET", "/v1/runs/none", "").want(t, 404)
	got := w.ask(t, "GET", "/metrics", "")
	got.want(t, 200,
		"# TYPE runlane_runs_created_total counter\nrunlane_runs_created_total{environment=\"default\",task=\"mail.welcome\",queue=\"default\"} 1\n",
		`runlane_runs_succeeded_total{environment="default",task="mail.welcome",queue="default"} 1`,
		"# TYPE runlane_run_time_seconds histogram\n",
		`runlane_run_time_seconds_count{environment="default",task="mail.welcome",queue="default"} 1`,
		`runlane_http_requests_total{operation="getRun",status="404"} 1`,
		`runlane_http_request_seconds_bucket{operation="getRun",le="+Inf"} 1`,
		`runlane_queue_waiting{environment="default",queue="default"} 0`,
		"runlane_http_streams 0\n",
	)
	if kind := got.header.Get("Content-Type"); kind != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("it is %q", kind)
	}
	for _, fault := range wellFormed(got.text) {
		t.Error(fault)
	}
}

// paid is a storage in memory that says what it has used.
type paid struct{ lane.Storage }

func (paid) Usage() map[string]lane.Usage {
	return map[string]lane.Usage{
		"run.started": {Requests: 2, WriteUnits: 7.5},
		"read run":    {Requests: 3, ReadUnits: 1.5},
	}
}

func TestMetrics_UsageOfThePaidStorage(t *testing.T) {
	t.Parallel()
	l, err := lane.New(paid{memlane.NewStorage(nil)}, memlane.NewTransport(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	w := metricsWorldOn(t, l, &server.Metrics{})
	got := w.ask(t, "GET", "/metrics", "")
	got.want(t, 200,
		"# TYPE runlane_storage_requests_total counter\n"+
			"runlane_storage_requests_total{operation=\"read run\"} 3\n"+
			"runlane_storage_requests_total{operation=\"run.started\"} 2\n",
		`runlane_storage_write_units_total{operation="run.started"} 7.5`,
		`runlane_storage_read_units_total{operation="read run"} 1.5`,
	)
	for _, fault := range wellFormed(got.text) {
		t.Error(fault)
	}
}

// Names of callers cannot break the text, nor make it grow without end.
func TestMetrics_LabelsAreEscapedAndBounded(t *testing.T) {
	t.Parallel()
	m := &server.Metrics{}
	w := metricsWorld(t, m)
	for _, name := range []string{"a\"b", `a\`, "a\nb", "\xff", "{}", "a,b=\"c\""} {
		m.Count(core.MetricRunsCreated, 1, core.Labels{TaskID: runlane.TaskID(name)})
		m.Observe(core.MetricRunTime, time.Second, core.Labels{Queue: runlane.QueueName(name)})
	}
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			for i := range server.MaxSeries {
				labels := core.Labels{TaskID: runlane.TaskID(fmt.Sprint(n, "-", i))}
				m.Count(core.MetricRunsCreated, 1, labels)
				m.Observe(core.MetricRunTime, time.Duration(i)*time.Hour/100, labels)
			}
		})
	}
	wg.Wait()
	text := w.ask(t, "GET", "/metrics", "").text
	for _, fault := range wellFormed(text) {
		t.Error(fault)
	}
	lines, sum := 0, 0.0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "runlane_runs_created_total{") {
			value, _ := strconv.ParseFloat(strings.Fields(line)[len(strings.Fields(line))-1], 64)
			lines, sum = lines+1, sum+value
		}
	}
	if lines > server.MaxSeries+1 || sum != 6+4*server.MaxSeries {
		t.Errorf("%d lines count %v", lines, sum)
	}
}

// A storage that does not answer is a value, not a scrape that fails.
func TestMetrics_WithoutTheStorage(t *testing.T) {
	t.Parallel()
	w := metricsWorld(t, &server.Metrics{})
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.ask(t, "GET", "/metrics", "").want(t, 200, "runlane_storage_up 0\n")
}
