package cli

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

// batchSize is the number of lines triggered together.
const batchSize = 100

type batch struct {
	s       *session
	rt      *core.Runtime
	chosen  *triggerFlags
	book    *taskBook
	task    string
	id      string
	pending []core.BatchItem
	lines   []int // line numbers of pending
	total   shown.Batch
}

// triggerBatch creates a run for each line. The run's ID comes from the line, or from the batch's ID and the line's
// number, so that a batch can be repeated.
func (s *session) triggerBatch(ctx context.Context, chosen *triggerFlags, task, name, id string) error {
	if chosen.runID != "" || chosen.idempotencyKey != "" || chosen.singletonKey != "" {
		return usagef("", "--id, --idempotency-key and --singleton-key belong into the lines of a batch")
	}
	input := s.typed(ctx)
	if name != "-" {
		file, err := s.input(name)
		if err != nil {
			return usagef("check its name and its permissions", "%s cannot be read: %v", name, err)
		}
		defer file.Close()
		input = file
	}
	rt, err := s.rt(ctx)
	if err != nil {
		return err
	}
	if id == "" {
		id = "batch_" + strings.ToLower(rand.Text()[:16])
	}
	if err := runlane.RunID(id + "-0").Validate(); err != nil {
		return usagef("repeat the one that the interrupted batch printed; ", "--batch-id is not an id")
	}
	b := &batch{
		s:      s,
		rt:     rt,
		chosen: chosen,
		task:   task,
		id:     id,
		total:  shown.Batch{Batch: id},
		book:   s.taskBook(rt, chosen.foreign, true),
	}
	if err := b.read(ctx, input); err != nil {
		s.note("%d runs were made, %d were there, %d lines failed. The rest: repeat the command with --batch-id %s",
			b.total.Created, b.total.Existing, b.total.Failed, id)
		return err
	}
	return b.end()
}

func (b *batch) end() error {
	if b.s.json {
		if err := b.s.emit("batch", &b.total); err != nil {
			return err
		}
	} else {
		b.s.line("created: %d, there already: %d, failed: %d", b.total.Created, b.total.Existing, b.total.Failed)
	}
	if b.total.Failed > 0 {
		b.s.note("correct the lines that failed and repeat the command with --batch-id %s: nothing is made twice", b.id)
		return &exitError{code: ExitFailed}
	}
	return nil
}

