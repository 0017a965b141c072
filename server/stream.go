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

// eventStream is the media type of Server-Sent Events.
const eventStream = "text/event-stream"

const (
	// maxStreams is how many streams are open at once: each reads its run's storage again and again.
	maxStreams = 1000
	// streamBeat is how often a stream without events says that it is there, so that proxies keep it open and a caller
	// that is gone is noticed.
	streamBeat = 15 * time.Second
	// streamWrite is how long a caller may take to read an event. One that does not read ends its stream, and resumes.
	streamWrite = 30 * time.Second
)

type streamInput struct {
	Run   runlane.RunID  `query:"run" doc:"the id of the run; all runs of the environment unless given"`
	After runlane.Cursor `query:"after" doc:"id of the last event seen; Last-Event-ID goes before it"`
}

// streamEvents sends events as they come: of one run, behind whose end the stream ends, or of all runs.
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

// streamRun sends the events of a run. A caller that connects again with everything seen gets 204, which tells an
// EventSource to stop.
func (c *call) streamRun(ctx context.Context, id runlane.RunID, text runlane.Cursor) (*reply, error) {
	var after int64
	if text != "" {
		var err error
		if after, err = strconv.ParseInt(string(text), 10, 64); err != nil || after < 0 {
			return nil, badInput("after, or Last-Event-ID, is no sequence", "send what the last event had as its id")
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
	return c.stream(ctx, "", func(ctx context.Context, tell func(told) bool) error {
		for record, err := range c.rt.Runs().Events(ctx, id, options) {
			if err != nil {
				return err
			}
			if !tell(told{strconv.FormatInt(record.Sequence, 10), &record}) {
				return nil
			}
		}
		return nil
	})
}

// streamAll sends the events of all runs, in the order of their commits. It begins with an event that has the id of the
// beginning, so that a caller that got nothing else can resume, too.
func (c *call) streamAll(ctx context.Context, after runlane.Cursor) (*reply, error) {
	begins := ""
	if after == "" {
		now, err := c.rt.Runs().FeedStart(ctx)
		if err != nil {
			return nil, err
		}
		after, begins = now, string(now)
	} else if err := c.judgeFeed(ctx, after); err != nil {
		return nil, err
	}
	return c.stream(ctx, begins, func(ctx context.Context, tell func(told) bool) error {
		options := &core.FeedOptions{After: after, Follow: true}
		for record, err := range c.rt.Runs().Feed(ctx, options) {
			if err != nil {
				return err
			}
			if !tell(told{string(record.Cursor), &record.EventRecord}) {
				return nil
			}
		}
		return nil
	})
}

// judgeFeed refuses a cursor before the stream begins, while the answer still has a status.
func (c *call) judgeFeed(ctx context.Context, after runlane.Cursor) error {
	for _, err := range c.rt.Runs().Feed(ctx, &core.FeedOptions{After: after}) {
		return err
	}
	return nil
}

// told is an event of a stream, with the id that resumes behind it.
type told struct {
	id     string
	record *runlane.EventRecord
}

// source tells events until there are no more, an error, or its context's end. tell is false when no more are wanted.
type source func(ctx context.Context, tell func(told) bool) error

// stream writes what a source tells.
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

// follow writes events until the source ends, the caller is gone, or its stream cannot be written.
func (c *call) follow(ctx context.Context, out *stream, from source) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	events, fault := make(chan told), make(chan error, 1)
	go func() { // ends with ctx
		defer close(events)
		err := from(ctx, func(one told) bool {
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
			err = out.write(": still here\n") // no blank line: some clients make an event of it
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

// begins is the first event of a stream that has a position before it has events.
type begins struct {
	Cursor string `json:"cursor"`
}

// begin sends the head, so that the caller knows that it is connected. Each blank line ends an event with data: many
// clients take another one for an empty event, and forget an id that comes without data.
func (s *stream) begin(id string) error {
	h := s.w.Header()
	h.Set("Content-Type", eventStream)
	h.Set("X-Accel-Buffering", "no") // a proxy would keep events back
	s.w.WriteHeader(http.StatusOK)
	if err := s.write("retry: 2000\n"); err != nil || id == "" {
		return err
	}
	return s.send(id, "begin", "begin", &begins{id})
}

// write sends a piece at once. The time of the server's other answers does not hold for it.
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

func (s *stream) event(one *told) error {
	return s.send(one.id, string(one.record.Type()), "event", shown.EventOf(one.record))
}

// send writes an object as an event.
func (s *stream) send(id, name, kind string, value any) error {
	text, err := shown.Object(kind, value)
	if err != nil {
		return err
	}
	return s.write(fmt.Sprintf("id: %s\nevent: %s\ndata: %s\n\n", id, name, text))
}

// fault tells why a stream ends early. The caller resumes.
func (s *stream) fault(p *problem) {
	text, err := json.Marshal(p)
	if err == nil {
		_ = s.write(fmt.Sprintf("event: problem\ndata: %s\n\n", text)) // it is the last thing that is said
	}
}
