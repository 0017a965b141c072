package flow

import (
	"context"
	"encoding/json"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Record reads the whole record of a flow, with a graph that can be read.
func (all *Flows) Record(ctx context.Context, id runlane.FlowID) (*lane.FlowRecord, error) {
	record, err := all.readRecord(ctx, id, false)
	if err != nil {
		return nil, err
	}
	_, err = readGraph(record)
	return record, err
}

// Settle looks at what the nodes of a flow wait for that was written from elsewhere: what had ended where they are from
// tells no one here. It is the same look as that of every end, so a runtime that works meanwhile may do it, too. there
// says that a flow of the id was here before, which has to be the same one.
func (all *Flows) Settle(ctx context.Context, record *lane.FlowRecord, there bool) error {
	f, err := all.Read(ctx, record.ID)
	if err != nil {
		return err
	}
	var plan flowPlan
	if err := json.Unmarshal(record.Plan, &plan); err != nil {
		return err
	}
	same := f.record.CreatedAt.Equal(record.CreatedAt) && f.record.Round >= record.Round && plan.same(&f.plan)
	if there && !same {
		conflict := runlane.NewConflict(runlane.ConflictFlow, "the flow is there, and is another one")
		conflict.Hint = "import into an environment that has no such flow"
		conflict.Meta = map[string]string{"flow": string(record.ID)}
		return conflict
	}
	return f.settle(ctx)
}