func (b *batch) read(ctx context.Context, input io.Reader) error {
	lines := bufio.NewScanner(input)
	lines.Buffer(make([]byte, 0, 64<<10), maxInput)
	number := 0
	for lines.Scan() {
		number++
		if ctx.Err() != nil {
			return ctx.Err()
		}
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		item, err := b.item(ctx, number, bytes.Clone(text))
		if exitCode(err) == ExitUnavailable { // the tasks cannot be looked up, which is not the line's fault
			return err
		}
		if err != nil {
			b.fail(number, err)
			continue
		}
		b.pending, b.lines = append(b.pending, item), append(b.lines, number)
		if len(b.pending) == batchSize {
			if err := b.flush(ctx); err != nil {
				return err
			}
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := lines.Err(); err != nil {
		return errors.Join(
			b.flush(ctx),
			usagef("keep lines below the limit of a payload", "line %d cannot be read: %v", number+1, err),
		)
	}
	return b.flush(ctx)
}

func (b *batch) item(ctx context.Context, number int, text []byte) (core.BatchItem, error) {
	line, err := readBatchLine(text)
	if err != nil {
		return core.BatchItem{}, err
	}
	if line.Task == "" {
		line.Task = runlane.TaskID(b.task)
	}
	if line.Task == "" {
		return core.BatchItem{}, usagef("name it in the line, or as the command's argument", "the line names no task")
	}
	if line.Payload == nil {
		line.Payload = json.RawMessage("null")
	}
	options, err := b.options(number, &line)
	if err != nil {
		return core.BatchItem{}, err
	}
	given := b.chosen.given
	given.Idempotency, given.Singleton = line.IdempotencyKey != nil, line.SingletonKey != nil
	given.Concurrency = given.Concurrency || line.ConcurrencyKey != nil
	call, err := b.book.call(ctx, line.Task, line.Payload, options, given)
	return core.BatchItem{Call: call, Options: options}, err
}

func (b *batch) options(number int, line *batchLine) (*runlane.TriggerOptions, error) {
	o, err := b.chosen.options(b.s)
	if err != nil {
		return nil, err
	}
	o.RunID = line.RunID
	for _, key := range []struct{ given, to *string }{
		{line.IdempotencyKey, &o.IdempotencyKey},
		{line.SingletonKey, &o.SingletonKey},
		{line.ConcurrencyKey, &o.ConcurrencyKey},
	} {
		if key.given != nil {
			*key.to = *key.given
		}
	}
	if line.Meta != nil {
		o.Meta = line.Meta
	}
	if line.Queue != "" {
		o.Queue = runlane.Queue{Name: line.Queue}
	}
	if line.Priority != nil {
		o.Priority = *line.Priority
	}
	if line.Delay != "" {
		if o.Delay, err = runlane.ParseDuration(line.Delay); err != nil {
			return nil, err
		}
	}
	if line.RunAt != "" {
		if o.RunAt, err = readTime(line.RunAt); err != nil {
			return nil, err
		}
	}
	if o.RunID == "" { // even with a key: a failed run does not retain it
		o.RunID = runlane.RunID(fmt.Sprintf("%s-%d", b.id, number))
	}
	return o, nil
}

// flush triggers the pending lines. It waits while the storage is overloaded. An error ends the batch; runs created
// before it are counted.
func (b *batch) flush(ctx context.Context) error {
	for len(b.pending) > 0 {
		err := b.send(ctx)
		busy, ok := errors.AsType[*runlane.Error](err)
		if !ok || busy.Code != runlane.ErrOverloaded {
			return err
		}
		select {
		case <-time.After(busy.RetryAfter):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// send triggers the pending lines. Those that an overloaded storage refused stay.
func (b *batch) send(ctx context.Context) error {
	results, err := b.rt.TriggerBatch(ctx, b.pending)
	left := 0
	for i, result := range results {
		if errors.Is(result.Err, runlane.ErrOverloaded) {
			b.pending[left], b.lines[left] = b.pending[i], b.lines[i]
			left++
			continue
		}
		if errors.Is(err, runlane.ErrOverloaded) && exitCode(result.Err) == ExitUnavailable {
			err = result.Err // which is no reason to wait
		}
		if result.Err != nil {
			if err == nil || exitCode(result.Err) != exitCode(err) { // otherwise the batch's own error reports it
				b.fail(b.lines[i], result.Err)
			}
			continue
		}
		if showErr := b.made(b.lines[i], result.Result); showErr != nil && err == nil {
			err = showErr
		}
	}
	b.pending, b.lines = b.pending[:left], b.lines[:left]
	if !b.s.json && err == nil {
		b.s.note("%s", plural(b.total.Created+b.total.Existing, "run", "runs"))
	}
	return errors.Join(err, b.s.results.Flush())
}

func (b *batch) made(line int, result *runlane.TriggerResult) error {
	b.total.Count(result.Outcome)
	if !b.s.json {
		return nil
	}
	return b.s.emit("triggered", shown.TriggeredOf(result, line))
}

func (b *batch) fail(line int, err error) {
	b.total.Failed++
	if !b.s.json {
		b.s.note("line %d:", line)
		b.s.report(err)
		return
	}
	f := struct {
		Line int `json:"line"`
		fault
	}{line, b.s.describe(err)}
	text, encodeErr := shown.Object("error", &f)
	if encodeErr != nil {
		b.s.report(err)
		return
	}
	fmt.Fprintf(b.s.stderr, "%s\n", text)
}
