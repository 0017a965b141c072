//go:build unix

package sqlitelane_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	_ "modernc.org/sqlite"
)

// bareTable is the table that one would write by hand, with the same pragmas.
func bareTable(b *testing.B) (*sql.DB, *sql.Stmt) {
	b.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "bare.db")+
		"?_pragma=busy_timeout(5000)&_pragma=auto_vacuum(2)&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=wal_autocheckpoint(4000)&_txlock=immediate")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(b.Context(), `CREATE TABLE jobs(id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, state INTEGER NOT NULL,
		due INTEGER NOT NULL, payload BLOB NOT NULL) STRICT; CREATE INDEX jobs_due ON jobs(state, due)`)
	if err != nil {
		b.Fatal(err)
	}
	insert, err := db.PrepareContext(b.Context(), "INSERT INTO jobs(key, state, due, payload) VALUES(?, 0, ?, ?)")
	if err != nil {
		b.Fatal(err)
	}
	return db, insert
}

// bareInsert is one commit an insertion.
func bareInsert(b *testing.B) func() error {
	b.Helper()
	_, insert := bareTable(b)
	var n atomic.Int64
	return func() error {
		_, err := insert.ExecContext(b.Context(), fmt.Sprintf("run_%026d", n.Add(1)), time.Now().UnixMilli(), benchPayload)
		return err
	}
}

// groupedInsert is bareInsert by one goroutine that takes all that waits into one commit.
func groupedInsert(b *testing.B) func() error {
	b.Helper()
	type request struct{ done chan error }
	waiting := make(chan request, 64)
	db, insert := bareTable(b)
	stopped := make(chan struct{})
	var n int64
	go func() {
		defer close(stopped)
		for first := range waiting {
			batch := []request{first}
		more:
			for len(batch) < 64 {
				select {
				case r, ok := <-waiting:
					if !ok {
						break more
					}
					batch = append(batch, r)
				default:
					break more
				}
			}
			tx, err := db.BeginTx(context.Background(), nil)
			if err == nil {
				s := tx.Stmt(insert)
				for range batch {
					n++
					if _, e := s.Exec(fmt.Sprintf("run_%026d", n), time.Now().UnixMilli(), benchPayload); e != nil {
						err = e
					}
				}
				err = errors.Join(err, tx.Commit())
			}
			for _, r := range batch {
				r.done <- err
			}
		}
	}()
	b.Cleanup(func() { close(waiting); <-stopped })
	return func() error {
		r := request{make(chan error, 1)}
		waiting <- r
		return <-r.done
	}
}

var benchPayload = bytes.Repeat([]byte("x"), 200)

// inserter is one way to insert.
type inserter struct {
	name    string
	callers int
	prepare func(n int) // nil: nothing
	insert  func() error
	rates   []float64 // a second, of each window
	costs   []float64 // processor time of an insertion, in µs
}

// laneInsert inserts runs by the lane. Building the commands is not its work.
func laneInsert(b *testing.B) (prepare func(n int), insert func() error) {
	b.Helper()
	l, _ := benchLane(b, nil)
	if err := l.Start(b.Context(), lane.StartOptions{}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close(context.Background()) })
	f := lanetest.NewFactory("bench")
	payload := []byte(`"` + string(bytes.Repeat([]byte("x"), 198)) + `"`)
	var commands chan *lane.AppendCommand
	prepare = func(n int) {
		commands = make(chan *lane.AppendCommand, n)
		for range n {
			c := f.Creation(b, time.Now(), lanetest.RunOptions{Payload: payload})
			c.WithoutRecords = true
			commands <- c
		}
	}
	return prepare, func() error { return second(l.Storage.AppendRunEvents(b.Context(), <-commands)) }
}

// measure makes n insertions.
func (i *inserter) measure(b *testing.B, n int) (took, processor time.Duration) {
	b.Helper()
	if i.prepare != nil {
		i.prepare(n)
	}
	before, began := processorTime(b), time.Now()
	if err := spread(n, i.callers, i.insert); err != nil {
		b.Fatal(i.name, err)
	}
	return time.Since(began), processorTime(b) - before
}

// inTurns measures a window of each, in so many pieces in turns: what the disk and other programs do changes within one.
func inTurns(b *testing.B, window, pieces int, all ...*inserter) {
	b.Helper()
	took, processor := make([]time.Duration, len(all)), make([]time.Duration, len(all))
	for range pieces {
		for n, i := range all {
			t, p := i.measure(b, window/pieces)
			took[n], processor[n] = took[n]+t, processor[n]+p
		}
	}
	for n, i := range all {
		i.rates = append(i.rates, float64(window)/took[n].Seconds())
		i.costs = append(i.costs, float64(processor[n].Microseconds())/float64(window))
	}
}

// BenchmarkInsert compares insertions by the lane with those into a bare table: b.N windows of each in turns, and the
// medians. A ratio is of what was measured one after the other.
func BenchmarkInsert(b *testing.B) {
	const window = 400
	one, laneOne := laneInsert(b)
	many, laneMany := laneInsert(b)
	all := []*inserter{
		{name: "bare-1", callers: 1, insert: bareInsert(b)},
		{name: "lane-1", callers: 1, prepare: one, insert: laneOne},
		{name: "grouped-16", callers: 16, insert: groupedInsert(b)},
		{name: "lane-16", callers: 16, prepare: many, insert: laneMany},
	}
	for range b.N {
		inTurns(b, window, 20, all[:2]...)
		inTurns(b, window, 2, all[2:]...)
	}
	for _, i := range all {
		b.ReportMetric(median(i.rates), i.name+"/s")
		b.ReportMetric(median(i.costs), i.name+"-cpu-µs")
	}
	b.ReportMetric(ratio(all[1].rates, all[0].rates), "lane-1-of-bare-1")
	b.ReportMetric(ratio(all[3].rates, all[0].rates), "lane-16-of-bare-1")
	b.ReportMetric(ratio(all[3].costs, all[2].costs), "cpu-of-grouped")
}
