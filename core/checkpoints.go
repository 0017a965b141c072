package core

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
)

// checkpoints are an attempt's pending checkpoints. Each name is written at most once a second, like progress notes.
type checkpoints struct {
	mu      sync.Mutex
	written map[string]time.Time // by the real clock
	pending map[string]*runlane.StepRecord
	timer   *time.Timer
	over    bool
}

// Checkpoint implements runlane.StepHost.
func (x *execution) Checkpoint(ctx context.Context, call runlane.StepCall, result json.RawMessage) error {
	record := &runlane.StepRecord{
		Name:    call.Name,
		Kind:    call.Kind,
		Attempt: x.started.Counters.Attempts,
		At:      x.rt.now(),
		Type:    call.Type,
		Result:  result,
	}
	if err := x.noteCheckpoint(ctx, record); err != nil {
		return err
	}
	c := &x.checkpoints
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nil
	}
	last, before := c.written[call.Name]
	if wait := progressInterval - time.Since(last); before && wait > 0 {
		if len(c.pending) == 0 {
			c.timer = time.AfterFunc(wait, func() { x.flushCheckpoints(x.ctx, false) }) // flushCheckpoints stops it
		}
		c.pending[call.Name] = record
		return nil
	}
	return x.writeCheckpoint(ctx, record)
}

// noteCheckpoint validates a checkpoint and makes Restore return it.
func (x *execution) noteCheckpoint(ctx context.Context, record *runlane.StepRecord) error {
	if err := x.checkName(record.Name); err != nil {
		return err
	}
	s := &x.steps
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := x.load(ctx); err != nil {
		return err
	}
	known := s.known[record.Name]
	if err := x.checkKind(runlane.StepCall{Name: record.Name, Kind: record.Kind}, known); err != nil {
		return err
	}
	if known == nil {
		if err := x.checkRecordLimit(record.Name); err != nil {
			return err
		}
		known = &runlane.StepRecord{}
	}
	if err := x.rt.checkSize(fmt.Sprintf("checkpoint %q", record.Name), record.Result); err != nil {
		return err
	}
	size := s.bytes - len(known.Result) + len(record.Result)
	if size > runlane.MaxStepsBytes {
		return stepFault(x, record.Name, "store bulk elsewhere and record a reference",
			"would make the results of this run %d bytes, more than %d", size, runlane.MaxStepsBytes)
	}
	if record.At.Before(known.At) && known.Attempt == record.Attempt {
		record.At = known.At // the clock was set back
	}
	s.known[record.Name], s.bytes = record, size
	return nil
}

// writeCheckpoint requires the lock.
func (x *execution) writeCheckpoint(ctx context.Context, record *runlane.StepRecord) error {
	c := &x.checkpoints
	if c.written == nil {
		c.written, c.pending = map[string]time.Time{}, map[string]*runlane.StepRecord{}
	}
	c.written[record.Name] = time.Now()
	delete(c.pending, record.Name)
	limited := afterCommit(ctx)
	defer limited.stop()
	given := *record
	_, err := x.put(limited, &given, true)
	return err
}

// flushCheckpoints writes the pending checkpoints. With over, later ones are dropped.
func (x *execution) flushCheckpoints(ctx context.Context, over bool) {
	c := &x.checkpoints
	c.mu.Lock()
	defer c.mu.Unlock()
	if over {
		c.over = true
		if c.timer != nil {
			c.timer.Stop()
		}
	}
	for _, record := range c.pending {
		if err := x.writeCheckpoint(ctx, record); err != nil {
			x.rt.logger.LogAttrs(
				ctx,
				slog.LevelWarn,
				"checkpoint was not kept",
				append(runAttrs(x.started), errorAttrs(err)...)...,
			)
		}
	}
}

// Restore implements runlane.StepHost.
func (x *execution) Restore(ctx context.Context, name string) (*runlane.StepRecord, error) {
	if err := runlane.ValidateStepName(name); err != nil {
		return nil, err
	}
	s := &x.steps
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := x.load(ctx); err != nil {
		return nil, err
	}
	known := s.known[name]
	return known, x.checkKind(runlane.StepCall{Name: name, Kind: runlane.StepKindCheckpoint}, known)
}
