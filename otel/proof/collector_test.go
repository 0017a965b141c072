package proof

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.opentelemetry.io/contrib/propagators/aws/xray"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/runlane/runlane-go/internal/tools/freeport"
	runlaneotel "github.com/runlane/runlane-go/otel"
)

// collector is the real one, as a process of its own that prints what it gets.
type collector struct {
	t        *testing.T
	endpoint string
	process  *exec.Cmd
	read     sync.WaitGroup

	mu    sync.Mutex
	lines []string
	flush []func(context.Context) error
}

const configuration = `yaml:
receivers: {otlp: {protocols: {http: {endpoint: "%s"}}}}
exporters: {debug: {verbosity: detailed, use_internal_logger: false}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [debug]}
    metrics: {receivers: [otlp], exporters: [debug]}
`

func startCollector(t *testing.T) *collector {
	t.Helper()
	program := filepath.Join(t.TempDir(), "collector")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./collector").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ports, err := freeport.Choose(1)
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{t: t, endpoint: fmt.Sprint("127.0.0.1:", ports[0])}
	c.process = exec.Command(program, "--config", fmt.Sprintf(configuration, c.endpoint))
	stdout, err := c.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := c.process.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.process.Start(); err != nil {
		t.Fatal(err)
	}
	ready, began, said := make(chan struct{}), false, ""
	c.read.Go(func() { c.scan(stdout, func(line string) { c.lines = append(c.lines, line) }) })
	c.read.Go(func() {
		once := sync.OnceFunc(func() { close(ready) })
		defer once()
		c.scan(stderr, func(line string) {
			said += line + "\n"
			if strings.Contains(line, "Everything is ready") {
				began = true
				once()
			}
		})
	})
	<-ready
	c.mu.Lock()
	defer c.mu.Unlock()
	if !began {
		t.Fatalf("the collector did not start:\n%s", said)
	}
	return c
}

func (c *collector) scan(from io.Reader, each func(line string)) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		c.mu.Lock()
		each(lines.Text())
		c.mu.Unlock()
	}
}

// options are those of a service whose SDK sends to the collector.
func (c *collector) options(service string) *runlaneotel.Options {
	c.t.Helper()
	of := resource.NewSchemaless(attributeOf("service.name", service))
	traces, err := otlptracehttp.New(c.t.Context(), otlptracehttp.WithEndpoint(c.endpoint), otlptracehttp.WithInsecure())
	if err != nil {
		c.t.Fatal(err)
	}
	metrics, err := otlpmetrichttp.New(c.t.Context(), otlpmetrichttp.WithEndpoint(c.endpoint), otlpmetrichttp.WithInsecure())
	if err != nil {
		c.t.Fatal(err)
	}
	spans := sdktrace.NewTracerProvider(sdktrace.WithBatcher(traces), sdktrace.WithResource(of))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metrics)), sdkmetric.WithResource(of))
	c.flush = append(c.flush, spans.Shutdown, meters.Shutdown)
	return &runlaneotel.Options{
		TracerProvider: spans, MeterProvider: meters,
		Propagator: propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, xray.Propagator{}),
	}
}

// printed ends the services and the collector, and returns what it printed.
func (c *collector) printed() []string {
	c.t.Helper()
	for _, flush := range c.flush {
		if err := flush(context.Background()); err != nil {
			c.t.Error(err)
		}
	}
	if err := c.process.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Error(err)
	}
	c.read.Wait()
	if err := c.process.Wait(); err != nil {
		c.t.Error(err)
	}
	return c.lines
}

// span is one of the collector's.
type span struct {
	trace, parent, id, name, kind, service, start string
	links                                         []string
}

// spansIn reads the collector's own form.
func spansIn(lines []string) (spans []*span, exemplars map[string]int) {
	exemplars = map[string]int{}
	var service string
	var one *span
	inLink, inExemplar := false, false
	for _, line := range lines {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		key, value = strings.TrimSpace(strings.TrimPrefix(key, "-> ")), strings.TrimSpace(value)
		switch {
		case strings.HasPrefix(line, "Resource"):
			one, inExemplar = nil, false
		case strings.HasPrefix(key, "service.name"):
			service = strings.TrimSuffix(strings.TrimPrefix(value, "Str("), ")")
		case strings.HasPrefix(line, "Span #"):
			one, inLink, inExemplar = &span{service: service}, false, false
			spans = append(spans, one)
		case strings.HasPrefix(key, "SpanLink #"):
			inLink = true
		case strings.HasPrefix(key, "Exemplar #"):
			inExemplar = true
		case inExemplar && key == "Trace ID":
			exemplars[value]++
		case one == nil:
		case inLink && key == "ID":
			one.links = append(one.links, value)
		case inLink:
		case key == "Trace ID":
			one.trace = value
		case key == "Parent ID":
			one.parent = value
		case key == "ID":
			one.id = value
		case key == "Name":
			one.name = value
		case key == "Kind":
			one.kind = value
		case key == "Start time":
			one.start = value
		}
	}
	return spans, exemplars
}

// tree is the joined trace that holds a span of the service with this name: a line for each span, in order of time.
func tree(spans []*span, service, name string) string {
	names, below := map[string]string{}, map[string][]*span{}
	var of *span
	for _, s := range spans {
		names[s.id] = s.name
		below[s.trace+s.parent] = append(below[s.trace+s.parent], s)
		if s.service == service && s.name == name {
			of = s
		}
	}
	if of == nil {
		return ""
	}
	var text strings.Builder
	var write func(parent, indent string)
	write = func(parent, indent string) {
		slices.SortStableFunc(below[of.trace+parent], func(a, b *span) int { return strings.Compare(a.start, b.start) })
		for _, s := range below[of.trace+parent] {
			fmt.Fprintf(&text, "%s%s: %s %s", indent, s.service, s.name, s.kind)
			for _, id := range s.links {
				fmt.Fprintf(&text, " -> %s", names[id])
			}
			text.WriteString("\n")
			write(s.id, indent+"  ")
		}
	}
	write("", "")
	return text.String()
}
