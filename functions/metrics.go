package functions

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/host"
	"github.com/runlane/runlane-go/lane"
)

// MetricsVariable turns the metrics of the functions off when it is "off". Anything else leaves them on.
const MetricsVariable = "RUNLANE_METRICS"

// The functions write their metrics as log lines in CloudWatch's embedded metric format: at most one line an
// invocation, none if there are no metrics. CloudWatch makes metrics from the lines, in this namespace and with this
// dimension. This needs no request and no waiting.
const (
	MetricsNamespace = "Runlane"
	// DimensionFunction is the name of the Lambda function, which is unique in the account and region: deployments
	// never share a metric. Outside Lambda it is the role: bridge, relay or tick.
	DimensionFunction = "FunctionName"
)

// What Lambda tells a function about itself.
const (
	functionNameVariable = "AWS_LAMBDA_FUNCTION_NAME"
	logLevelVariable     = "AWS_LAMBDA_LOG_LEVEL"
)

// The metrics. All except OldestDueSeconds count only the work of the functions, not that of other programs, such as a
// web service that triggers.
const (
	// MetricOldestDueSeconds is how long the oldest due marker has been waiting when a tick begins; 0 when nothing is
	// due. Every tick sends it, so it is missing exactly when no tick runs.
	MetricOldestDueSeconds = "OldestDueSeconds"
	// MetricCommitConflicts counts transactions that collided with another one on the same item and were repeated.
	MetricCommitConflicts = "CommitConflicts"
	// MetricThrottles counts requests that AWS throttled, also those that succeeded when repeated.
	MetricThrottles = "Throttles"
	// MetricWakeupsRefused counts outbox rows that the transport did not take.
	MetricWakeupsRefused = "WakeupsRefused"
	// MetricRunsCreated, MetricRunsSucceeded and MetricRunsFailed count runs.
	MetricRunsCreated   = "RunsCreated"
	MetricRunsSucceeded = "RunsSucceeded"
	MetricRunsFailed    = "RunsFailed"
	// MetricDeadLettersSeen is how many dead-lettered wakeups a tick found, at most one page of them.
	MetricDeadLettersSeen = "DeadLettersSeen"
)

const unitCount, unitSeconds = "Count", "Seconds"

// counted are the metrics of core that are sent. Others, and all durations, are available in the runs: each metric has
// a price.
var counted = map[core.Metric]string{
	core.MetricRunsCreated:    MetricRunsCreated,
	core.MetricRunsSucceeded:  MetricRunsSucceeded,
	core.MetricRunsFailed:     MetricRunsFailed,
	core.MetricWakeupsRefused: MetricWakeupsRefused,
}

// dueWatcher is the ability of a storage to say since when the oldest due marker has been waiting; zero when nothing is
// due.
type dueWatcher interface {
	OldestDue(ctx context.Context, environment runlane.Environment, at time.Time) (time.Time, error)
}

// conflictCounter is the ability of a storage to count its conflicts.
type conflictCounter interface {
	Stats() dynamostore.Stats
}

// meter adds up what happens between two flushes. It is safe for concurrent use: with concurrent invocations a line
// holds the counts since the line before, so sums are right.
type meter struct {
	function string // its name
	level    string // of its lines
	out      io.Writer

	mu        sync.Mutex
	values    map[string]float64
	conflicts int64 // as of the last flush
}

var _ core.Metrics = (*meter)(nil)

// newMeter returns nil, on which every method does nothing, if metrics are off.
func newMeter(function string) *meter {
	if os.Getenv(MetricsVariable) == "off" {
		return nil
	}
	if name := os.Getenv(functionNameVariable); name != "" {
		function = name
	}
	return &meter{
		function: function,
		level:    keptLevel(os.Getenv(logLevelVariable)),
		out:      os.Stdout,
		values:   map[string]float64{},
	}
}

// keptLevel is a level that Lambda keeps when it drops lines below the function's level: a line without a level counts
// as INFO. If Lambda does not tell the function's level, only the highest level is safe.
func keptLevel(functions string) string {
	switch functions {
	case "TRACE", "DEBUG", "INFO":
		return "INFO"
	case "WARN", "ERROR":
		return functions
	default:
		return "FATAL"
	}
}

