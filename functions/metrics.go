package functions

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/host"
	"github.com/runlane/runlane-go/lane"
)

// MetricsVariable turns the functions' metrics off with "off".
const MetricsVariable = "RUNLANE_METRICS"

// Metrics are log lines in CloudWatch's embedded metric format, in this namespace: at most one an invocation, with the
// dimension DimensionFunction, and one for each task with failed runs, with the three others. This needs no request.
const (
	MetricsNamespace = "Runlane"
	// DimensionFunction is the name of the Lambda function, so deployments never share a metric. Outside Lambda it is
	// the role: bridge, relay or tick.
	DimensionFunction = "FunctionName"
	// DimensionTable, DimensionEnvironment and DimensionTask are those of MetricTaskRunsFailed, so that all functions of
	// an environment share it.
	DimensionTable       = "TableName"
	DimensionEnvironment = "Environment"
	DimensionTask        = "TaskId"
)

// Variables that Lambda sets.
const (
	functionNameVariable = "AWS_LAMBDA_FUNCTION_NAME"
	logLevelVariable     = "AWS_LAMBDA_LOG_LEVEL"
)

// The metrics. Except for OldestDueSeconds they count only the work of the functions, not of other programs.
const (
	// MetricOldestDueSeconds is how long the oldest due marker has been waiting when a tick starts, or 0. Every tick
	// sends it, so it is missing exactly when no tick runs.
	MetricOldestDueSeconds = "OldestDueSeconds"
	// MetricCommitConflicts counts transactions repeated after a conflict on the same item.
	MetricCommitConflicts = "CommitConflicts"
	// MetricThrottles counts requests that AWS throttled, also if a retry succeeded.
	MetricThrottles = "Throttles"
	// MetricWakeupsRefused counts outbox rows that the transport refused.
	MetricWakeupsRefused = "WakeupsRefused"
	// MetricRunsCreated, MetricRunsSucceeded and MetricRunsFailed count runs.
	MetricRunsCreated   = "RunsCreated"
	MetricRunsSucceeded = "RunsSucceeded"
	MetricRunsFailed    = "RunsFailed"
	// MetricTaskRunsFailed counts failed runs by task. A process names at most 100 tasks; the others count as OtherTasks.
	MetricTaskRunsFailed = "TaskRunsFailed"
	// MetricDeadLettersSeen is how many dead letters a tick found, at most one page.
	MetricDeadLettersSeen = "DeadLettersSeen"
)

// OtherTasks stands for the tasks beyond the first 100 with failed runs.
const OtherTasks = "(others)"

const namedTasks = 100

const unitCount, unitSeconds = "Count", "Seconds"

// counted are the metrics of core to send. Each metric has a price; others, and all durations, can be read from the
// runs.
var counted = map[core.Metric]string{
	core.MetricRunsCreated:    MetricRunsCreated,
	core.MetricRunsSucceeded:  MetricRunsSucceeded,
	core.MetricRunsFailed:     MetricRunsFailed,
	core.MetricWakeupsRefused: MetricWakeupsRefused,
}

// dueWatcher is a storage that knows the time of its oldest due marker; zero if none is due.
type dueWatcher interface {
	OldestDue(ctx context.Context, environment runlane.Environment, at time.Time) (time.Time, error)
}

type conflictCounter interface {
	Stats() dynamostore.Stats
}

// meter adds up counts between two flushes and is safe for concurrent use.
type meter struct {
	function string // name
	level    string // level of its lines
	table    string
	out      io.Writer

	mu        sync.Mutex
	values    map[string]float64
	conflicts int64 // at the last flush
	failed    map[failedTask]float64
	named     map[failedTask]bool // since the process began
}

type failedTask struct {
	environment runlane.Environment
	task        string
}

var _ core.Metrics = (*meter)(nil)

// newMeter returns nil if metrics are off. Methods of a nil meter do nothing.
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
		table:    os.Getenv(awslane.TableVariable),
		out:      os.Stdout,
		values:   map[string]float64{},
		failed:   map[failedTask]float64{},
		named:    map[failedTask]bool{},
	}
}

// keptLevel is a log level that Lambda does not drop: it drops lines below the function's level, and a line without a
// level is INFO. FATAL is safe for an unknown level.
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

// attach makes the runtime and the lane opened under the context count here.
func (m *meter) attach(ctx context.Context) context.Context {
	if m == nil {
		return ctx
	}
	return host.With(ctx, host.Host{Metrics: m, Throttled: m.throttled})
}

// Count implements core.Metrics.
func (m *meter) Count(name core.Metric, n int64, labels core.Labels) {
	m.add(counted[name], float64(n))
	if name == core.MetricRunsFailed && m.table != "" {
		m.addFailed(labels, float64(n))
	}
}

func (m *meter) addFailed(labels core.Labels, n float64) {
	quoted := strconv.QuoteToASCII(string(labels.TaskID)) // CloudWatch takes ASCII
	of := failedTask{labels.Environment, quoted[1 : len(quoted)-1]}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.named[of] && len(m.named) >= namedTasks {
		of.task = OtherTasks
	} else {
		m.named[of] = true
	}
	m.failed[of] += n
}

// Observe implements core.Metrics.
func (m *meter) Observe(core.Metric, time.Duration, core.Labels) {}

func (m *meter) throttled() { m.add(MetricThrottles, 1) }

func (m *meter) add(name string, n float64) {
	if m == nil || name == "" || n == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[name] += n
}

func (m *meter) set(name string, value float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[name] = value
}

// measure reads the backlog of the table before a tick works on it. It logs read errors.
func (m *meter) measure(ctx context.Context, rt *core.Runtime) {
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

// flush writes the counts since the last flush, if any. rt is nil if it could not open.
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
	at := time.Now()
	if len(m.values) > 0 {
		m.write(embedded(m.values, map[string]string{DimensionFunction: m.function}, m.level, at))
		clear(m.values)
	}
	for of, n := range m.failed {
		m.write(embedded(map[string]float64{MetricTaskRunsFailed: n}, map[string]string{
			DimensionTable: m.table, DimensionEnvironment: of.environment.Name(), DimensionTask: of.task,
		}, m.level, at))
	}
	clear(m.failed)
}

// write makes one write of a line, so that the logger's lines stay whole.
func (m *meter) write(line []byte) { _, _ = m.out.Write(line) }

// embedded returns a line in the embedded metric format. Lambda filters a line by its level only if it has a timestamp
// too.
func embedded(values map[string]float64, dimensions map[string]string, level string, at time.Time) []byte {
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
	names := slices.Sorted(maps.Keys(dimensions))
	d := directive{Namespace: MetricsNamespace, Dimensions: [][]string{names}}
	fields := map[string]any{"level": level, "timestamp": at.UTC().Format("2006-01-02T15:04:05.000Z")}
	for _, name := range names {
		fields[name] = dimensions[name]
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
	line, _ := json.Marshal(fields) // finite numbers and strings always encode
	return append(line, '\n')
}
