package flow

import (
	"context"
	"encoding/json"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Record reads the whole record of a flow and checks that its graph is readable.
func (all *Flows) Record(ctx context.Context, id runlane.FlowID) (*lane.FlowRecord, error) {
	record, err := all.readRecord(ctx, id, false)
	if err != nil {
		return nil, err
	}
	_, err = readGraph(record)
	return record, err
}

// Settle judges the waiting nodes of an imported flow, because ends of the source environment notify nobody here. It is
// the check of every end, so a concurrent runtime may do it too. there means that a flow with this ID existed before
// the import; it must be the same one.
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
		conflict := runlane.NewConflict(runlane.ConflictFlow, "another flow has this id")
		conflict.Hint = "import into an environment that has no such flow"
		conflict.Meta = map[string]string{"flow": string(record.ID)}
		return conflict
	}
	return f.settle(ctx)
}