// attach makes the runtime and the lane that are opened under the context count here.
func (m *meter) attach(ctx context.Context) context.Context {
	if m == nil {
		return ctx
	}
	return host.With(ctx, host.Host{Metrics: m, Throttled: m.throttled})
}

// Count implements core.Metrics.
func (m *meter) Count(name core.Metric, n int64, _ core.Labels) { m.add(counted[name], float64(n)) }

// Observe implements core.Metrics.
func (m *meter) Observe(core.Metric, time.Duration, core.Labels) {}

// throttled counts one refused attempt.
func (m *meter) throttled() { m.add(MetricThrottles, 1) }

func (m *meter) add(name string, n float64) {
	if m == nil || name == "" || n == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[name] += n
}

// set is for values that are measured, not added up.
func (m *meter) set(name string, value float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[name] = value
}

// look measures what waits in the table, before a tick works on it. What cannot be read is logged and left out.
func (m *meter) look(ctx context.Context, rt *core.Runtime) {
	if m == nil {
		return
	}
	if storage, ok := lane.As[dueWatcher](rt.Lane().Storage); ok {
		now := time.Now()
		since, err := storage.OldestDue(ctx, rt.Environment(), now)
		switch {
		case err != nil:
			slog.WarnContext(ctx, "the oldest due marker could not be read", "code", runlane.CodeOf(err), "error", err)
		case since.IsZero():
			m.set(MetricOldestDueSeconds, 0)
		default:
			m.set(MetricOldestDueSeconds, max(now.Sub(since), 0).Seconds())
		}
	}
	if !rt.Lane().Storage.Capabilities().KeepsDeadLetters {
		return
	}
	page, err := rt.DeadLetters().List(ctx, nil)
	if err != nil {
		slog.WarnContext(ctx, "dead letters could not be counted", "code", runlane.CodeOf(err), "error", err)
		return
	}
	m.add(MetricDeadLettersSeen, float64(len(page.Items)))
}

// flush writes the counts since the last flush, if there are any. rt is nil if it could not open.
func (m *meter) flush(rt *core.Runtime) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if rt != nil {
		if storage, ok := lane.As[conflictCounter](rt.Lane().Storage); ok {
			if all := storage.Stats().Conflicts; all > m.conflicts {
				m.values[MetricCommitConflicts] += float64(all - m.conflicts)
				m.conflicts = all
			}
		}
	}
	if len(m.values) == 0 {
		return
	}
	line := embedded(m.values, m.function, m.level, time.Now())
	clear(m.values)
	_, _ = m.out.Write(line) // one write: lines of the logger come whole before or after it
}

// embedded is a line in the embedded metric format. Lambda filters lines by level, and only those that have a timestamp
// too.
func embedded(values map[string]float64, function, level string, at time.Time) []byte {
	type metric struct {
		Name string `json:"Name"`
		Unit string `json:"Unit"`
	}
	type directive struct {
		Namespace  string     `json:"Namespace"`
		Dimensions [][]string `json:"Dimensions"`
		Metrics    []metric   `json:"Metrics"`
	}
	type metadata struct {
		Timestamp         int64       `json:"Timestamp"`
		CloudWatchMetrics []directive `json:"CloudWatchMetrics"`
	}
	d := directive{Namespace: MetricsNamespace, Dimensions: [][]string{{DimensionFunction}}}
	fields := map[string]any{
		DimensionFunction: function, "level": level, "timestamp": at.UTC().Format("2006-01-02T15:04:05.000Z"),
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		unit := unitCount
		if name == MetricOldestDueSeconds {
			unit = unitSeconds
		}
		d.Metrics = append(d.Metrics, metric{name, unit})
		fields[name] = values[name]
	}
	fields["_aws"] = metadata{Timestamp: at.UnixMilli(), CloudWatchMetrics: []directive{d}}
	line, _ := json.Marshal(fields) // finite numbers and text only
	return append(line, '\n')
}
