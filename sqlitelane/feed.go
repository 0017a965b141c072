package sqlitelane

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

var _ lane.Feed = (*Storage)(nil)

// commits is the order of commits, since a program asked for it first: until then it has no row, and costs nothing. The
// first row is of no run. Rows go from the front alone, so that a position never comes again.
var commits = file.Addition{
	Name: "feed",
	Statements: []string{
		`CREATE TABLE feed(
			n INTEGER PRIMARY KEY, env INTEGER NOT NULL, run TEXT NOT NULL, created INTEGER NOT NULL,
			first INTEGER NOT NULL, last INTEGER NOT NULL
		) STRICT`,
	},
}

// feedTrim is how often rows that are not kept any more are removed, in commits.
const feedTrim = 1000

// isFed tells whether the order of commits is kept.
func (t *tx) isFed() (bool, error) {
	if t.s.fed == nil {
		n, err := t.Number("SELECT max(n) FROM feed")
		if err != nil {
			return false, err
		}
		fed := n != 0
		t.s.fed = &fed
	}
	return *t.s.fed, nil
}

// feed keeps a commit.
func (t *tx) feed(e *entry, p *prepared) error {
	if fed, err := t.isFed(); err != nil || !fed {
		return err
	}
	n, err := t.Insert("INSERT INTO feed(env, run, created, first, last) VALUES(?, ?, ?, ?, ?)",
		e.env, string(e.Run.ID), int64(record.At(e.Run.CreatedAt)),
		p.ExpectedSequence+1, p.ExpectedSequence+int64(len(p.Events)))
	if err != nil || n%feedTrim != 0 {
		return err
	}
	return t.Exec("DELETE FROM feed WHERE n <= ?", n-lane.FeedKept)
}

// BeginFeed implements lane.Feed.
func (s *Storage) BeginFeed(ctx context.Context) (position int64, err error) {
	if err := ended(ctx); err != nil {
		return 0, err
	}
	err = s.write(ctx, func(t *tx) error {
		fed, err := t.isFed()
		if err != nil {
			return err
		}
		if fed {
			position, err = t.Number("SELECT max(n) FROM feed")
			return err
		}
		position, err = t.Insert("INSERT INTO feed(env, run, created, first, last) VALUES(0, '', 0, 0, 0)")
		fed = true
		t.s.fed = &fed // what is taken back is forgotten
		return err
	})
	return position, err
}

// ReadFeed implements lane.Feed.
func (s *Storage) ReadFeed(ctx context.Context, q *lane.FeedQuery) (page *lane.FeedPage, err error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	err = s.read(ctx, true, func(c *file.Conn) error {
		page = &lane.FeedPage{Next: q.After}
		row, err := c.One("SELECT (SELECT min(n) FROM feed), (SELECT max(n) FROM feed)")
		if err != nil {
			return err
		}
		if row[0] == nil || q.After < number(row[0])-1 || q.After > number(row[1]) {
			return lane.FeedLost()
		}
		last := number(row[1])
		env, err := s.names.known(c, q.Environment.Name())
		if err != nil {
			return err
		}
		err = c.Each("SELECT n, env, run, created, first, last FROM feed WHERE n > ? ORDER BY n LIMIT ?",
			func(row []driverValue) (bool, error) {
				page.Next = number(row[0])
				if number(row[1]) == env && env != 0 {
					page.Items = append(page.Items, lane.FeedItem{
						Position:  page.Next,
						RunID:     runlane.RunID(text(row[2])),
						CreatedAt: record.Millis(number(row[3])).Time(),
						First:     number(row[4]),
						Last:      number(row[5]),
					})
				}
				return true, nil
			}, q.After, int64(q.Limit))
		page.More = page.Next < last
		return err
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}
