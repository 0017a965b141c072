package lanetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lane"
)

// LaneHarness is what [RunLane] and [RunRuntime] have to know of a lane package.
type LaneHarness struct {
	// New returns a fresh lane that is not started; the suite starts and closes it. Required.
	New func(t testing.TB) *lane.Lane
	// Capabilities are what the lane is expected to promise.
	Capabilities lane.Capabilities
	// ProductionDurable and OperatorReads are what the package is expected to say of its lane.
	ProductionDurable, OperatorReads bool
	// Settle is for storages that show writes late: it waits until all writes so far show. [RunRuntime] calls it where
	// its virtual clock advances by more than the delay of an index. What has to follow a write at once, it waits for
	// without it. nil: writes show at once.
	Settle func(t testing.TB)
}

// RunLane proves that a lane package composes its halves honestly: what both promise is what the lane promises, and
// starting and closing keep the order.
func RunLane(t *testing.T, h LaneHarness) {
	t.Helper()
	for _, c := range laneCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, h)
		})
	}
}

// RunRuntime proves over a lane what package core promises to applications, one subtest for each promise, in separate
// environments: lanes of the harness may share a table. The storage has to lease runs and keep an outbox. Of the
// harness it uses New and Settle.
func RunRuntime(t *testing.T, h LaneHarness) {
	t.Helper()
	scenarios.Run(t, scenarios.Harness{NewLane: h.New, Settle: h.Settle})
}

type laneCase struct {
	name string
	run  func(*testing.T, LaneHarness)
}

// docs/internals/contract.md, Lane.
func laneCases() []laneCase {
	return []laneCase{
		{"PromisesWhatItsHalvesPromise", lanePromises},
		{"StartsWorksAndCloses", laneWorks},
		{"StorageStartsFirstAndClosesLast", laneOrder},
		{"StorageIsClosedWhenTheTransportDoesNotStart", laneHalfStarted},
	}
}

func lanePromises(t *testing.T, h LaneHarness) {
	l := h.New(t)
	equal(t, "capabilities", h.Capabilities, l.Capabilities())
	equal(t, "storage's", l.Storage.Capabilities(), l.Capabilities().Storage)
	equal(t, "transport's", l.Transport.Capabilities(), l.Capabilities().Transport)
	if l.ProductionDurable != h.ProductionDurable || l.OperatorReads != h.OperatorReads {
		t.Fatalf(
			"production durable %t, operator reads %t; want %t, %t",
			l.ProductionDurable,
			l.OperatorReads,
			h.ProductionDurable,
			h.OperatorReads,
		)
	}
	if l.ProductionDurable && !(l.Capabilities().Storage.DurableState && l.Capabilities().Transport.DurableDelivery) {
		t.Fatal("a lane is not more durable than its halves")
	}
	if l.Name == "" {
		t.Fatal("the lane has no name")
	}
}

func laneWorks(t *testing.T, h LaneHarness) {
	l := h.New(t)
	ctx := t.Context()
	if err := l.Start(ctx, lane.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	b := newBundle(t, StorageHarness{
		New:          func(testing.TB) lane.Storage { return l.Storage },
		Capabilities: h.Capabilities.Storage,
	})
	commit := b.append(b.Creation(t, time.Now(), RunOptions{}))
	equal(t, "run", commit.Run, b.get(commit.Run.ID))
	if err := l.Close(context.WithoutCancel(ctx)); err != nil {
		t.Fatal(err)
	}
}

// recorded writes down what a lane does to its halves.
type recorded struct{ calls []string }

type recordedStorage struct {
	lane.Storage
	*recorded
}

func (s recordedStorage) Start(ctx context.Context) error {
	s.calls = append(s.calls, "storage starts")
	return s.Storage.Start(ctx)
}

func (s recordedStorage) Close(ctx context.Context) error {
	s.calls = append(s.calls, "storage closes")
	return s.Storage.Close(ctx)
}

func (s recordedStorage) Unwrap() lane.Storage { return s.Storage }

type recordedTransport struct {
	lane.Transport
	*recorded
	fail error
}

func (r recordedTransport) Start(ctx context.Context, o lane.StartOptions) error {
	r.calls = append(r.calls, "transport starts")
	if r.fail != nil {
		return r.fail
	}
	return r.Transport.Start(ctx, o)
}

func (r recordedTransport) Close(ctx context.Context) error {
	r.calls = append(r.calls, "transport closes")
	return r.Transport.Close(ctx)
}

func (r recordedTransport) Unwrap() lane.Transport { return r.Transport }

// record makes a lane of the same halves, wrapped in recorders.
func record(t *testing.T, h LaneHarness, fail error) (*lane.Lane, *recorded) {
	t.Helper()
	inner, calls := h.New(t), &recorded{}
	l := must(lane.New(
		recordedStorage{inner.Storage, calls},
		recordedTransport{inner.Transport, calls, fail},
		&lane.Options{
			Environment:       inner.Environment,
			Name:              inner.Name,
			NoOperatorReads:   !inner.OperatorReads,
			ProductionDurable: inner.ProductionDurable,
		},
	))(t)
	equal(t, "capabilities through decorators", h.Capabilities, l.Capabilities())
	return l, calls
}

func laneOrder(t *testing.T, h LaneHarness) {
	l, calls := record(t, h, nil)
	if err := errors.Join(l.Start(t.Context(), lane.StartOptions{}), l.Close(context.WithoutCancel(t.Context()))); err != nil {
		t.Fatal(err)
	}
	equal(t, "calls", []string{"storage starts", "transport starts", "transport closes", "storage closes"}, calls.calls)
}

func laneHalfStarted(t *testing.T, h LaneHarness) {
	failure := &runlane.Error{Code: runlane.ErrTransportUnavailable, Message: "no"}
	l, calls := record(t, h, failure)
	err := l.Start(t.Context(), lane.StartOptions{})
	if !errors.Is(err, runlane.ErrTransportUnavailable) {
		t.Fatalf("Start returned %v", err)
	}
	equal(t, "calls", []string{"storage starts", "transport starts", "storage closes"}, calls.calls)
}
