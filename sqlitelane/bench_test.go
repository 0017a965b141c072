package sqlitelane_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/sqlitelane"
)

// benchLane is a lane over a new file: TMPDIR says on which disk.
func benchLane(b *testing.B, o *sqlitelane.Options) (l *lane.Lane, path string) {
	b.Helper()
	path = filepath.Join(b.TempDir(), "runlane.db")
	var err error
	if l, err = sqlitelane.Open(context.Background(), path, o); err != nil {
		b.Fatal(err)
	}
	return l, path
}

// spread divides n calls among callers.
func spread(n, callers int, call func() error) error {
	var left atomic.Int64
	left.Store(int64(n))
	faults := make(chan error, callers)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if err := call(); err != nil {
					faults <- err
					return
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-faults:
		return err
	default:
		return nil
	}
}

func rate(b *testing.B, what string) {
	b.Helper()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), what)
}

// BenchmarkSync is what the disk does: 4 KB appended and synced, one after the other.
func BenchmarkSync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "sync"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	page := make([]byte, 4096)
	b.ResetTimer()
	for range b.N {
		if _, err := f.Write(page); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	rate(b, "syncs/s")
}

// bareInsert is the table that one would write by hand, with the same pragmas: one commit an insertion.
func bareInsert(b *testing.B) func() error {
	b.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "bare.db")+
		"?_pragma=busy_timeout(5000)&_pragma=auto_vacuum(2)&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_txlock=immediate")
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
	var n atomic.Int64
	payload := bytes.Repeat([]byte("x"), 200)
	return func() error {
		_, err := insert.ExecContext(b.Context(), fmt.Sprintf("run_%026d", n.Add(1)), time.Now().UnixMilli(), payload)
		return err
	}
}

func BenchmarkInsert(b *testing.B) {
	for _, callers := range []int{1, 16} {
		b.Run(fmt.Sprintf("bare/%d", callers), func(b *testing.B) {
			insert := bareInsert(b)
			b.ResetTimer()
			if err := spread(b.N, callers, insert); err != nil {
				b.Fatal(err)
			}
			rate(b, "inserts/s")
		})
		b.Run(fmt.Sprintf("lane/%d", callers), func(b *testing.B) {
			l, _ := benchLane(b, nil)
			if err := l.Start(b.Context()); err != nil {
				b.Fatal(err)
			}
			defer func() { _ = l.Close(context.Background()) }()
			f := lanetest.NewFactory("bench")
			payload := []byte(`"` + string(bytes.Repeat([]byte("x"), 198)) + `"`)
			var mu sync.Mutex
			b.ResetTimer()
			err := spread(b.N, callers, func() error {
				mu.Lock()
				c := f.Creation(b, time.Now(), lanetest.RunOptions{Payload: payload})
				mu.Unlock()
				c.WithoutRecords = true
				_, err := l.Storage.AppendRunEvents(b.Context(), c)
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
			rate(b, "inserts/s")
		})
	}
}

// BenchmarkRuns takes runs from trigger to success, their histories kept, triggered by 16 callers at once and executed
// by as many workers of the same process.
func BenchmarkRuns(b *testing.B) {
	for name, o := range map[string]*sqlitelane.Options{"full": nil, "normal": {Sync: sqlitelane.SyncNormal}} {
		b.Run(name, func(b *testing.B) {
			l, path := benchLane(b, o)
			payload := string(bytes.Repeat([]byte("x"), 198))
			task := runlane.NewTask[string]("bench.noop", nil)
			var left atomic.Int64
			all := make(chan struct{})
			rt, err := core.Open(b.Context(), l, &core.Options{
				Logger: slog.New(slog.DiscardHandler),
				Handlers: []runlane.Handler{task.Handle(func(context.Context, *runlane.Attempt, string) error {
					if left.Add(-1) == 0 {
						close(all)
					}
					return nil
				})},
			})
			if err != nil {
				b.Fatal(err)
			}
			left.Store(int64(b.N))
			ctx, cancel := context.WithCancel(b.Context())
			worked := make(chan error, 1)
			go func() { worked <- rt.Work(ctx, &core.WorkOptions{Concurrency: 16, NoTick: true}) }()
			b.ResetTimer()
			err = spread(b.N, 16, func() error {
				_, err := rt.Trigger(b.Context(), task.With(payload), nil)
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
			<-all
			cancel()
			if err := <-worked; err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			rate(b, "runs/s")
			if err := rt.Close(context.Background()); err != nil {
				b.Fatal(err)
			}
			if info, err := os.Stat(path); err == nil {
				b.ReportMetric(float64(info.Size())/float64(b.N), "B/run")
			}
		})
	}
}
