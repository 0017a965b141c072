package core

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// LogOptions of [Runs.Logs]. nil means all attempts, without following.
type LogOptions struct {
	// Attempt reads the log of this attempt only. 0 means all.
	Attempt int
	// After resumes behind a line, see [LogLine].
	After runlane.Cursor
	// Follow waits at the end for more lines, until the run is terminal (with Attempt: until that attempt has ended) or
	// the context ends. Lines come when their attempt has written them: after a second, later after up to ten.
	Follow bool
}

// LogLine is a line that an attempt logged, or a note about lines that are missing.
type LogLine struct {
	Attempt int `json:"attempt"`
	// Line is the JSON of a slog.JSONHandler: time, level, msg and the attributes of the call.
	Line json.RawMessage `json:"line,omitempty"`
	// Dropped counts lines that were not kept, see runlane.MaxLogBytes. They were logged before the next line.
	Dropped int `json:"dropped,omitempty"`
	// Fault is the reason why this process could not decode lines that a runlane.Codec encoded.
	Fault string `json:"fault,omitempty"`

	// Cursor resumes behind this line.
	Cursor runlane.Cursor `json:"cursor"`
}

// logsLast is the longest pause of a follower of a storage in this process or on this machine.
const logsLast = feedLast

// Logs walks the kept log of a run, see runlane.TaskOptions.KeepLogs. With Follow it then polls for more, after 10 ms,
// then at growing intervals: up to half a second on a lane in memory or in a file, else up to 5 s.
//
// An error is the last thing it yields:
//
//   - runlane.ErrRunNotFound: the run does not exist or was pruned meanwhile.
//   - runlane.ErrValidationFailed: the options are impossible.
//   - runlane.ErrCapabilityUnsupported: the storage keeps no records.
//   - runlane.ErrOperationCancelled: ctx ended while it followed.
//   - runlane.ErrConfigurationInvalid: the runtime was closed meanwhile.
func (r *Runs) Logs(ctx context.Context, id runlane.RunID, options *LogOptions) iter.Seq2[LogLine, error] {
	if options == nil {
		options = &LogOptions{}
	}
	return func(yield func(LogLine, error) bool) {
		w := logWalk{rt: r.rt, id: id, options: *options, yield: yield}
		if err := w.walk(ctx); err != nil {
			yield(LogLine{}, err)
		}
	}
}

type logWalk struct {
	rt      *Runtime
	id      runlane.RunID
	options LogOptions
	yield   func(LogLine, error) bool

	part    string // name of the last record that was read; "" before the first
	read    int    // lines of it that were yielded
	stopped bool   // the caller wants no more
}

// walk returns the last thing to yield, nil for none.
func (w *logWalk) walk(ctx context.Context) error {
	if err := w.rt.gate.enterLate(); err != nil {
		return err
	}
	defer w.rt.gate.leave()
	if err := firstError(w.check(), w.rt.operatorReads()); err != nil {
		return err
	}
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer w.rt.gate.onClose(func() { cancel(errFeedClosed) })()
	err := w.follow(waiting)
	switch {
	case context.Cause(waiting) == errFeedClosed: //nolint:errorlint // our own, never wrapped
		return errFeedClosed
	case err != nil && ctx.Err() != nil:
		return cancelled(ctx, w.id)
	default:
		return err
	}
}

func (w *logWalk) check() error {
	capabilities := w.rt.storage().Capabilities()
	switch {
	case !capabilities.SuspendsRuns:
		return unsupported("the storage keeps no logs")
	case w.options.Attempt < 0:
		return invalidInput("attempts count from 1; 0 means all", "LogOptions.Attempt is %d", w.options.Attempt)
	case w.options.After == "":
		return w.id.Validate()
	}
	text, err := openCursor(w.options.After, w.scope(), "LogOptions.After")
	if err != nil {
		return err
	}
	read, part, found := strings.Cut(text, " ")
	if w.read, err = strconv.Atoi(read); err != nil || !found || w.read < 1 {
		return foreignCursor("LogOptions.After")
	}
	w.part = part
	return w.id.Validate()
}

func (w *logWalk) scope() string { return "logs " + w.rt.environment.Name() + " " + string(w.id) }

func (w *logWalk) follow(ctx context.Context) error {
	longest := waitLast
	if w.rt.storage().Capabilities().FeedsCommits {
		longest = logsLast
	}
	for wait := waitFirst; ; wait = min(wait*3/2, longest) {
		run, err := w.rt.bare(ctx, w.id)
		if err != nil {
			return err
		}
		before, seen := w.part, w.read
		if err := w.lines(ctx, run); err != nil || w.stopped || !w.options.Follow || w.over(run) {
			return err
		}
		if w.part != before || w.read != seen {
			wait = waitFirst
		}
		if !pause(ctx, w.rt.world.around(wait)) {
			return cancelled(ctx, w.id)
		}
	}
}

// over reports that the run, as it was before the last look, logs no more.
func (w *logWalk) over(run *runlane.Run) bool {
	attempts := run.Counters.Attempts
	return run.Status.Terminal() || w.options.Attempt > 0 &&
		(attempts > w.options.Attempt || attempts == w.options.Attempt && !run.Status.Owned())
}

// lines yields what was not yielded yet.
func (w *logWalk) lines(ctx context.Context, run *runlane.Run) error {
	q := lane.RecordQuery{
		PageQuery: lane.PageQuery{Environment: w.rt.environment, Limit: runlane.DefaultPageLimit},
		RunID:     w.id,
		CreatedAt: run.CreatedAt,
		Logs:      true,
		From:      w.part,
	}
	if n := w.options.Attempt; n > 0 {
		q.From, q.Until = max(q.From, logName(n, "")), logName(n+1, "")
	}
	for {
		page, err := w.rt.storage().ListRecords(ctx, &q)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if w.record(&page.Items[i]); w.stopped {
				return nil
			}
		}
		if q.After = page.Next; q.After == "" {
			return nil
		}
	}
}

// record yields the lines of a part behind those of it that were yielded.
func (w *logWalk) record(r *lane.StepRecord) {
	if r.Name != w.part {
		w.part, w.read = r.Name, 0
	}
	var kept keptLines
	fault := r.Fault
	if fault == "" && json.Unmarshal(r.Result, &kept) != nil {
		fault = "it is stored in a form that this version does not know"
	}
	var lines []LogLine
	if fault != "" {
		lines = append(lines, LogLine{Fault: fault})
	}
	if kept.Dropped > 0 {
		lines = append(lines, LogLine{Dropped: kept.Dropped})
	}
	for _, line := range kept.Lines {
		lines = append(lines, LogLine{Line: line})
	}
	for ; w.read < len(lines) && !w.stopped; w.read++ {
		line := lines[w.read]
		line.Attempt = r.Attempt
		line.Cursor = sealCursor(w.scope(), fmt.Sprintf("%d %s", w.read+1, w.part))
		w.stopped = !w.yield(line, nil)
	}
}
