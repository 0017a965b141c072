package core

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// progressInterval is the minimum time between two written notes of an attempt. Later notes in it replace earlier ones.
const progressInterval = time.Second

type notes struct {
	mu      sync.Mutex
	written time.Time // by the real clock
	pending *runlane.Progress
	timer   *time.Timer
	over    bool
}

// ReportProgress implements runlane.ReportHost. At most one note is written each second; the last one always is.
func (x *execution) ReportProgress(ctx context.Context, note string) error {
	switch {
	case len(note) > runlane.MaxReasonBytes:
		return invalidInput(
			fmt.Sprintf("use at most %d bytes", runlane.MaxReasonBytes),
			"the note has %d bytes",
			len(note),
		)
	case !utf8.ValidString(note):
		return invalidInput("use text", "the note is not valid UTF-8")
	case !x.rt.storage().Capabilities().KeepsProgress:
		return unsupported("the storage keeps no progress notes")
	}
	p := runlane.Progress{Attempt: x.started.Counters.Attempts, Note: note, At: x.rt.now()}
	n := &x.notes
	n.mu.Lock()
	defer n.mu.Unlock()
	wait := progressInterval - time.Since(n.written)
	switch {
	case n.over:
		return nil
	case wait <= 0 || n.written.IsZero():
		return x.writeNote(ctx, &p)
	}
	if n.pending == nil {
		n.timer = time.AfterFunc(wait, func() { x.flushNotes(x.ctx, false) }) // stopped with the attempt
	}
	n.pending = &p
	return nil
}

// writeNote writes a note. The caller holds the lock.
func (x *execution) writeNote(ctx context.Context, p *runlane.Progress) error {
	limited := afterCommit(ctx)
	defer limited.stop()
	x.notes.written, x.notes.pending = time.Now(), nil
	return x.rt.storage().PutProgress(
		limited,
		lane.RunKey{Environment: x.rt.environment, RunID: x.started.ID},
		x.token,
		*p,
	)
}

// flushNotes writes the pending note. over stops all later notes.
func (x *execution) flushNotes(ctx context.Context, over bool) {
	n := &x.notes
	n.mu.Lock()
	defer n.mu.Unlock()
	if over {
		n.over = true
		if n.timer != nil {
			n.timer.Stop()
		}
	}
	if n.pending == nil {
		return
	}
	if err := x.writeNote(ctx, n.pending); err != nil {
		x.rt.logger.LogAttrs(
			ctx,
			slog.LevelDebug,
			"progress note was not kept",
			append(runAttrs(x.started), errorAttrs(err)...)...,
		)
	}
}

// Progress returns the run's last note, nil when there is none, also if the run does not exist. A storage that keeps no
// notes is runlane.ErrCapabilityUnsupported.
func (r *Runs) Progress(ctx context.Context, id runlane.RunID) (*runlane.Progress, error) {
	if err := r.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer r.rt.gate.leave()
	if err := id.Validate(); err != nil {
		return nil, err
	}
	if !r.rt.storage().Capabilities().KeepsProgress {
		return nil, unsupported("the storage keeps no progress notes")
	}
	p, err := r.rt.storage().GetProgress(ctx, lane.RunKey{Environment: r.rt.environment, RunID: id})
	if err != nil || p == (runlane.Progress{}) {
		return nil, err
	}
	return &p, nil
}

// encodedFrom is the output length from which checkOutput runs the codec: it adds little to shorter ones.
const encodedFrom = 64 << 10

func (x *execution) checkOutput(b json.RawMessage) error {
	if err := x.rt.checkSize("output", b); err != nil {
		return err
	}
	stored := []byte(b)
	if x.rt.coded && len(b) >= encodedFrom {
		limited := afterCommit(x.ctx)
		defer limited.stop()
		var err error
		of := runlane.BodyRef{Environment: x.rt.environment, RunID: x.started.ID, Output: true}
		if stored, _, err = x.rt.codec.encodeBody(limited, of, b); err != nil {
			return err
		}
	}
	return x.rt.storage().CheckOutput(x.started.ID, stored)
}

// ReportOutput implements runlane.ReportHost. It keeps the last output that the storage can hold.
func (x *execution) ReportOutput(b json.RawMessage) error {
	if err := x.checkOutput(b); err != nil {
		return err
	}
	x.outputMu.Lock()
	defer x.outputMu.Unlock()
	if !x.closed {
		x.output = b
	}
	return nil
}

func (x *execution) takeOutput() []byte {
	x.outputMu.Lock()
	defer x.outputMu.Unlock()
	return x.output
}
