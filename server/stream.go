package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

const eventStream = "text/event-stream"

const (
	// maxStreams limits the open streams: each polls the storage.
	maxStreams = 1000
	// streamBeat is the interval of keep-alive comments, which keep proxies from closing the stream and detect callers
	// that are gone.
	streamBeat = 15 * time.Second
	// streamWrite limits the time to write an event. A caller that reads too slowly loses its stream, and can resume.
	streamWrite = 30 * time.Second
)

type streamInput struct {
	Run   runlane.RunID  `query:"run" doc:"the id of the run; all runs of the environment unless given"`
	After runlane.Cursor `query:"after" doc:"id of the last event seen; Last-Event-ID goes before it"`
}

// streamEvents sends events as they come: of one run until it ends, or of all runs.
func streamEvents(ctx context.Context, c *call, in *streamInput) (*reply, error) {
	after := in.After
	if seen := c.r.Header.Get("Last-Event-ID"); seen != "" {
		after = runlane.Cursor(seen)
	}
	if in.Run == "" {
		return c.streamAll(ctx, after)
	}
	return c.streamRun(ctx, in.Run, after)
}

// streamRun sends the events of a run. A caller that reconnects after the last event gets 204, which makes an
// EventSource stop.
func (c *call) streamRun(ctx context.Context, id runlane.RunID, text runlane.Cursor) (*reply, error) {
	var after int64
	if text != "" {
		var err error
		if after, err = strconv.ParseInt(string(text), 10, 64); err != nil || after < 0 {
			return nil, badInput("after, or Last-Event-ID, is not a sequence", "send what the last event had as its id")
		}
	}
	run, err := c.rt.Runs().Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if after > run.EventSequence {
		return nil, badInput("the run has no event "+strconv.FormatInt(after, 10)+" yet", "leave after out to see all")
	}
	if run.Status.Terminal() && after == run.EventSequence {
		c.w.WriteHeader(http.StatusNoContent)
		return &reply{streamed: true}, nil
	}
	options := &core.EventOptions{Follow: true}
	if after > 0 {
		options.After = core.EventCursor(&runlane.EventRecord{
			Sequence: after,
			Event:    runlane.Event{RunID: id, Environment: c.rt.Environment()},
		})
	}
	return c.stream(ctx, "", func(ctx context.Context, send func(streamEvent) bool) error {
		for record, err := range c.rt.Runs().Events(ctx, id, options) {
			if err != nil {
				return err
			}
			if !send(streamEvent{strconv.FormatInt(record.Sequence, 10), &record}) {
				return nil
			}
		}
		return nil
	})
}

// streamAll sends the events of all runs in commit order. A first event carries the starting cursor, so that a caller
// without further events can resume.
func (c *call) streamAll(ctx context.Context, after runlane.Cursor) (*reply, error) {
	begins := ""
	if after == "" {
		now, err := c.rt.Runs().FeedStart(ctx)
		if err != nil {
			return nil, err
		}
		after, begins = now, string(now)
	} else if err := c.checkFeedCursor(ctx, after); err != nil {
		return nil, err
	}
	return c.stream(ctx, begins, func(ctx context.Context, send func(streamEvent) bool) error {
		options := &core.FeedOptions{After: after, Follow: true}
		for record, err := range c.rt.Runs().Feed(ctx, options) {
			if err != nil {
				return err
			}
			if !send(streamEvent{string(record.Cursor), &record.EventRecord}) {
				return nil
			}
		}
		return nil
	})
}

// checkFeedCursor refuses a bad cursor before the stream begins, while the answer can still have an error status.
func (c *call) checkFeedCursor(ctx context.Context, after runlane.Cursor) error {
	for _, err := range c.rt.Runs().Feed(ctx, &core.FeedOptions{After: after}) {
		return err
	}
	return nil
}

// streamEvent is an event of a stream, with the ID to resume after it.
type streamEvent struct {
	id     string
	record *runlane.EventRecord
}

// source calls send for each event. It ends after the last event, on an error, or with its context; send returns false
// to stop it.
type source func(ctx context.Context, send func(streamEvent) bool) error

func (c *call) stream(ctx context.Context, begins string, from source) (*reply, error) {
	if c.streams.Add(1) > maxStreams {
		c.streams.Add(-1)
		p := refusal(
			http.StatusServiceUnavailable,
			codeTooManyStreams,
			"too many streams are open",
			"read the list of events instead, or later",
		)
		p.Retryable, p.retryAfter = true, int(streamBeat.Seconds())
		return nil, p
	}
	defer c.streams.Add(-1)
	out := newStream(c.w)
	if err := out.begin(begins); err != nil {
		return &reply{streamed: true}, nil // the caller is gone
	}
	err := c.follow(ctx, out, from)
	if err != nil && ctx.Err() == nil {
		out.fault(problemOf(err))
	}
	return &reply{streamed: true}, nil
}

// follow writes events until the source ends, the caller is gone, or a write fails.
func (c *call) follow(ctx context.Context, out *stream, from source) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	events, fault := make(chan streamEvent), make(chan error, 1)
	go func() { // ends with ctx
		defer close(events)
		err := from(ctx, func(one streamEvent) bool {
			select {
			case events <- one:
				return true
			case <-ctx.Done():
				return false
			}
		})
		if err != nil {
			fault <- err
		}
	}()
	beat := time.NewTicker(streamBeat)
	defer beat.Stop()
	for {
		var err error
		select {
		case one, more := <-events:
			if !more {
				select {
				case err := <-fault:
					return err
				default:
					return nil
				}
			}
			err = out.event(&one)
		case <-beat.C:
			err = out.write(": still here\n") // no blank line: some clients would make an event of it
		case <-ctx.Done():
			return ctx.Err()
		case <-c.ending:
			return nil
		}
		if err != nil {
			return nil // the caller is gone, or reads too slowly
		}
	}
}

// stream writes Server-Sent Events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func newStream(w http.ResponseWriter) *stream {
	return &stream{w: w, control: http.NewResponseController(w)}
}

// begins is the data of a stream's first event, which carries the starting cursor.
type begins struct {
	Cursor string `json:"cursor"`
}

// begin sends the headers and a first line, so that the caller knows that it is connected. Only events with data may
// end with a blank line: many clients take others for an empty event, and forget an ID without data.
func (s *stream) begin(id string) error {
	h := s.w.Header()
	h.Set("Content-Type", eventStream)
	h.Set("X-Accel-Buffering", "no") // a proxy would buffer events
	s.w.WriteHeader(http.StatusOK)
	if err := s.write("retry: 2000\n"); err != nil || id == "" {
		return err
	}
	return s.send(id, "begin", "begin", &begins{id})
}

// write sends text and flushes. It sets its own deadline in place of the server's.
func (s *stream) write(text string) error {
	err := s.control.SetWriteDeadline(time.Now().Add(streamWrite))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	if err := s.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

func (s *stream) event(one *streamEvent) error {
	return s.send(one.id, string(one.record.Type()), "event", shown.EventOf(one.record))
}

func (s *stream) send(id, name, kind string, value any) error {
	text, err := shown.Object(kind, value)
	if err != nil {
		return err
	}
	return s.write(fmt.Sprintf("id: %s\nevent: %s\ndata: %s\n\n", id, name, text))
}

// fault sends the reason why a stream ends early. The caller may resume.
func (s *stream) fault(p *problem) {
	text, err := json.Marshal(p)
	if err == nil {
		_ = s.write(fmt.Sprintf("event: problem\ndata: %s\n\n", text)) // last write: its error does not matter
	}
}
