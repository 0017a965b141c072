package memlane_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

// life is the commands of one simple run, built outside of what is measured: created with its delivery, acknowledged, claimed
// and started, succeeded.
type life struct {
	creation *lane.AppendCommand
	claim    *lane.ClaimCommand
	success  *lane.AppendCommand
}

func newLife(tb testing.TB, f *lanetest.Factory, at time.Time) life {
	tb.Helper()
	l := life{creation: f.Creation(tb, at, lanetest.RunOptions{Outbox: lane.InitialOutbox{ClaimUntil: at.Add(time.Minute)}})}
	l.claim = f.Claim(tb, l.creation.Projected, at, at.Add(time.Minute), "token")
	l.success = f.Append(tb, l.claim.Projected, at, lanetest.Succeeded(l.claim.Projected, nil))
	l.success.LeaseToken = "token"
	return l
}

func (l *life) live(tb testing.TB, s lane.Storage) {
	tb.Helper()
	ctx := context.Background()
	commit, err := s.AppendRunEvents(ctx, l.creation)
	if err != nil {
		tb.Fatal(err)
	}
	err = s.MarkOutboxMessagesPublished(ctx, &lane.MarkPublishedCommand{
		Environment: "bench", At: l.claim.At, Messages: []lane.OutboxRef{commit.Outbox[0].OutboxRef},
	})
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := s.GetRun(ctx, l.creation.Key()); err != nil {
		tb.Fatal(err)
	}
	if got, err := s.ClaimRunLease(ctx, l.claim); err != nil || got.Outcome != lane.Acquired {
		tb.Fatal(got, err)
	}
	if _, err := s.AppendRunEvents(ctx, l.success); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkStorage_SimpleRun is the storage's part of a run from trigger to success, history kept.
func BenchmarkStorage_SimpleRun(b *testing.B) {
	f, s, at := lanetest.NewFactory("bench"), memlane.NewStorage(nil), time.Now()
	lives := make([]life, 0, 1000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%1000 == 0 {
			b.StopTimer()
			lives = lives[:0]
			for range 1000 {
				at = at.Add(time.Millisecond)
				lives = append(lives, newLife(b, f, at))
			}
			b.StartTimer()
		}
		lives[i%1000].live(b, s)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
}

// BenchmarkTransport_PublishAndReceive is the transport's part.
func BenchmarkTransport_PublishAndReceive(b *testing.B) {
	transport := memlane.NewTransport(nil)
	ctx, cancel := context.WithCancel(context.Background())
	received, done := make(chan struct{}, 1000), make(chan error)
	go func() { // ends with ctx
		done <- transport.Receive(ctx, []runlane.QueueName{"q"}, 10, func(context.Context, lane.Wakeup) error {
			received <- struct{}{}
			return nil
		})
	}()
	command := &lane.PublishCommand{Attempts: []lane.PublishAttempt{{Wakeup: lane.Wakeup{RunKey: lane.RunKey{RunID: "run_1"}, Queue: "q"}}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := transport.PublishWakeups(ctx, command); err != nil {
			b.Fatal(err)
		}
		<-received
	}
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

// BenchmarkStorage_Memory reports what finished and waiting runs take, and what a look at nothing due costs beside them.
func BenchmarkStorage_Memory(b *testing.B) {
	const runs = 100_000
	for name, finish := range map[string]bool{"Finished": true, "Waiting": false} {
		b.Run(name, func(b *testing.B) {
			f, s, at := lanetest.NewFactory("bench"), memlane.NewStorage(nil), time.Now()
			before := heap()
			for range runs {
				at = at.Add(time.Millisecond)
				if finish {
					l := newLife(b, f, at)
					l.live(b, s)
				} else if _, err := s.AppendRunEvents(context.Background(), f.Creation(b, at, lanetest.RunOptions{RunAt: at.Add(24 * time.Hour)})); err != nil {
					b.Fatal(err)
				}
			}
			bytes := float64(heap()-before) / runs
			q := &lane.DueQuery{PageQuery: lane.PageQuery{Environment: "bench"}, At: at}
			for b.Loop() {
				page, err := s.ListRunsNeedingDelivery(context.Background(), q)
				if err != nil || len(page.Items) != 0 {
					b.Fatal(fmt.Sprint(page, err))
				}
			}
			b.ReportMetric(bytes, "B/run")
			runtime.KeepAlive(s)
		})
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
