package core_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// tended is a storage that makes no runs of flows, and has flows that it cannot write.
type tended struct {
	lane.Storage

	torn map[runlane.FlowID]bool
}

func (s *tended) Unwrap() lane.Storage { return s.Storage }

func (s *tended) AppendRunEvents(ctx context.Context, c *lane.AppendCommand) (*lane.Commit, error) {
	if c.Flow != nil {
		return nil, errDamaged
	}
	return s.Storage.AppendRunEvents(ctx, c)
}

func (s *tended) PutFlow(ctx context.Context, c *lane.FlowCommand) (*lane.FlowRecord, error) {
	if s.torn[c.Flow.ID] {
		return nil, errDamaged
	}
	return s.Storage.PutFlow(ctx, c)
}

// Flows that a tick cannot end, more than a page of them, do not hide those behind them.
func TestTick_FlowsThatFail_HideNoOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit, many = 3, 10
		task := runlane.NewTask[int]("task", nil)
		storage := &tended{memlane.NewStorage(nil), map[runlane.FlowID]bool{}}
		rt := openOn(t, storage, memlane.NewTransport(nil))
		for i := range many {
			f := runlane.NewFlow(runlane.FlowID(fmt.Sprintf("flow-%02d", i)))
			f.Add("n", task.With(i), nil)
			if _, err := rt.StartFlow(t.Context(), f, nil); err == nil {
				t.Fatal("a run of a flow was made")
			}
			storage.torn[f.ID()] = i < 2*limit
		}
		time.Sleep(time.Hour)
		for range many { // at most a limit of them each
			if _, err := rt.Tick(t.Context(), &core.TickOptions{Limit: limit}); err == nil {
				t.Error("the tick does not tell of the flows that fail")
			}
		}
		for i := range many {
			id := runlane.FlowID(fmt.Sprintf("flow-%02d", i))
			state, err := rt.Flows().Get(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if want := storage.torn[id]; want == (state.Status == runlane.FlowCancelled) {
				t.Errorf("%s is %s", id, state.Status)
			}
		}
	})
}
