package core_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/scenarios"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/sealed"
)

func newCodec(t testing.TB, options *sealed.Options, ids ...string) *sealed.Codec {
	t.Helper()
	var keys []sealed.Key
	for _, id := range ids {
		key, err := sealed.KeyOf(id, bytes.Repeat([]byte(id), sealed.KeyBytes)[:sealed.KeyBytes])
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	codec, err := sealed.New(keys, options)
	if err != nil {
		t.Fatal(err)
	}
	return codec
}

// A runtime does the same above a codec: every scenario of the suite, with every body encrypted on its way.
func TestRuntime_MemlaneThroughACodec(t *testing.T) {
	t.Parallel()
	scenarios.Run(t, scenarios.Harness{
		NewLane: func(t testing.TB) *lane.Lane {
			t.Helper()
			l := memlane.New()
			l.Storage = core.NewCodedStorage(l.Storage, newCodec(t, nil, "k"))
			return l
		},
		Virtual: true,
	})
}

// A storage behind a codec is a storage: it keeps the whole contract. What a codec tells of a run is no part of its history.
func TestStorage_MemlaneThroughACodec(t *testing.T) {
	t.Parallel()
	lanetest.RunStorage(t, lanetest.StorageHarness{
		New: func(t testing.TB) lane.Storage {
			t.Helper()
			return &withoutSealed{core.NewCodedStorage(memlane.NewStorage(nil), newCodec(t, nil, "k")), t, "k"}
		},
		Capabilities: memlane.NewStorage(nil).Capabilities(),
	})
}

// withoutSealed takes the names of keys off the runs that it returns, all of which have one.
type withoutSealed struct {
	lane.Storage

	t   testing.TB
	key string // "": the runs have none
}

func (s *withoutSealed) Unwrap() lane.Storage { return s.Storage }

func (s *withoutSealed) strip(run *runlane.Run) {
	if run == nil {
		return
	}
	if sealed := run.Sealed; s.key != "" && run.Payload != nil && (sealed == nil || sealed.PayloadKey != s.key || run.Output != nil && sealed.OutputKey != s.key) {
		s.t.Errorf("run %s is %+v", run.ID, sealed)
	}
	run.Sealed = nil
}

func (s *withoutSealed) stripped(run *runlane.Run, err error) (*runlane.Run, error) {
	s.strip(run)
	return run, err
}

func (s *withoutSealed) committed(c *lane.Commit, err error) (*lane.Commit, error) {
	if c != nil && c.Run != nil {
		c.Run.Sealed = nil // as the command said it, which knows of no key
	}
	return c, err
}

func (s *withoutSealed) acquired(a *lane.Acquisition, err error) (*lane.Acquisition, error) {
	if a != nil {
		_, _ = s.committed(a.Commit, nil)
	}
	return a, err
}

func (s *withoutSealed) GetRun(ctx context.Context, key lane.RunKey) (*runlane.Run, error) {
	return s.stripped(s.Storage.GetRun(ctx, key))
}

func (s *withoutSealed) GetRuns(ctx context.Context, q *lane.RunsQuery) ([]*runlane.Run, error) {
	runs, err := s.Storage.GetRuns(ctx, q)
	for _, run := range runs {
		s.strip(run)
	}
	return runs, err
}

func (s *withoutSealed) GetRunByIdempotencyKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	return s.stripped(s.Storage.GetRunByIdempotencyKey(ctx, key))
}

func (s *withoutSealed) GetRunBySingletonKey(ctx context.Context, key lane.OwnerKey) (*runlane.Run, error) {
	return s.stripped(s.Storage.GetRunBySingletonKey(ctx, key))
}

func (s *withoutSealed) InspectRun(ctx context.Context, q *lane.InspectQuery) (*lane.Inspection, error) {
	seen, err := s.Storage.InspectRun(ctx, q)
	if seen != nil {
		s.strip(seen.Run)
	}
	return seen, err
}

func (s *withoutSealed) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	return s.committed(s.Storage.AppendRunEvents(ctx, c))
}

func (s *withoutSealed) HeartbeatRunLease(ctx context.Context, c *lane.HeartbeatCommand) (*lane.Commit, error) {
	return s.committed(s.Storage.HeartbeatRunLease(ctx, c))
}

func (s *withoutSealed) ClaimRunLease(ctx context.Context, c *lane.ClaimCommand) (*lane.Acquisition, error) {
	return s.acquired(s.Storage.ClaimRunLease(ctx, c))
}

func (s *withoutSealed) ReserveRunDispatch(ctx context.Context, c *lane.ReserveCommand) (*lane.Acquisition, error) {
	return s.acquired(s.Storage.ReserveRunDispatch(ctx, c))
}
