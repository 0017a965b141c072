package cli

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// commitBuffer limits the commits waiting to be shown. Further ones are dropped: a terminal never slows a run.
const commitBuffer = 4096

// commits observes a runtime's commits. Unlike an event hook of core, it needs no access to the runtime's options.
type commits struct {
	lane.Storage

	all     chan commit
	dropped atomic.Int64
	texts   sync.Map // by run ID: the text of the failure that is about to be written
}

type commit struct {
	task   runlane.TaskID
	lease  time.Time // end of the worker's lease; zero: no lease
	events []runlane.EventRecord
}

// watchCommits wraps a runtime's storage. Call it before the runtime is used.
func watchCommits(rt *core.Runtime) *commits {
	c := newCommits()
	c.watch(rt)
	return c
}

func newCommits() *commits { return &commits{all: make(chan commit, commitBuffer)} }

func (c *commits) watch(rt *core.Runtime) {
	c.Storage, rt.Lane().Storage = rt.Lane().Storage, c
}

// failed keeps the text of a failure for its transition. The run itself may not have it: it could quote secrets.
func (c *commits) failed(runID, text string) { c.texts.Store(runlane.RunID(runID), text) }

// Unwrap gives lane.As access to the storage.
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
		if text, known := c.texts.LoadAndDelete(done.Run.ID); known {
			showFailure(seen.events[i].Body, fmt.Sprint(text))
		}
	}
	select {
	case c.all <- seen:
	default:
		c.dropped.Add(int64(len(seen.events)))
	}
}

// showFailure replaces a failure's message by its text.
func showFailure(body runlane.EventBody, text string) {
	switch body := body.(type) {
	case *runlane.RunFailed:
		body.Failure.Message = text
	case *runlane.RunRetryScheduled:
		body.Failure.Message = text
	}
}

func (c *commits) acquired(a *lane.Acquisition, err error) {
	if a != nil && a.Outcome == lane.Acquired {
		c.committed(a.Commit, err)
	}
}

func (c *commits) AppendRunEvents(ctx context.Context, command *lane.AppendCommand) (*lane.Commit, error) {
	done, err := c.Storage.AppendRunEvents(ctx, command)
	c.committed(done, err)
	return done, err
}

func (c *commits) ClaimRunLease(ctx context.Context, command *lane.ClaimCommand) (*lane.Acquisition, error) {
	got, err := c.Storage.ClaimRunLease(ctx, command)
	c.acquired(got, err)
	return got, err
}

func (c *commits) ReserveRunDispatch(ctx context.Context, command *lane.ReserveCommand) (*lane.Acquisition, error) {
	got, err := c.Storage.ReserveRunDispatch(ctx, command)
	c.acquired(got, err)
	return got, err
}

func (c *commits) HeartbeatRunLease(ctx context.Context, command *lane.HeartbeatCommand) (*lane.Commit, error) {
	done, err := c.Storage.HeartbeatRunLease(ctx, command)
	c.committed(done, err)
	return done, err
}

type ignored struct{}

var _ core.Metrics = ignored{}

func (ignored) Count(core.Metric, int64, core.Labels) {}

func (ignored) Observe(core.Metric, time.Duration, core.Labels) {}

// showTransition writes one event: as JSON any event, as text only state changes.
func (s *session) showTransition(record *runlane.EventRecord, task runlane.TaskID) error {
	if s.json {
		return s.showEvent(record)
	}
	word, color := transition(record)
	if word == "" {
		return nil
	}
	begin := fmt.Sprintf("%s  %s  %s  ", record.OccurredAt.UTC().Format("15:04:05.000Z"), record.RunID, task)
	detail := strings.Join(strings.Fields(strings.TrimPrefix(eventDetail(record), string(task)+", ")), " ")
	if columns, ok := s.width(s.stdout); ok { // "runs events" has the whole text
		detail = shortened(detail, max(columns-utf8.RuneCountInString(begin+word)-len(gap), 0))
	}
	s.line("%s%s", begin, strings.TrimRight(s.paint(s.stdout, color, word)+gap+detail, " "))
	return s.results.Flush()
}
