package core

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
)

const (
	// logTail is the room for the last lines of an attempt, the rest of runlane.MaxLogBytes that for its first ones. A
	// line is at most as long as the tail.
	logTail = 16 << 10
	logHead = runlane.MaxLogBytes - logTail

	// The first lines are written a second after the first of them, then at intervals of a tenth of the time since, at
	// most logPause: a short attempt costs one write, a long one a bounded number.
	logPause = 10 * time.Second
	// logWrite bounds a write with its repetitions. At the end of an attempt its outcome waits for it.
	logWrite = 2 * time.Second
)

// attemptLog are the lines that an attempt logged and that are not written yet. The first ones are written in numbered
// parts as they come. The last ones are written at the end, as one part that a repeated end replaces.
type attemptLog struct {
	x *execution

	writing sync.Mutex // held during a write, before mu

	mu      sync.Mutex
	begun   time.Time // of the first line, by the real clock
	head    []json.RawMessage
	size    int // of all lines that ever were in head
	full    bool
	tail    []json.RawMessage
	tailed  int // bytes in tail
	dropped int // lines before tail
	parts   int // numbered parts written
	last    time.Time
	timer   *time.Timer
	over    bool
}

// keptLines is the stored form of a part.
type keptLines struct {
	Dropped int               `json:"dropped,omitempty"` // lines lost before these
	Lines   []json.RawMessage `json:"lines,omitempty"`
}

// Write takes one line of slog.JSONHandler.
func (l *attemptLog) Write(line []byte) (int, error) {
	n := len(line)
	line = bytes.TrimSuffix(line, []byte("\n"))
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.over:
	case len(line) > logTail || !json.Valid(line):
		l.dropped++
	case !l.full && l.size+len(line) <= logHead:
		l.size += len(line)
		l.head = append(l.head, bytes.Clone(line))
		l.flushLater()
	default:
		l.full = true
		l.tail, l.tailed = append(l.tail, bytes.Clone(line)), l.tailed+len(line)
		for ; l.tailed > logTail; l.dropped++ {
			l.tailed -= len(l.tail[0])
			l.tail = slices.Delete(l.tail, 0, 1)
		}
	}
	return n, nil
}

// flushLater requires the lock.
func (l *attemptLog) flushLater() {
	if l.timer != nil {
		return
	}
	if l.begun.IsZero() {
		l.begun = time.Now()
	}
	wait := min(max(time.Second, time.Since(l.begun)/10), logPause)
	l.timer = time.AfterFunc(wait, func() { l.flush(l.x.ctx, false) }) // stopped with the attempt
}

// flush writes the first lines; with over also the last ones, and later lines are lost. A failed write is repeated
// with the next one, if there is one.
func (l *attemptLog) flush(ctx context.Context, over bool) {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	if l.over {
		l.mu.Unlock()
		return
	}
	l.over = over
	head, tail, part := l.head, keptLines{Dropped: l.dropped, Lines: slices.Clone(l.tail)}, l.parts
	l.mu.Unlock()

	var err error
	if len(head) > 0 {
		if err = l.write(ctx, fmt.Sprintf("%04d", part), keptLines{Lines: head}, false); err == nil {
			l.mu.Lock()
			l.head, l.parts = l.head[len(head):], part+1
			l.mu.Unlock()
		}
	}
	if over && err == nil && (tail.Dropped > 0 || len(tail.Lines) > 0) {
		err = l.write(ctx, "tail", tail, true)
	}
	if err != nil {
		l.x.rt.logger.LogAttrs(ctx, slog.LevelWarn, "log of the attempt was not kept",
			append(runAttrs(l.x.started), errorAttrs(err)...)...)
	}
}

func (l *attemptLog) write(ctx context.Context, part string, lines keptLines, replace bool) error {
	result, err := json.Marshal(lines)
	if err != nil {
		return err
	}
	if at := l.x.rt.now(); at.After(l.last) { // a clock may be set back
		l.last = at
	}
	limited := new(detachedContext).start(ctx, logWrite)
	defer limited.stop()
	record := &runlane.StepRecord{
		Name:   logName(l.x.started.Counters.Attempts, part),
		Kind:   runlane.StepKindLog,
		At:     l.last,
		Result: result,
	}
	for wait := outcomeBackoffBase; ; wait *= 2 {
		_, err = l.x.put(limited, record, replace)
		if err == nil || !errors.Is(err, runlane.ErrStorageUnavailable) || !pause(limited, l.x.rt.world.around(wait)) {
			return err
		}
	}
}

// logName is in the order of attempts, then of parts: a number is before "tail".
func logName(attempt int, part string) string { return fmt.Sprintf("%010d:%s", attempt, part) }

// flushLog writes the kept log at the end of an attempt, before its outcome: an ended attempt has its log.
func (x *execution) flushLog(ctx context.Context) {
	if x.kept != nil {
		x.kept.flush(ctx, true)
	}
}

// keeping returns a handler that also keeps the lines.
func (x *execution) keeping(own slog.Handler) slog.Handler {
	lines := slog.NewJSONHandler(x.kept, &slog.HandlerOptions{Level: slog.Level(-1 << 30)})
	return &keepingHandler{own: own, lines: lines, now: x.rt.now}
}

// keepingHandler passes lines on to the program's own handler, and keeps them with the time of the runtime's clock.
type keepingHandler struct {
	own, lines slog.Handler
	now        func() time.Time
}

func (h *keepingHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || h.own.Enabled(ctx, level)
}

func (h *keepingHandler) Handle(ctx context.Context, r slog.Record) error {
	kept := r.Clone()
	kept.Time = h.now()
	err := h.lines.Handle(ctx, kept)
	if !h.own.Enabled(ctx, r.Level) {
		return err
	}
	return h.own.Handle(ctx, r)
}

func (h *keepingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &keepingHandler{h.own.WithAttrs(attrs), h.lines.WithAttrs(attrs), h.now}
}

func (h *keepingHandler) WithGroup(name string) slog.Handler {
	return &keepingHandler{h.own.WithGroup(name), h.lines.WithGroup(name), h.now}
}
