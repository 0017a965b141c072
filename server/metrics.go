package server

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// Metrics counts what a runtime does, for Prometheus. Pass it as core.Options.Metrics and as [Options].Metrics; the
// path /metrics shows it. The zero value is ready. It is safe for concurrent use.
//
// Names are "runlane_", core's metric, and "_total" or "_seconds". Labels are environment, task and queue. After
// [MaxSeries] combinations, new ones are counted without labels.
type Metrics struct {
	mu     sync.RWMutex
	counts map[series]*float64
	times  map[series]*histogram
}

// MaxSeries limits the combinations of metric and labels, since callers choose the names of tasks.
const MaxSeries = 5000

// series is one line of the text, or all lines of one histogram.
type series struct{ name, labels string }

// bounds are the upper bounds of every histogram's buckets, in seconds: from a fast answer to a backlog of hours.
var bounds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 21600}

type histogram struct {
	mu      sync.Mutex
	buckets []uint64 // one for each bound; longer durations are in count only
	count   uint64
	sum     float64
}

var _ core.Metrics = (*Metrics)(nil)

// Count implements core.Metrics.
func (m *Metrics) Count(name core.Metric, n int64, labels core.Labels) {
	m.count("runlane_"+string(name)+"_total", labelsOf(labels), float64(n))
}

// Observe implements core.Metrics.
func (m *Metrics) Observe(name core.Metric, d time.Duration, labels core.Labels) {
	m.observe("runlane_"+string(name)+"_seconds", labelsOf(labels), d)
}

func labelsOf(l core.Labels) string {
	return strings.Join([]string{
		label("environment", string(l.Environment)),
		label("task", string(l.TaskID)),
		label("queue", string(l.Queue)),
	}, ",")
}

// escapes quotes the characters that a label's value cannot contain.
var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func label(name, value string) string {
	return name + `="` + escapes.Replace(strings.ToValidUTF8(value, "\ufffd")) + `"`
}

const others = `environment="",task="",queue=""`

func (m *Metrics) count(name, labels string, n float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts == nil {
		m.counts = map[series]*float64{}
	}
	key := series{name, labels}
	if m.counts[key] == nil {
		if len(m.counts) >= MaxSeries {
			key.labels = others
		}
		if m.counts[key] == nil {
			m.counts[key] = new(float64)
		}
	}
	*m.counts[key] += n
}

func (m *Metrics) observe(name, labels string, d time.Duration) {
	m.histogram(series{name, labels}).observe(d.Seconds())
}

func (m *Metrics) histogram(key series) *histogram {
	m.mu.RLock()
	found := m.times[key]
	m.mu.RUnlock()
	if found != nil {
		return found
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.times == nil {
		m.times = map[series]*histogram{}
	}
	if m.times[key] == nil && len(m.times) >= MaxSeries {
		key.labels = others
	}
	if m.times[key] == nil {
		m.times[key] = &histogram{buckets: make([]uint64, len(bounds))}
	}
	return m.times[key]
}

func (h *histogram) observe(seconds float64) {
	i, _ := slices.BinarySearch(bounds, seconds) // a bound belongs to its own bucket
	h.mu.Lock()
	defer h.mu.Unlock()
	if i < len(bounds) {
		h.buckets[i]++
	}
	h.count++
	h.sum += max(seconds, 0)
}

// text writes all metrics in Prometheus' text format, version 0.0.4, in a stable order.
func (m *Metrics) text() string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var b strings.Builder
	before := ""
	begin := func(name, kind string) {
		if name != before {
			fmt.Fprintf(&b, "# TYPE %s %s\n", name, kind)
			before = name
		}
	}
	for _, key := range sorted(m.counts) {
		begin(key.name, "counter")
		fmt.Fprintf(&b, "%s{%s} %s\n", key.name, key.labels, number(*m.counts[key]))
	}
	for _, key := range sorted(m.times) {
		begin(key.name, "histogram")
		m.times[key].write(&b, key)
	}
	return b.String()
}

func (h *histogram) write(b *strings.Builder, key series) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var below uint64
	for i, n := range h.buckets {
		below += n
		fmt.Fprintf(b, "%s_bucket{%s,le=\"%s\"} %d\n", key.name, key.labels, number(bounds[i]), below)
	}
	fmt.Fprintf(b, "%s_bucket{%s,le=\"+Inf\"} %d\n", key.name, key.labels, h.count)
	fmt.Fprintf(b, "%s_sum{%s} %s\n", key.name, key.labels, number(h.sum))
	fmt.Fprintf(b, "%s_count{%s} %d\n", key.name, key.labels, h.count)
}

func sorted[V any](of map[series]V) []series {
	return slices.SortedFunc(maps.Keys(of), func(a, b series) int {
		if n := strings.Compare(a.name, b.name); n != 0 {
			return n
		}
		return strings.Compare(a.labels, b.labels)
	})
}

func number(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) }

// gaugeAge is the time for which queue counts are cached. On DynamoDB a queue costs about 30 read units.
const gaugeAge = 15 * time.Second

// gaugeTime limits the time to count all queues.
const gaugeTime = 30 * time.Second

