package sqlitelane

import (
	"context"
	"math/rand/v2"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
)

// commits is the order of commits since BeginFeed was first called; until then it is empty and costs nothing. The
// first row belongs to no run. Rows are removed only from the front, so positions are never reused, except when a file
// is restored from a copy: the random tag distinguishes the commits before and after.
var commits = file.Addition{
	Name: "commits",
	Statements: []string{
		`DROP TABLE IF EXISTS feed`, // it had no tags
		`CREATE TABLE commits(
			n INTEGER PRIMARY KEY, tag INTEGER NOT NULL, env INTEGER NOT NULL, run TEXT NOT NULL, created INTEGER NOT NULL,
			first INTEGER NOT NULL, last INTEGER NOT NULL
		) STRICT`,
	},
}

// feedTrim is how many commits pass between removals of old rows.
const feedTrim = 1000

// isFed reports whether the order of commits is recorded.
func (t *tx) isFed() (bool, error) {
	if t.s.fed == nil {
		n, err := t.Number("SELECT max(n) FROM commits")
		if err != nil {
			return false, err
		}
		fed := n != 0
		t.s.fed = &fed
	}
	return *t.s.fed, nil
}

// feed records a commit.
func (t *tx) feed(e *entry, p *prepared) error {
	if fed, err := t.isFed(); err != nil || !fed {
		return err
	}
	n, err := t.Insert("INSERT INTO commits(tag, env, run, created, first, last) VALUES(?, ?, ?, ?, ?, ?)",
		newTag(), e.env, string(e.Run.ID), int64(embedded.At(e.Run.CreatedAt)),
		p.ExpectedSequence+1, p.ExpectedSequence+int64(len(p.Events)))
	if err != nil || n%feedTrim != 0 {
		return err
	}
	return t.Exec("DELETE FROM commits WHERE n < ?", n-lane.FeedKept) // a position is a row
}

func newTag() int64 { return rand.Int64() } // needs to differ, is no secret

const lastCommit = "SELECT n, tag FROM commits ORDER BY n DESC LIMIT 1"

// BeginFeed implements lane.Storage.
func (s *Storage) BeginFeed(ctx context.Context) (position lane.FeedPosition, err error) {
	if err := embedded.Ended(ctx); err != nil {
		return position, err
	}
	err = s.write(ctx, func(t *tx) error {
		fed, err := t.isFed()
		if err != nil {
			return err
		}
		if !fed {
			err := t.Exec("INSERT INTO commits(tag, env, run, created, first, last) VALUES(?, 0, '', 0, 0, 0)", newTag())
			if err != nil {
				return err
			}
			fed = true
			t.s.fed = &fed // forgotten if the batch is rolled back
		}
		row, err := t.One(lastCommit)
		if err == nil {
			position = lane.FeedPosition{Number: number(row[0]), Tag: number(row[1])}
		}
		return err
	})
	return position, err
}

// ReadFeed implements lane.Storage.
func (s *Storage) ReadFeed(ctx context.Context, q *lane.FeedQuery) (page *lane.FeedPage, err error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	err = s.read(ctx, true, func(c *file.Conn) error {
		page = &lane.FeedPage{Next: q.After}
		row, err := c.One("SELECT tag FROM commits WHERE n = ?", q.After.Number)
		if err != nil {
			return err
		}
		if row == nil || number(row[0]) != q.After.Tag {
			return lane.FeedLost()
		}
		if row, err = c.One(lastCommit); err != nil {
			return err
		}
		after, last := q.After.Number, number(row[0])
		if q.Again {
			after--
		}
		env, err := s.names.known(c, q.Environment.Name())
		if err != nil {
			return err
		}
		err = c.Each("SELECT n, env, run, created, first, last, tag FROM commits WHERE n > ? ORDER BY n LIMIT ?",
			func(row []driverValue) (bool, error) {
				page.Next = lane.FeedPosition{Number: number(row[0]), Tag: number(row[6])}
				if number(row[1]) == env && env != 0 {
					page.Items = append(page.Items, lane.FeedItem{
						Position:  page.Next,
						RunID:     runlane.RunID(text(row[2])),
						CreatedAt: embedded.Millis(number(row[3])).Time(),
						First:     number(row[4]),
						Last:      number(row[5]),
					})
				}
				return true, nil
			}, after, int64(q.Limit))
		page.More = page.Next.Number < last
		return err
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}
