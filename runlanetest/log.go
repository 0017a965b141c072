package runlanetest

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

// testLog writes to the log of a test and discards everything after its end: a handler may still log then, and the
// testing package would panic.
type testLog struct {
	mu   sync.Mutex
	out  io.Writer
	over bool
}

func newTestLog(t testing.TB) *testLog {
	t.Helper()
	l := &testLog{out: t.Output()}
	t.Cleanup(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.over = true
	})
	return l
}

func (l *testLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return len(b), nil
	}
	return l.out.Write(b)
}

// newLogger writes text lines. now replaces the time of a record; nil omits it.
func newLogger(to io.Writer, now func() time.Time) *slog.Logger {
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{
		Level: slog.LevelInfo,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			switch {
			case a.Key != slog.TimeKey || len(groups) > 0:
				return a
			case now == nil:
				return slog.Attr{}
			default:
				return slog.Time(slog.TimeKey, now())
			}
		},
	}))
}

type lineBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lineBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(text)
}

func (b *lineBuffer) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return splitLines(b.text.String())
}

func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
