//go:build unix

package sqlitelane_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/sqlitelane"
	"github.com/runlane/runlane-go/sqlitelane/internal/powerloss"
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

func rate(b *testing.B, what string) {
	b.Helper()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), what)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// ratio is the median of the ratios of each turn.
func ratio(of, to []float64) float64 {
	all := make([]float64, len(of))
	for i := range of {
		all[i] = of[i] / to[i]
	}
	return median(all)
}

// processorTime is what this process used so far.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// runs takes b.N runs from trigger to success, triggered by so many callers at once and executed by as many workers of
// the same process.
func runs(b *testing.B, l *lane.Lane, callers int) {
	b.Helper()
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
	go func() { worked <- rt.Work(ctx, &core.WorkOptions{Concurrency: callers, NoTick: true}) }()
	before := processorTime(b)
	b.ResetTimer()
	err = spread(b.N, callers, func() error {
		_, err := rt.Trigger(b.Context(), task.With(payload), nil)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	<-all
	cancel()
	if err := <-worked; err != nil { // after the last outcome
		b.Fatal(err)
	}
	b.StopTimer()
	rate(b, "runs/s")
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/run")
	if err := rt.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRuns takes runs from trigger to success, their histories kept, 16 at once.
func BenchmarkRuns(b *testing.B) {
	for name, o := range map[string]*sqlitelane.Options{"full": nil, "normal": {Sync: sqlitelane.SyncNormal}} {
		b.Run(name, func(b *testing.B) {
			l, path := benchLane(b, o)
			runs(b, l, 16)
			if info, err := os.Stat(path); err == nil {
				b.ReportMetric(float64(info.Size())/float64(b.N), "B/run")
			}
		})
	}
}

// BenchmarkRunsOnANetworkVolume is the same on a disk whose syncs take a millisecond longer, 64 at once.
func BenchmarkRunsOnANetworkVolume(b *testing.B) {
	disk, err := powerloss.NewDisk()
	if err != nil {
		b.Fatal(err)
	}
	disk.Slow = time.Millisecond
	l, err := sqlitelane.OpenOn(filepath.Join(b.TempDir(), "runlane.db"), disk)
	if err != nil {
		b.Fatal(err)
	}
	runs(b, l, 64)
}

func BenchmarkSignalToStart(b *testing.B) {
	b.Run("file", func(b *testing.B) {
		l, _ := benchLane(b, nil)
		scenarios.BenchmarkSignalToStart(b, l)
	})
}

// BenchmarkWakeup is how long a wakeup takes to an idle worker of another process, and what the waiting costs. One round
// is so many wakeups that a 99th percentile means something.
func BenchmarkWakeup(b *testing.B) {
	path := filepath.Join(b.TempDir(), "runlane.db")
	here, there := started(b, path, 0), started(b, path, 0)
	from, to := sqlitelane.NewTransport(here), sqlitelane.NewTransport(there)
	ctx, cancel := context.WithCancel(b.Context())
	arrived, done := make(chan time.Time), make(chan error, 1)
	go func() {
		done <- to.Receive(ctx, []runlane.QueueName{"mail"}, 1, func(context.Context, lane.Wakeup) error {
			arrived <- time.Now()
			return nil
		})
	}()
	const wakeups = 500
	var took []time.Duration
	for range b.N * wakeups {
		<-time.After(time.Duration(len(took)%10) * time.Millisecond) // at any moment between two looks
		sent := time.Now()
		_, err := from.PublishWakeups(b.Context(), &lane.PublishCommand{Attempts: []lane.PublishAttempt{{
			Wakeup: lane.Wakeup{RunKey: lane.RunKey{Environment: "default", RunID: "run_1"}, Queue: "mail", RequestedAt: sent},
		}}})
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, (<-arrived).Sub(sent))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	before, began := processorTime(b), time.Now()
	<-time.After(3 * time.Second)
	b.ReportMetric(100*float64(processorTime(b)-before)/float64(time.Since(began)), "idle-%")
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	if err := errors.Join(from.Close(ctx), to.Close(ctx)); err != nil {
		b.Fatal(err)
	}
}

// grown is a file with so many finished runs, and calls to it.
type grown struct {
	s *sqlitelane.Storage
	f *lanetest.Factory
	b *testing.B
	n int
	// run is the one whose life the calls lead.
	run *runlane.Run
}

func newGrown(b *testing.B, n int) *grown {
	b.Helper()
	s := sqlitelane.NewRelaxedStorage(filepath.Join(b.TempDir(), "runlane.db"), time.Now)
	if err := s.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close(context.Background()) })
	g := &grown{s: s, f: lanetest.NewFactory("bench"), b: b, n: n}
	for _, call := range []func() error{g.create, g.claim, g.succeed} {
		if err := call(); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Multiply(g.run.ID, n); err != nil {
		b.Fatal(err)
	}
	return g
}

func (g *grown) create() error {
	c := g.f.Creation(g.b, time.Now(), lanetest.RunOptions{Payload: []byte(`{"customer":1234567}`)})
	commit, err := g.s.AppendRunEvents(g.b.Context(), c)
	if err == nil {
		g.run = commit.Run
	}
	return err
}

func (g *grown) claim() error {
	now := time.Now()
	got, err := g.s.ClaimRunLease(g.b.Context(), g.f.Claim(g.b, g.run, now, now.Add(time.Minute), g.f.NewToken()))
	if err == nil {
		g.run = got.Commit.Run
	}
	return err
}

func (g *grown) succeed() error {
	_, err := g.s.AppendRunEvents(g.b.Context(), g.f.Append(g.b, g.run, time.Now(), lanetest.Succeeded(g.run, nil)))
	return err
}

// any is one of the finished runs.
func (g *grown) any() runlane.RunID { return sqlitelane.Multiplied(rand.IntN(g.n)) } // which one does not matter

// calls in the order in which they are made.
func (g *grown) calls() []growingCall {
	ctx, page := g.b.Context(), lane.PageQuery{Environment: "bench"}
	list := func(q lane.RunQuery) func() error { // of none
		q.PageQuery = page
		return func() error { return second(g.s.ListRuns(ctx, &q)) }
	}
	due := func() *lane.DueQuery { return &lane.DueQuery{PageQuery: page, At: time.Now()} }
	return []growingCall{
		{"create", g.create},
		{"claim", g.claim},
		{"succeed", g.succeed},
		{"get", func() error { return second(g.s.GetRun(ctx, lane.RunKey{Environment: "bench", RunID: g.run.ID})) }},
		{"get-any", func() error { return second(g.s.GetRun(ctx, lane.RunKey{Environment: "bench", RunID: g.any()})) }},
		{"events", func() error {
			return second(g.s.ListRunEvents(ctx, &lane.EventQuery{PageQuery: page, RunID: g.run.ID}))
		}},
		{"list", func() error { return second(g.s.ListRuns(ctx, &lane.RunQuery{PageQuery: page})) }},
		{"list-queue", list(lane.RunQuery{Queue: "rare"})},
		{"list-task", list(lane.RunQuery{TaskID: "rare"})},
		{"list-failed", list(lane.RunQuery{Statuses: []runlane.Status{runlane.StatusFailed}})},
		{"list-input", list(lane.RunQuery{Waiting: runlane.WaitingInput})},
		{"list-schedule", list(lane.RunQuery{ScheduleID: "rare"})},
		{"runnable", func() error { return second(g.s.ListRunnableRuns(ctx, due())) }},
		{"redelivery", func() error { return second(g.s.ListRunsNeedingRedelivery(ctx, due())) }},
		{"outbox", func() error {
			return second(g.s.ClaimOutboxMessages(ctx, &lane.ClaimOutboxCommand{
				Environment: "bench", At: time.Now(), ClaimUntil: time.Now().Add(time.Minute), Limit: 10,
			}))
		}},
		{"prune", func() error {
			return second(g.s.PruneRuns(ctx, &lane.PruneCommand{PageQuery: page, OlderThan: time.Unix(0, 0)}))
		}},
	}
}

type growingCall struct {
	name string
	make func() error
}

// BenchmarkGrowthOfAFile compares calls to a file with a thousand finished runs with the same calls to one that has BENCH_RUNS,
// a million by default. They are made in turns; the medians of single calls are compared, for whatever else the machine
// does.
func BenchmarkGrowthOfAFile(b *testing.B) {
	many, _ := strconv.Atoi(os.Getenv("BENCH_RUNS"))
	if many == 0 {
		many = 1_000_000
	}
	files := []*grown{newGrown(b, 1000), newGrown(b, many)}
	took := map[string][2][]time.Duration{}
	b.ResetTimer()
	calls := [][]growingCall{files[0].calls(), files[1].calls()}
	for round := range b.N {
		for n := range calls[0] {
			for turn := range files {
				i := (turn + round) % len(files) // what comes first finds other caches
				call := calls[i][n]
				began := time.Now()
				if err := call.make(); err != nil {
					b.Fatal(call.name, err)
				}
				all := took[call.name]
				all[i] = append(all[i], time.Since(began))
				took[call.name] = all
			}
		}
	}
	b.StopTimer()
	slowest := 0.0
	for name, all := range took {
		var medians [2]float64
		for i := range all {
			slices.Sort(all[i])
			medians[i] = float64(all[i][len(all[i])/2].Nanoseconds()) / 1000
		}
		b.ReportMetric(medians[1]/medians[0], name+"-x")
		slowest = max(slowest, medians[1]/medians[0])
		if b.N > 1 {
			b.Logf("%-12s %8.1f µs with a thousand, %8.1f µs with %d", name, medians[0], medians[1], many)
		}
	}
	b.ReportMetric(slowest, "slowest-x")
}

func BenchmarkRate(b *testing.B) {
	scenarios.BenchmarkRate(b, func(b *testing.B) *lane.Lane {
		l, _ := benchLane(b, nil)
		return l
	})
}
