package sqlitelane

import (
	"context"
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
)

// flowColumns are the columns of a record without its plan.
const flowColumns = "id, version, created, round, closed, tend, finished, status"

func flowRecord(row []driverValue) *lane.FlowRecord {
	return &lane.FlowRecord{
		ID:         runlane.FlowID(text(row[0])),
		Version:    number(row[1]),
		CreatedAt:  embedded.Millis(number(row[2])).Time(),
		Round:      int(number(row[3])),
		Closed:     int(number(row[4])),
		TendAt:     flowTime(number(row[5])),
		FinishedAt: flowTime(number(row[6])),
		Status:     runlane.FlowStatus(text(row[7])),
	}
}

// flowMoment returns a time of a flow as stored, 0 for none. flowTime is the inverse.
func flowMoment(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return int64(embedded.At(t))
}

func flowTime(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return embedded.Millis(ms).Time()
}

// flow reads a record without its plan, or nil.
func flow(c *file.Conn, env int64, id runlane.FlowID) (*lane.FlowRecord, error) {
	row, err := c.One("SELECT "+flowColumns+" FROM flows WHERE env = ? AND id = ?", env, string(id))
	if err != nil || row == nil {
		return nil, err
	}
	return flowRecord(row), nil
}

// PutFlow implements [lane.Storage].
func (s *Storage) PutFlow(ctx context.Context, c *lane.FlowCommand) (put *lane.FlowRecord, err error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	err = s.write(ctx, func(t *tx) error {
		env, err := s.names.find(t.Conn, c.Environment.Name())
		if err != nil {
			return err
		}
		known, err := flow(t.Conn, env, c.Flow.ID)
		if err != nil {
			return err
		}
		if err := embedded.JudgeFlow(known, c); err != nil {
			return err
		}
		if put = nil; c.Remove {
			return t.Exec("DELETE FROM flows WHERE env = ? AND id = ?", env, string(c.Flow.ID))
		}
		if env, err = s.names.ensure(t.Tx, c.Environment.Name()); err != nil {
			return err
		}
		put = c.Flow.AtRest()
		put.Version++
		return t.putFlow(env, put)
	})
	return put, err
}

func (t *tx) putFlow(env int64, f *lane.FlowRecord) error {
	var plan any
	if len(f.Plan) > 0 {
		plan = f.Plan
	}
	return t.Exec(`INSERT INTO flows(env, `+flowColumns+`, plan) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT(env, id) DO UPDATE SET version = excluded.version, round = excluded.round,
			closed = excluded.closed, tend = excluded.tend, finished = excluded.finished, status = excluded.status,
			plan = coalesce(excluded.plan, plan)`,
		env, string(f.ID), f.Version, int64(embedded.At(f.CreatedAt)), int64(f.Round), int64(f.Closed),
		flowMoment(f.TendAt), flowMoment(f.FinishedAt), string(f.Status), plan)
}

// GetFlow returns the record.
func (s *Storage) GetFlow(ctx context.Context, q *lane.FlowRead) (f *lane.FlowRecord, err error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	if err := q.FlowID.Validate(); err != nil {
		return nil, err
	}
	err = s.read(ctx, true, func(c *file.Conn) error {
		env, err := s.names.known(c, q.Environment.Name())
		if err != nil {
			return err
		}
		columns := flowColumns
		if !q.WithoutPlan {
			columns += ", plan"
		}
		row, err := c.One("SELECT "+columns+" FROM flows WHERE env = ? AND id = ?", env, string(q.FlowID))
		if err != nil {
			return err
		}
		if row == nil {
			return lane.FlowNotFound(q.FlowID)
		}
		if f = flowRecord(row); !q.WithoutPlan {
			f.Plan = blob(row[8])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// ListFlows pages records without plans.
func (s *Storage) ListFlows(ctx context.Context, q *lane.FlowQuery) (*runlane.Page[lane.FlowRecord], error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	before := flowMoment(q.Before)
	scope := embedded.NewScope("ListFlows", q.Environment, fmt.Sprint(q.Finished, before))
	limit, after, err := embedded.OpenPage(&q.PageQuery, scope)
	if err != nil {
		return nil, err
	}
	parts := flowParts(q, before, after)
	page := &runlane.Page[lane.FlowRecord]{}
	err = s.read(ctx, true, func(c *file.Conn) error {
		env, err := s.names.known(c, q.Environment.Name())
		if err != nil {
			return err
		}
		var last embedded.Position
		for _, p := range parts {
			err := c.Each(p.text, func(row []driverValue) (bool, error) {
				if len(page.Items) == limit {
					page.Next = scope.Cursor(last)
					return false, nil
				}
				f := flowRecord(row)
				last = embedded.Position{At: embedded.Millis(number(row[p.at])), ID: string(f.ID)}
				page.Items = append(page.Items, *f)
				return true, nil
			}, append([]any{env, int64(limit - len(page.Items) + 1)}, p.arguments...)...)
			if err != nil || page.Next != "" {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}

// flowPart is a piece of a list that one index search finds, in list order.
type flowPart struct {
	text      string
	arguments []any
	at        int // index of the column that orders it
}

// The columns of flowColumns that order lists.
const (
	tendColumn     = 5
	finishedColumn = 6
)

// Each query names its index: otherwise SQLite reads all flows by ID. Sums and concatenations keep SQLite from
// planning a query again for each value.
const (
	flowsByEnd    = "SELECT " + flowColumns + " FROM flows INDEXED BY flows_over WHERE env = ?1 AND "
	flowsByTend   = "SELECT " + flowColumns + " FROM flows INDEXED BY flows_tend WHERE env = ?1 AND "
	flowsOpen     = flowsByEnd + "finished = 0 AND id > (?3 || '') ORDER BY id LIMIT ?2"
	flowsOfMoment = flowsByEnd + "finished = ?3 + 0 AND id > (?4 || '') ORDER BY id LIMIT ?2"
	flowsEarlier  = flowsByEnd + "finished > 0 AND finished < ?3 + 0 ORDER BY finished DESC, id LIMIT ?2"
	// The condition on (tend, id) precedes tend > 0, or SQLite starts the search at 0.
	flowsTended = flowsByTend + `(tend, id) > (?3 + 0, ?4 || '') AND tend < ?5 + 0 AND tend > 0 AND finished = 0
		ORDER BY tend, id LIMIT ?2`
)

// flowParts returns the pieces of a list after a position, nil for the start.
func flowParts(q *lane.FlowQuery, before int64, after *embedded.Position) []flowPart {
	var from embedded.Position
	if after != nil {
		from = *after
	}
	switch {
	case !q.Finished && before == 0:
		return []flowPart{{flowsOpen, []any{from.ID}, finishedColumn}}
	case !q.Finished:
		return []flowPart{{flowsTended, []any{int64(from.At), from.ID, before}, tendColumn}}
	case after != nil:
		return []flowPart{
			{flowsOfMoment, []any{int64(from.At), from.ID}, finishedColumn},
			{flowsEarlier, []any{int64(from.At)}, finishedColumn},
		}
	case before == 0:
		before = int64(embedded.At(runlane.FarMoment())) + 1
	}
	return []flowPart{{flowsEarlier, []any{before}, finishedColumn}}
}

// isFlowOpen reports whether the flow is open for the run of the check.
func (t *tx) isFlowOpen(c *lane.FlowCheck, e runlane.Environment) (bool, error) {
	env, err := t.s.names.find(t.Conn, e.Name())
	if err != nil {
		return false, err
	}
	f, err := flow(t.Conn, env, c.FlowID)
	return c.Open(f), err
}
