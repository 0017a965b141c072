package runlaneotel

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/runlane/runlane-go/core"
)

// durations are the bounds of a histogram, in seconds: attempts take milliseconds to minutes, runs up to days.
var durations = []float64{
	.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 21600, 86400,
}

// Metrics makes instruments of a runtime's metrics. Values of sampled work are exemplars with its trace. Two have the
// names of the conventions: messaging.client.sent.messages counts published wakeups, and messaging.process.duration
// is the time of attempts. The others are those of package core, as in runlane.runs_failed, durations in seconds.
func Metrics(options *Options) core.Metrics {
	provider := otel.GetMeterProvider()
	if options != nil && options.MeterProvider != nil {
		provider = options.MeterProvider
	}
	return &metrics{meter: provider.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL))}
}

type metrics struct {
	meter      metric.Meter
	counters   sync.Map // by core.Metric
	histograms sync.Map // by core.Metric
	sets       sync.Map // of attributes, by core.Labels
}

var _ core.ContextMetrics = (*metrics)(nil)

func (m *metrics) Count(name core.Metric, n int64, labels core.Labels) {
	m.CountIn(context.Background(), name, n, labels)
}

func (m *metrics) Observe(name core.Metric, d time.Duration, labels core.Labels) {
	m.ObserveIn(context.Background(), name, d, labels)
}

func (m *metrics) CountIn(ctx context.Context, name core.Metric, n int64, labels core.Labels) {
	made, ok := m.counters.Load(name)
	if !ok {
		instrument, unit := "runlane."+string(name), "{event}"
		if name == core.MetricWakeupsPublished {
			instrument, unit = "messaging.client.sent.messages", "{message}"
		}
		counter, err := m.meter.Int64Counter(instrument, metric.WithUnit(unit))
		if err != nil {
			otel.Handle(err)
		}
		made, _ = m.counters.LoadOrStore(name, counter)
	}
	if counter, ok := made.(metric.Int64Counter); ok {
		counter.Add(ctx, n, m.set(labels))
	}
}

func (m *metrics) ObserveIn(ctx context.Context, name core.Metric, d time.Duration, labels core.Labels) {
	made, ok := m.histograms.Load(name)
	if !ok {
		instrument := "runlane." + string(name)
		if name == core.MetricAttemptTime {
			instrument = "messaging.process.duration"
		}
		histogram, err := m.meter.Float64Histogram(
			instrument, metric.WithUnit("s"), metric.WithExplicitBucketBoundaries(durations...))
		if err != nil {
			otel.Handle(err)
		}
		made, _ = m.histograms.LoadOrStore(name, histogram)
	}
	if histogram, ok := made.(metric.Float64Histogram); ok {
		histogram.Record(ctx, d.Seconds(), m.set(labels))
	}
}

// set keeps the attributes of labels: there are as many as tasks.
func (m *metrics) set(labels core.Labels) metric.MeasurementOption {
	if made, ok := m.sets.Load(labels); ok {
		return made.(metric.MeasurementOption) //nolint:forcetypeassert // stored below
	}
	attrs := []attribute.KeyValue{
		semconv.MessagingSystemKey.String(system), keyEnvironment.String(string(labels.Environment)),
	}
	if labels.TaskID != "" {
		attrs = append(attrs, keyTask.String(string(labels.TaskID)))
	}
	if labels.Queue != "" {
		attrs = append(attrs, semconv.MessagingDestinationName(string(labels.Queue)))
	}
	made, _ := m.sets.LoadOrStore(labels, metric.WithAttributeSet(attribute.NewSet(attrs...)))
	return made.(metric.MeasurementOption) //nolint:forcetypeassert // stored above
}
