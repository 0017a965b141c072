package cli

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// commitBuffer is how many commits may wait to be shown: a terminal never slows a run.
const commitBuffer = 4096

// commits sees what a runtime commits, like an event hook of core, for a runtime whose options belong to the program.
type commits struct {
	lane.Storage

	all     chan commit
	dropped atomic.Int64
}

// commit is what was appended to one run.
type commit struct {
	task   runlane.TaskID
	lease  time.Time // until when a worker has the run; zero: none has
	events []runlane.EventRecord
}

// watchCommits wraps a runtime's storage. It is called before anything uses the runtime.
func watchCommits(rt *core.Runtime) *commits {
	c := &commits{Storage: rt.Lane().Storage, all: make(chan commit, commitBuffer)}
	rt.Lane().Storage = c
	return c
}

// Unwrap lets lane.As find the abilities of the storage.
func (c *commits) Unwrap() lane.Storage { return c.Storage }

func (c *commits) committed(done *lane.Commit, err error) {
	if err != nil || done == nil || done.Run == nil || len(done.Events) == 0 {
		return
	}
	seen := commit{
		task:   done.Run.TaskID,
		lease:  done.Run.Lease.ExpiresAt,
		events: make([]runlane.EventRecord, len(done.Events)),
	}
	for i := range done.Events {
		seen.events[i] = done.Events[i].Clone()
	}
	select {
	case c.all <- seen:
	default:
		c.dropped.Add(int64(len(seen.events)))
	}
}

func (c *commits) acquired(a *lane.Acquisition, err error) {
	if a != nil && a.Outcome == lane.Acquired {
		c.committed(a.Commit, err)
	}
}

// AppendRunEvents implements lane.Storage.
func (c *commits) AppendRunEvents(ctx context.Context, command *lane.AppendCommand) (*lane.Commit, error) {
	done, err := c.Storage.AppendRunEvents(ctx, command)
	c.committed(done, err)
	return done, err
}

// ClaimRunLease implements lane.Storage.
func (c *commits) ClaimRunLease(ctx context.Context, command *lane.ClaimCommand) (*lane.Acquisition, error) {
	got, err := c.Storage.ClaimRunLease(ctx, command)
	c.acquired(got, err)
	return got, err
}

// ReserveRunDispatch implements lane.Storage.
func (c *commits) ReserveRunDispatch(ctx context.Context, command *lane.ReserveCommand) (*lane.Acquisition, error) {
	got, err := c.Storage.ReserveRunDispatch(ctx, command)
	c.acquired(got, err)
	return got, err
}

// HeartbeatRunLease implements lane.Storage.
func (c *commits) HeartbeatRunLease(ctx context.Context, command *lane.HeartbeatCommand) (*lane.Commit, error) {
	done, err := c.Storage.HeartbeatRunLease(ctx, command)
	c.committed(done, err)
	return done, err
}

// ignored drops all metrics.
type ignored struct{}

var _ core.Metrics = ignored{}

// Count implements core.Metrics.
func (ignored) Count(core.Metric, int64, core.Labels) {}

// Observe implements core.Metrics.
func (ignored) Observe(core.Metric, time.Duration, core.Labels) {}

// showTransition writes one event: as JSON each, as text those that move a run.
func (s *session) showTransition(record *runlane.EventRecord, task runlane.TaskID) error {
	if s.json {
		return s.showEvent(record)
	}
	word, color := transition(record)
	if word == "" {
		return nil
	}
	begin := fmt.Sprintf("%s  %s  %s  ", record.OccurredAt.UTC().Format("15:04:05.000Z"), record.RunID, task)
	detail := strings.TrimPrefix(eventDetail(record), string(task)+", ")
	if columns, ok := s.width(s.stdout); ok { // the whole text is in "runs events"
		detail = shortened(detail, max(columns-utf8.RuneCountInString(begin+word)-len(gap), 0))
	}
	s.line("%s%s", begin, strings.TrimRight(s.paint(s.stdout, color, word)+gap+detail, " "))
	return s.results.Flush()
}
