package memlane_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStorage_Conformance(t *testing.T) {
	t.Parallel()
	lanetest.RunStorage(t, lanetest.StorageHarness{
		New: func(testing.TB) lane.Storage { return memlane.NewStorage(nil) },
		Capabilities: lane.StorageCapabilities{
			EnforcesIdempotency: true, EnforcesQueueConcurrency: true, EnforcesSingleton: true, LeasesRuns: true, PersistsOutbox: true,
			ProcessLocalState: true, ReadsRunHistory: true, FindsLostWakeups: true, KeepsDeadLetters: true,
			ClaimsScheduleOccurrences: true, KeepsSchedules: true, PrunesRuns: true,
		},
		Checker: true,
		PlantUnknownEvent: func(_ testing.TB, s lane.Storage, key lane.RunKey, event runlane.UnknownEvent) {
			s.(*memlane.Storage).Plant(key, &event)
		},
	})
}

func TestTransport_Conformance(t *testing.T) {
	t.Parallel()
	for name, any := range map[string]bool{"BoundQueues": false, "AnyQueue": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lanetest.RunTransport(t, lanetest.TransportHarness{
				New: func(t testing.TB, queues ...runlane.QueueName) lane.Transport {
					t.Helper()
					options := &memlane.TransportOptions{HandBack: 10 * time.Millisecond, Queues: queues}
					if any {
						options.Queues = nil
					}
					transport := memlane.NewTransport(options)
					t.Cleanup(func() { _ = transport.Close(context.Background()) })
					return transport
				},
				Capabilities: lane.TransportCapabilities{NativeDelay: true},
				AnyQueue:     any, Receives: true, Depth: true,
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
