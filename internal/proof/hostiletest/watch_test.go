package hostiletest_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// mark must not be found where it was not put. Each place has its own ending, so that a find says where it came from.
const mark = "mArK7Q"

// watch sees everything that a program shows of itself: log lines, errors, metrics. It is a log's writer and core.Metrics.
type watch struct {
	mu      sync.Mutex
	lines   bytes.Buffer
	errors  []string
	metrics []string
}

func (w *watch) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines.Write(p)
}

func (w *watch) Count(name core.Metric, _ int64, labels core.Labels) {
	w.mu.Lock()
	w.metrics = append(w.metrics, fmt.Sprintf("%s %+v", name, labels))
	w.mu.Unlock()
	panic("metric " + mark)
}

func (w *watch) Observe(name core.Metric, _ time.Duration, labels core.Labels) {
	w.Count(name, 1, labels)
}

// refused notes an error that a caller is shown. It has to be one.
func (w *watch) refused(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s was not refused", what)
		return
	}
	w.failed(err)
}

func (w *watch) failed(err error) {
	if err == nil {
		return
	}
	text := err.Error()
	if e, ok := errors.AsType[*runlane.Error](err); ok {
		text += fmt.Sprintf(" %s %v", e.Hint, e.Meta)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errors = append(w.errors, text)
}

// found are the lines with a mark.
func (w *watch) found() (lines []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	shown := append(strings.Split(w.lines.String(), "\n"), w.errors...)
	for _, line := range append(shown, w.metrics...) {
		if strings.Contains(line, mark) {
			lines = append(lines, line)
		}
	}
	return lines
}
