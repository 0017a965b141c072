package memlane_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStorage_Conformance(t *testing.T) {
	t.Parallel()
	lanetest.RunStorage(t, lanetest.StorageHarness{
		New: func(testing.TB) lane.Storage {
			c := &clocked{}
			c.Storage = memlane.NewStorage(&memlane.StorageOptions{Now: func() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }})
			return c
		},
		Capabilities: lane.StorageCapabilities{
			EnforcesIdempotency: true, EnforcesQueueConcurrency: true, EnforcesQueueRate: true, EnforcesSingleton: true, LeasesRuns: true, PersistsOutbox: true,
			ProcessLocalState: true, ReadsRunHistory: true, FindsLostWakeups: true, KeepsDeadLetters: true,
			ClaimsScheduleOccurrences: true, KeepsSchedules: true, PrunesRuns: true, SuspendsRuns: true,
			FeedsCommits: true, KeepsProgress: true, KeepsTasks: true,
		},
		IndexesLists: true,
		PlantUnknownEvent: func(_ testing.TB, s lane.Storage, key lane.RunKey, event runlane.UnknownEvent) {
			s.(*clocked).Plant(key, &event)
		},
		Skewed: func(_ testing.TB, s lane.Storage, ahead time.Duration) lane.Storage {
			return &skewed{s.(*clocked), ahead}
		},
	})
}

// clocked is a storage whose clock can be moved.
type clocked struct {
	*memlane.Storage
	ahead atomic.Int64
}

// skewed asks the same storage by a clock that is ahead. Only these methods look at one.
type skewed struct {
	*clocked
	ahead time.Duration
}

func (s *skewed) moved() (back func()) {
	s.clocked.ahead.Store(int64(s.ahead))
	return func() { s.clocked.ahead.Store(0) }
}

func (s *skewed) GetRunByIdempotencyKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	defer s.moved()()
	return s.Storage.GetRunByIdempotencyKey(ctx, key)
}

func (s *skewed) ResetIdempotencyKey(ctx context.Context, key lane.OwnerKey) error {
	defer s.moved()()
	return s.Storage.ResetIdempotencyKey(ctx, key)
}

func (s *skewed) PruneRuns(ctx context.Context, c *lane.PruneCommand) (*lane.PruneProgress, error) {
	defer s.moved()()
	return s.Storage.PruneRuns(ctx, c)
}

func TestTransport_Conformance(t *testing.T) {
	t.Parallel()
	for name, any := range map[string]bool{"BoundQueues": false, "AnyQueue": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := func(t testing.TB, queues ...runlane.QueueName) lane.Transport {
				t.Helper()
				options := &memlane.TransportOptions{HandBack: 10 * time.Millisecond, Queues: queues}
				if any {
					options.Queues = nil
				}
				transport := memlane.NewTransport(options)
				t.Cleanup(func() { _ = transport.Close(context.Background()) })
				return transport
			}
			lanetest.RunTransport(t, lanetest.TransportHarness{
				New:          made,
				Capabilities: lane.TransportCapabilities{NativeDelay: true},
				AnyQueue:     any, Receives: true, Fair: true, Depth: true,
				Down: func(t testing.TB, queues ...runlane.QueueName) lane.Transport {
					t.Helper()
					transport := made(t, queues...)
					_ = transport.Close(t.Context())
					return transport
				},
			})
		})
	}
}

func TestLane_Conformance(t *testing.T) {
	t.Parallel()
	lanetest.RunLane(t, lanetest.LaneHarness{
		New: func(testing.TB) *lane.Lane { return memlane.New() },
		Capabilities: lane.Capabilities{
			Storage: memlane.NewStorage(nil).Capabilities(), Transport: lane.TransportCapabilities{NativeDelay: true},
		},
		OperatorReads: true,
	})
}
