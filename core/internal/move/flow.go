package move

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/fail"
	"github.com/runlane/runlane-go/core/internal/flow"
	"github.com/runlane/runlane-go/lane"
)

// movedFlow is the record of a flow. Its runs are on other lines.
type movedFlow struct {
	ID         runlane.FlowID     `json:"flowId"`
	CreatedAt  time.Time          `json:"createdAt"`
	Round      int                `json:"round,omitempty"`
	Closed     int                `json:"closed,omitempty"`
	TendAt     time.Time          `json:"tendAt,omitzero"`
	FinishedAt time.Time          `json:"finishedAt,omitzero"`
	Status     runlane.FlowStatus `json:"status,omitempty"`
	Plan       json.RawMessage    `json:"plan"`
}

// put is the command for a new record.
func (e *movedFlow) put(environment runlane.Environment) *lane.FlowCommand {
	return &lane.FlowCommand{Environment: environment, Flow: lane.FlowRecord{
		ID:         e.ID,
		CreatedAt:  e.CreatedAt,
		Round:      e.Round,
		Closed:     e.Closed,
		TendAt:     e.TendAt,
		FinishedAt: e.FinishedAt,
		Status:     e.Status,
		Plan:       e.Plan,
	}}
}

func (x *exporter) flowIDs(ctx context.Context) (ids []runlane.FlowID, err error) {
	if !x.m.Host.Storage().Capabilities().SuspendsRuns {
		return nil, nil
	}
	seen := map[runlane.FlowID]bool{} // a flow that finishes meanwhile is in both parts
	for _, finished := range []bool{false, true} {
		err = errors.Join(err, x.m.eachPage(func(q *lane.PageQuery) (runlane.Cursor, error) {
			page, err := x.m.Host.Stored().ListFlows(ctx, &lane.FlowQuery{PageQuery: *q, Finished: finished})
			if err != nil {
				return "", err
			}
			for i := range page.Items {
				if id := page.Items[i].ID; !seen[id] {
					seen[id], ids = true, append(ids, id)
				}
			}
			return page.Next, nil
		}))
	}
	return ids, err
}

func (x *exporter) flows(ctx context.Context, ids []runlane.FlowID) error {
	for _, id := range ids {
		r, err := x.m.Host.Flow(ctx, id)
		if errors.Is(err, runlane.ErrFlowNotFound) {
			continue // pruned meanwhile
		}
		if err != nil {
			return err
		}
		err = x.write(&line{Flow: &movedFlow{
			ID:         r.ID,
			CreatedAt:  r.CreatedAt,
			Round:      r.Round,
			Closed:     r.Closed,
			TendAt:     r.TendAt,
			FinishedAt: r.FinishedAt,
			Status:     r.Status,
			Plan:       r.Plan,
		}})
		if err != nil {
			return err
		}
		x.moved.Flows++
	}
	return nil
}

func (j *judge) flow(e *movedFlow) error {
	j.have.Flows++
	err := cmp.Or(flow.CheckPlan(e.Plan), e.put(j.plan.environment).Validate())
	if err != nil {
		return badImport(err, "flow %q cannot be kept", e.ID)
	}
	return j.once("flow", string(e.ID))
}

// importFlow writes the record of a flow after its runs, unless an earlier import did, and lets the host judge the
// waiting nodes, see Host.SettleFlow.
func (m *Mover) importFlow(ctx context.Context, e *movedFlow) error {
	if err := m.Host.SupportsFlows(); err != nil {
		return err
	}
	command := e.put(m.Environment)
	_, err := m.Host.Stored().PutFlow(ctx, command)
	if err != nil && !fail.IsConflict(err, runlane.ConflictFlow) {
		return err
	}
	return m.Host.SettleFlow(ctx, &command.Flow, err != nil)
}
