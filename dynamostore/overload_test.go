package dynamostore

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// The units of a commit, and how many runs a second the narrow table can create, claim and finish.
const (
	narrowUnits   = 5
	narrowRuns    = 300
	narrowSeconds = 20
	narrowSecond  = narrowRuns * 3 * narrowUnits
)

// narrow is a client of a table of limited capacity. It keeps nothing.
type narrow struct {
	API

	mutex  sync.Mutex
	units  float64 // left, at most those of a second
	filled time.Time
}

func (n *narrow) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	<-time.After(5 * time.Millisecond)
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.units = min(n.units+narrowSecond*time.Since(n.filled).Seconds(), narrowSecond)
	n.filled = time.Now()
	if n.units < narrowUnits {
		return nil, &types.ProvisionedThroughputExceededException{}
	}
	n.units -= narrowUnits
	return &dynamodb.UpdateItemOutput{}, nil
}

// toll is a storage in memory that pays for each commit by a write to the narrow table, with this store's retries.
type toll struct {
	lane.Storage

	store *Store
	limit bool
}

func (s *toll) pay(ctx context.Context) error {
	_, _, err := s.store.db.Update(ctx, "pay", &item.Update{Key: item.Key("a", "b"), Expression: "SET #x = :x"})
	return err
}

func (s *toll) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	if err := s.pay(ctx); err != nil {
		return nil, err
	}
	return s.Storage.AppendRunEvents(ctx, c)
}

func (s *toll) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	if err := s.pay(ctx); err != nil {
		return nil, err
	}
	return s.Storage.ClaimRunLease(ctx, c)
}

func (s *toll) AdmitRuns(n int) error {
	if !s.limit {
		return nil
	}
	return s.store.AdmitRuns(n)
}

// crowd is processes on one table that trigger and execute.
type crowd struct {
	*testing.T

	all      [2]*core.Runtime
	created  [2]atomic.Int64
	refused  atomic.Int64
	finished atomic.Int64
}

var narrowTask = runlane.NewTask[int]("narrow", nil)

func openCrowd(t *testing.T, limit bool) *crowd {
	t.Helper()
	w := &crowd{T: t}
	client := &narrow{units: narrowSecond, filled: time.Now()}
	storage, transport := memlane.NewStorage(nil), memlane.NewTransport(nil)
	for i := range w.all {
		l, err := lane.New(&toll{storage, New(client, "narrow", nil), limit}, transport, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.all[i], err = core.Open(t.Context(), l, &core.Options{Logger: slog.New(slog.DiscardHandler), Handlers: []runlane.Handler{
			narrowTask.Handle(func(context.Context, *runlane.Attempt, int) error {
				<-time.After(100 * time.Millisecond)
				w.finished.Add(1) // its outcome is yet to be committed
				return nil
			}),
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// trigger makes a second's triggers of one process, each in its own goroutine.
func (w *crowd) trigger(process, seconds, each int) {
	for range seconds * each {
		<-time.After(time.Second / time.Duration(each))
		go func() {
			switch _, err := w.all[process].Trigger(context.Background(), narrowTask.With(1), nil); {
			case err == nil:
				w.created[process].Add(1)
			case errors.Is(err, runlane.ErrOverloaded):
				w.refused.Add(1)
			}
		}()
	}
}

// A table that can finish 300 runs a second finishes 250 while two processes trigger 1,000, and each of them makes its
// share. Without the limit it finishes fewer than 100, and ever fewer. When the load ends the limit ends too.
func TestOverload_MoreTriggersThanTheTableBears_RunsStillFinish(t *testing.T) {
	t.Parallel()
	for _, limit := range []bool{true, false} {
		t.Run("limit "+strconv.FormatBool(limit), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := openCrowd(t, limit)
				ctx, stop := context.WithCancel(t.Context())
				var working sync.WaitGroup
				for _, rt := range w.all {
					working.Go(func() {
						if err := rt.Work(ctx, &core.WorkOptions{Concurrency: 50}); err != nil {
							t.Error(err)
						}
					})
				}
				go w.trigger(0, narrowSeconds, 500)
				w.trigger(1, narrowSeconds, 500)
				finished := w.finished.Load() / narrowSeconds
				a, b := w.created[0].Load(), w.created[1].Load()
				t.Logf("%d runs a second finished; %d and %d were created, %d refused", finished, a, b, w.refused.Load())
				if limit != (finished >= 250) || !limit && finished >= 100 {
					t.Errorf("%d runs a second finished", finished)
				}
				if limit && min(a, b)*3 < max(a, b)*2 {
					t.Errorf("one process made %d runs and the other %d", a, b)
				}
				w.trigger(0, 20, 100)
				w.refused.Store(0)
				if w.trigger(0, 5, 100); w.refused.Load() > 0 {
					t.Errorf("%d triggers of 100 a second are refused", w.refused.Load())
				}
				stop()
				working.Wait()
				<-time.After(time.Minute) // the last triggers
				for _, rt := range w.all {
					if err := rt.Close(context.Background()); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}
