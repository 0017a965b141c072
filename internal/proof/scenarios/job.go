package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/runlane/runlane-go"
)

// logBuffer keeps log lines.
type logBuffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.data.Write(p)
}

// lines are the records with the message.
func (l *logBuffer) lines(t testing.TB, message string) []map[string]any {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []map[string]any
	for _, line := range strings.Split(strings.TrimSpace(l.data.String()), "\n") {
		record := map[string]any{}
		if line == "" {
			continue
		}
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatal(err)
		}
		if record[slog.MessageKey] == message {
			found = append(found, record)
		}
	}
	return found
}

func (l *logBuffer) contains(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.data.String(), text)
}

// jobPayload is what most scenarios trigger with.
type jobPayload struct {
	N int `json:"n"`
}

// job is a task with a handler that returns what f does.
func job(id runlane.TaskID, o *runlane.TaskOptions[jobPayload], f func(ctx context.Context, a *runlane.Attempt) error) (
	*runlane.Task[jobPayload], runlane.Handler,
) {
	task := runlane.NewTask(id, o)
	return task, task.Handle(func(ctx context.Context, a *runlane.Attempt, _ jobPayload) error { return f(ctx, a) })
}

func succeed(context.Context, *runlane.Attempt) error { return nil }

func hasType(records []runlane.EventRecord, t runlane.EventType) bool {
	return slices.ContainsFunc(records, func(r runlane.EventRecord) bool { return r.Type() == t })
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