type gauges struct {
	mu   sync.Mutex
	at   time.Time
	text string
}

var queueGauges = []struct {
	name  string
	value func(*core.QueueStats) (n float64, known bool)
}{
	{"waiting", func(s *core.QueueStats) (float64, bool) { return float64(s.Waiting), true }},
	{"running", func(s *core.QueueStats) (float64, bool) { return float64(s.Running), true }},
	{"delayed", func(s *core.QueueStats) (float64, bool) { return float64(s.Delayed), true }},
	{"counts_at_least", func(s *core.QueueStats) (float64, bool) {
		if s.AtLeast {
			return 1, true
		}
		return 0, true
	}},
	{"oldest_waiting_seconds", func(s *core.QueueStats) (float64, bool) {
		if s.OldestWaiting.IsZero() {
			return 0, true
		}
		return max(s.At.Sub(s.OldestWaiting).Seconds(), 0), true
	}},
	{"concurrency_limit", func(s *core.QueueStats) (float64, bool) {
		return float64(s.Queue.Concurrency), s.Queue.Concurrency > 0 && (s.Known || s.Stored)
	}},
	{"wakeups_waiting", func(s *core.QueueStats) (float64, bool) { return float64(s.Backlog), s.Backlog >= 0 }},
	{"wakeups_in_flight", func(s *core.QueueStats) (float64, bool) { return float64(s.InFlight), s.InFlight >= 0 }},
}

// queueText returns the gauges of the queues. runlane_storage_up is 0 if they cannot be read.
func (a *api) queueText(ctx context.Context) string {
	a.gauges.mu.Lock()
	defer a.gauges.mu.Unlock()
	if a.gauges.text != "" && time.Since(a.gauges.at) < gaugeAge {
		return a.gauges.text
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), gaugeTime) // not ctx: the result is cached for later callers
	defer cancel()
	stats, err := a.allStats(limited)
	up := 1
	if err != nil {
		up = 0
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# TYPE runlane_storage_up gauge\nrunlane_storage_up %d\n", up)
	environment := label("environment", string(a.rt.Environment()))
	for _, gauge := range queueGauges {
		fmt.Fprintf(&b, "# TYPE runlane_queue_%s gauge\n", gauge.name)
		for _, s := range stats {
			if n, known := gauge.value(s); known {
				queue := label("queue", string(s.Queue.Name))
				fmt.Fprintf(&b, "runlane_queue_%s{%s,%s} %s\n", gauge.name, environment, queue, number(n))
			}
		}
	}
	a.gauges.at, a.gauges.text = time.Now(), b.String()
	return a.gauges.text
}

// allStats counts the runs of each queue in use. If a transport does not answer, its counts stay unknown.
func (a *api) allStats(ctx context.Context) ([]*core.QueueStats, error) {
	states, err := a.rt.Queues().InUse(ctx)
	if err != nil {
		return nil, err
	}
	var all []*core.QueueStats
	for i := range states {
		stats, err := a.rt.Queues().Stats(ctx, states[i].Queue.Name)
		if stats == nil {
			return all, err
		}
		stats.QueueState = states[i] // includes limits that other programs have stored
		all = append(all, stats)
	}
	return all, nil
}

// storageUsage lists the counters of a storage that bills by units.
var storageUsage = []struct {
	name  string
	value func(lane.Usage) float64
}{
	{"requests", func(u lane.Usage) float64 { return float64(u.Requests) }},
	{"write_units", func(u lane.Usage) float64 { return u.WriteUnits }},
	{"read_units", func(u lane.Usage) float64 { return u.ReadUnits }},
}

func (a *api) usageText() string {
	reader, ok := lane.As[usageReader](a.rt.Lane().Storage)
	if !ok {
		return ""
	}
	used := reader.Usage()
	operations := slices.Sorted(maps.Keys(used))
	var b strings.Builder
	for _, counter := range storageUsage {
		fmt.Fprintf(&b, "# TYPE runlane_storage_%s_total counter\n", counter.name)
		for _, operation := range operations {
			fmt.Fprintf(&b, "runlane_storage_%s_total{%s} %s\n",
				counter.name, label("operation", operation), number(counter.value(used[operation])))
		}
	}
	return b.String()
}

func showMetrics(ctx context.Context, c *call, _ *nothing) (*reply, error) {
	text := c.metrics.text() + c.queueText(ctx) + c.usageText() +
		fmt.Sprintf("# TYPE runlane_http_streams gauge\nrunlane_http_streams %d\n", c.streams.Load())
	return &reply{raw: []byte(text), media: metricsText}, nil
}

const metricsText = "text/plain; version=0.0.4; charset=utf-8"

func (m *Metrics) answered(operation string, status int, took time.Duration) {
	m.count("runlane_http_requests_total", label("operation", operation)+","+label("status", strconv.Itoa(status)), 1)
	m.observe("runlane_http_request_seconds", label("operation", operation), took)
}

// usageReader is implemented by storages that count their use since they were opened.
type usageReader interface {
	// Usage returns a copy of the sums, by the storage's names of its operations. Safe for concurrent use.
	Usage() map[string]lane.Usage
}
