package sqlitelane_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/sqlitelane"
)

var everything = lane.StorageCapabilities{
	ClaimsScheduleOccurrences: true, DurableState: true, EnforcesIdempotency: true, EnforcesQueueConcurrency: true, EnforcesQueueRate: true,
	EnforcesSingleton: true, LeasesRuns: true, PersistsOutbox: true, PrunesRuns: true, ReadsRunHistory: true,
	FindsLostWakeups: true, KeepsDeadLetters: true, KeepsSchedules: true, SuspendsRuns: true,
	FeedsCommits: true, KeepsProgress: true, KeepsTasks: true,
}

// started is a process's storage over a file.
func started(t testing.TB, path string, ahead time.Duration) *sqlitelane.Storage {
	t.Helper()
	s := sqlitelane.NewStorage(path, ahead)
	if err := s.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func newPath(t testing.TB) string {
	t.Helper()
	return filepath.Join(memoryFolder(t), "runlane.db")
}

func TestStorage_Conformance(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	lanetest.RunStorage(t, lanetest.StorageHarness{
		New: func(t testing.TB) lane.Storage { // each case is a process
			t.Helper()
			return started(t, path, 0)
		},
		Capabilities: everything,
		IndexesLists: true,
		PlantUnknownEvent: func(t testing.TB, s lane.Storage, key lane.RunKey, event runlane.UnknownEvent) {
			t.Helper()
			if err := s.(*sqlitelane.Storage).Plant(key, &event); err != nil {
				t.Fatal(err)
			}
		},
		Skewed: func(t testing.TB, s lane.Storage, ahead time.Duration) lane.Storage {
			t.Helper()
			return started(t, s.(*sqlitelane.Storage).Path(), ahead)
		},
	})
}

func TestTransport_Conformance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ordered []runlane.QueueName
		promise lane.TransportCapabilities
	}{
		"AnyOrder": {nil, lane.TransportCapabilities{DurableDelivery: true, NativeDelay: true}},
		"Ordered": {
			[]runlane.QueueName{"alpha", "beta"},
			lane.TransportCapabilities{DurableDelivery: true, MessageGrouping: true, NativeDelay: true, OrderedDelivery: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := func(t testing.TB, _ ...runlane.QueueName) lane.Transport {
				t.Helper()
				l := opened(t, c.ordered...)
				l.Transport.(*sqlitelane.Transport).SetHandBack(10 * time.Millisecond)
				return l.Transport
			}
			lanetest.RunTransport(t, lanetest.TransportHarness{
				New:          made,
				Capabilities: c.promise,
				AnyQueue:     true, Receives: true, Fair: len(c.ordered) == 0, Depth: true,
				Down: func(t testing.TB, queues ...runlane.QueueName) lane.Transport {
					t.Helper()
					transport := made(t, queues...)
					_ = transport.Close(context.Background())
					return transport
				},
			})
		})
	}
}

// opened is a lane that is started.
func opened(t testing.TB, ordered ...runlane.QueueName) *lane.Lane {
	t.Helper()
	l, err := sqlitelane.Open(context.Background(), newPath(t), &sqlitelane.Options{Ordered: ordered})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Start(context.Background(), lane.StartOptions{Environment: lanetest.TransportEnvironment}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return l
}

// fresh is a lane that is not started.
func fresh(t testing.TB) *lane.Lane {
	t.Helper()
	l, err := sqlitelane.Open(context.Background(), newPath(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

func TestLane_Conformance(t *testing.T) {
	t.Parallel()
	lanetest.RunLane(t, lanetest.LaneHarness{
		New: fresh,
		Capabilities: lane.Capabilities{
			Storage: everything, Transport: lane.TransportCapabilities{DurableDelivery: true, NativeDelay: true},
		},
		OperatorReads: true, ProductionDurable: true,
	})
}

func TestRuntime_Scenarios(t *testing.T) {
	t.Parallel()
	lanetest.RunRuntime(t, lanetest.LaneHarness{New: fresh})
}
