package sqlitelane

import (
	"bytes"
	"context"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

// readRun reads one run, or nil.
func (s *Storage) readRun(c *file.Conn, environment runlane.Environment, id runlane.RunID) (*entry, error) {
	env, err := s.names.known(c, environment.Name())
	if err != nil || env == 0 {
		return nil, err
	}
	row, err := c.One("SELECT n, queue, record FROM runs WHERE env = ? AND id = ?", env, string(id))
	if err != nil || row == nil {
		return nil, err
	}
	r, err := record.Decode(runlane.Environment(environment.Name()), id, blob(row[2]))
	if err != nil {
		return nil, err
	}
	return &entry{Record: r, n: number(row[0]), env: env, queue: number(row[1])}, nil
}

// fullRun returns a copy of the run for callers, with payload and output.
func (e *entry) fullRun(c *file.Conn) (*runlane.Run, error) {
	run := e.bareRun()
	var err error
	if run.Payload, err = bytesOf(c, e.Payload, e.Run.Payload, payloadKey(e.n)); err != nil {
		return nil, err
	}
	if run.Output, err = bytesOf(c, e.Output, e.Run.Output, outputKey(e.n)); err != nil {
		return nil, err
	}
	return run, nil
}

// bareRun returns a copy of the run for callers, without payload and output.
func (e *entry) bareRun() *runlane.Run {
	run := e.Run
	run.Payload, run.Output = nil, nil
	return run.Clone()
}

// GetRun returns a run.
func (s *Storage) GetRun(ctx context.Context, key lane.RunKey) (run *runlane.Run, err error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	read := func(whole bool) (apart bool, err error) {
		err = s.read(ctx, whole, func(c *file.Conn) error {
			e, err := s.readRun(c, key.Environment, key.RunID)
			switch {
			case err != nil:
				return err
			case e == nil:
				return embedded.NotFound(key.RunID)
			}
			if apart = e.Payload.Apart() || e.Output.Apart(); apart && !whole {
				return nil // several rows need one transaction
			}
			run, err = e.fullRun(c)
			return err
		})
		return apart, err
	}
	apart, err := read(false)
	if err == nil && apart {
		_, err = read(true)
	}
	return run, err
}

// GetRuns implements [lane.Storage].
func (s *Storage) GetRuns(ctx context.Context, q *lane.RunsQuery) ([]*runlane.Run, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	runs := make([]*runlane.Run, 0, len(q.IDs))
	err := s.read(ctx, true, func(c *file.Conn) error {
		for _, id := range q.IDs {
			e, err := s.readRun(c, q.Environment, id)
			if err != nil {
				return err
			}
			if e == nil {
				continue
			}
			run := e.bareRun()
			if !q.WithoutPayload {
				if run, err = e.fullRun(c); err != nil {
					return err
				}
			}
			runs = append(runs, run)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return runs, nil
}

// InspectRun implements [lane.Storage].
func (s *Storage) InspectRun(ctx context.Context, q *lane.InspectQuery) (*lane.Inspection, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	inspection := &lane.Inspection{}
	err := s.read(ctx, true, func(c *file.Conn) error {
		e, err := s.readRun(c, q.Environment, q.RunID)
		switch {
		case err != nil:
			return err
		case e == nil:
			return embedded.NotFound(q.RunID)
		}
		if inspection.Run, err = e.fullRun(c); err != nil {
			return err
		}
		if d := e.Live(); d != nil {
			message := e.Message(d)
			inspection.Delivery = &message
			inspection.RedeliverAt = e.Redelivery(e.known()).Time()
		}
		if q.Queue.Bounded() {
			inspection.Holders, err = holders(c, e)
		}
		if err == nil && q.Queue.Rated() {
			inspection.Pace, err = paceOf(c, e.partition())
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return inspection, nil
}

// ListRunEvents implements [lane.Storage].
func (s *Storage) ListRunEvents(ctx context.Context, q *lane.EventQuery) (*runlane.Page[runlane.EventRecord], error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	scope := embedded.EventsScope(q)
	limit, after, err := embedded.OpenPage(&q.PageQuery, scope)
	if err != nil {
		return nil, err
	}
	page := &runlane.Page[runlane.EventRecord]{}
	err = s.read(ctx, true, func(c *file.Conn) error {
		e, err := s.readRun(c, q.Environment, q.RunID)
		if err != nil || e == nil {
			return err
		}
		first, last, by := int64(1), e.Run.EventSequence, int64(1)
		if q.Descending {
			first, last, by = last, first, -1
		}
		if after != nil {
			first = int64(after.At) + by
		}
		if (last-first)*by < 0 {
			return nil
		}
		end := first + by*int64(limit-1)
		if (last-end)*by > 0 {
			page.Next = scope.Cursor(embedded.Position{At: embedded.Millis(end)})
		} else {
			end = last
		}
		page.Items, err = e.history(c, min(first, end), max(first, end))
		if q.Descending {
			slices.Reverse(page.Items)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}

func (e *entry) history(c *file.Conn, from, to int64) ([]runlane.EventRecord, error) {
	run, err := e.fullRun(c)
	if err != nil {
		return nil, err
	}
	var found []runlane.EventRecord
	add := func(b []byte, first int64) error {
		records, err := record.Events(run, b, first)
		for _, r := range records {
			if r.Sequence >= from && r.Sequence <= to {
				found = append(found, r)
			}
		}
		return err
	}
	if from < e.First {
		lowest, highest := e.n<<chunkBits, (e.n+1)<<chunkBits
		err := c.Each(`SELECT first, data FROM chunks WHERE k >= ? AND k < ? AND first <= ?
			AND k >= coalesce((SELECT max(k) FROM chunks WHERE k >= ? AND k < ? AND first <= ?), ?) ORDER BY k`,
			func(row []driverValue) (bool, error) { return true, add(bytes.Clone(blob(row[1])), number(row[0])) },
			lowest, highest, to, lowest, highest, from, lowest)
		if err != nil {
			return nil, err
		}
	}
	if to >= e.First {
		if err := add(e.Events, e.First); err != nil {
			return nil, err
		}
	}
	return found, nil
}
