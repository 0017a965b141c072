package sqlitelane

import (
	"cmp"
	"context"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

// mostRecorded ends a page of records early: 500 results of maximum size do not fit into memory.
const mostRecorded = 8 << 20

// recordColumns are the columns that recordOf reads.
const recordColumns = "name, kind, attempt, started, at, type, place, result"

// logMark begins the stored names of logs, which are apart from all others: no name has a control character.
const logMark = "\x01"

// beyondNames is after every name: it is no character.
const beyondNames = "\U0010FFFF"

func storedName(kind runlane.StepKind, name string) string {
	if kind == runlane.StepKindLog {
		return logMark + name
	}
	return name
}

// KeepRecord stores a record of an existing run.
func (s *Storage) KeepRecord(ctx context.Context, c *lane.KeepCommand) (*lane.StepRecord, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	r := lane.RecordAtRest(&c.Record)
	name := storedName(r.Kind, r.Name)
	place, result := record.Shelve(r.Result)
	var kept *lane.StepRecord
	err := s.write(ctx, func(t *tx) error {
		_, e, err := t.run(c.Environment, c.RunID)
		switch {
		case err != nil:
			return err
		case e == nil || embedded.At(e.Run.CreatedAt) != embedded.At(c.CreatedAt):
			return embedded.NotFound(c.RunID)
		}
		created := int64(embedded.At(c.CreatedAt))
		row, err := t.One("SELECT "+recordColumns+" FROM records WHERE run = ? AND created = ? AND name = ?",
			e.n, created, name)
		if err != nil {
			return err
		}
		if row != nil {
			if kept, err = recordOf(row); err != nil || !c.Replaces(kept) {
				return err
			}
		}
		kept = r
		return t.Exec(`INSERT INTO records(run, created, `+recordColumns+`) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT(run, created, name) DO UPDATE SET kind = excluded.kind, attempt = excluded.attempt,
			started = excluded.started, at = excluded.at, type = excluded.type, place = excluded.place,
			result = excluded.result`,
			e.n, created, name, string(r.Kind), int64(r.Attempt), int64(embedded.At(r.StartedAt)),
			int64(embedded.At(r.At)), r.Type, int64(place), result)
	})
	if err != nil {
		return nil, err
	}
	return kept, nil
}

func recordOf(row []driverValue) (*lane.StepRecord, error) {
	result, err := record.Open(record.Place(number(row[6])), blob(row[7]))
	if err != nil {
		return nil, err
	}
	return &lane.StepRecord{
		Name:      strings.TrimPrefix(text(row[0]), logMark),
		Kind:      runlane.StepKind(text(row[1])),
		Attempt:   int(number(row[2])),
		StartedAt: embedded.Millis(number(row[3])).Time(),
		At:        embedded.Millis(number(row[4])).Time(),
		Type:      text(row[5]),
		Result:    result,
	}, nil
}

// ListRecords pages the records by name.
func (s *Storage) ListRecords(ctx context.Context, q *lane.RecordQuery) (*runlane.Page[lane.StepRecord], error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	created := embedded.At(q.CreatedAt)
	scope := embedded.RecordsScope(q)
	limit, after, err := embedded.OpenPage(&q.PageQuery, scope)
	if err != nil {
		return nil, err
	}
	page, size, behind := &runlane.Page[lane.StepRecord]{}, 0, ""
	mark, from, until := "", max(q.From, " "), cmp.Or(q.Until, beyondNames)
	if q.Logs {
		mark, from, until = logMark, logMark+q.From, logMark+until
	}
	if after != nil {
		behind = mark + after.ID
	}
	err = s.read(ctx, true, func(c *file.Conn) error {
		e, err := s.readRun(c, q.Environment, q.RunID)
		if err != nil || e == nil || embedded.At(e.Run.CreatedAt) != created {
			return err
		}
		return c.Each("SELECT "+recordColumns+` FROM records WHERE run = ? AND created = ? AND name >= ? AND name > ? AND name < ?
			ORDER BY name LIMIT ?`, func(row []driverValue) (bool, error) {
			if n := len(page.Items); n == limit || size > mostRecorded {
				page.Next = scope.Cursor(embedded.Position{ID: page.Items[n-1].Name})
				return false, nil
			}
			r, err := recordOf(row)
			if err != nil {
				return false, err
			}
			page.Items, size = append(page.Items, *r), size+len(r.Result)
			return true, nil
		}, e.n, int64(created), from, behind, until, int64(limit+1))
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}
