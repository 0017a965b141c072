package rows

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

// Sort keys within the partition of a flow. The head changes, and each run of the flow depends on it, so that it is
// small; a plan is written once a round.
const (
	FlowHeadSK     = "head"
	FlowPlanPrefix = "plan:"
)

// Flow is the head of a flow. Its version is its sequence.
type Flow struct {
	PK       string `dynamodbav:"pk"`
	SK       string `dynamodbav:"sk"`
	Version  int64  `dynamodbav:"sq"`
	Change   string `dynamodbav:"ci"` // the put that wrote it
	Created  Millis `dynamodbav:"ca"`
	Round    int    `dynamodbav:"rn"`
	Closed   int    `dynamodbav:"cz"`
	Tend     Millis `dynamodbav:"td,omitempty"`
	Finished Millis `dynamodbav:"ff,omitempty"`
	Status   string `dynamodbav:"st,omitempty"`

	DueP  string `dynamodbav:"dp,omitempty"`
	DueA  string `dynamodbav:"da,omitempty"`
	DoneP string `dynamodbav:"fp"`
	DoneA string `dynamodbav:"fa"`

	Raw item.Item `dynamodbav:"-"` // as stored
}

// FlowPlan is the graph of a flow in a round.
type FlowPlan struct {
	PK      string `dynamodbav:"pk"`
	SK      string `dynamodbav:"sk"`
	Version int64  `dynamodbav:"sq"` // that of the head with which it was written
	Plan    []byte `dynamodbav:"pl"`
}

// FlowList is a list of flows: a kind of partitions of an index.
type FlowList string

// The lists. A flow is in flow-open exactly until it has finished, then in flow-over; in flow-tend while a tick has to
// look at it.
const (
	FlowsOpen FlowList = "flow-open" // of the index done, by id
	FlowsOver FlowList = "flow-over" // of the index done, by when they finished
	FlowsTend FlowList = "flow-tend" // of the index due, by when they are to be tended
)

// Partition is a partition of the list.
func (l FlowList) Partition(e runlane.Environment, shard int) string {
	return e.Name() + ":" + string(l) + ":" + strconv.Itoa(shard)
}

// FlowPK is the partition key of a flow.
func FlowPK(key lane.FlowKey) string { return key.Environment.Name() + ":flow:" + string(key.FlowID) }

// ParseFlowPK is the inverse of FlowPK.
func ParseFlowPK(pk string) runlane.FlowID {
	_, id, _ := strings.Cut(pk, ":flow:")
	return runlane.FlowID(id)
}

// FlowHead is the key of a flow's head.
func FlowHead(key lane.FlowKey) item.Item { return item.Key(FlowPK(key), FlowHeadSK) }

// FlowPlanSK is the sort key of the plan of a round.
func FlowPlanSK(round int) string { return fmt.Sprintf("%s%010d", FlowPlanPrefix, round) }

// NewFlow is the head that a command writes.
func NewFlow(c *lane.FlowCommand, change string, shards Shards) *Flow {
	f := &c.Flow
	head := &Flow{
		PK:       FlowPK(lane.FlowKey{Environment: c.Environment, FlowID: f.ID}),
		SK:       FlowHeadSK,
		Version:  f.Version + 1,
		Change:   change,
		Created:  ToMillis(f.CreatedAt),
		Round:    f.Round,
		Closed:   f.Closed,
		Tend:     ToMillis(f.TendAt),
		Finished: ToMillis(f.FinishedAt),
		Status:   string(f.Status),
	}
	shard := ShardOf(string(f.ID), shards.Write)
	head.DoneP, head.DoneA = FlowsOpen.Partition(c.Environment, shard), string(f.ID)
	if head.Finished > 0 {
		head.DoneP, head.DoneA = FlowsOver.Partition(c.Environment, shard), fmt.Sprintf("%013d:%s", head.Finished, f.ID)
	}
	if head.Tend > 0 {
		head.DueP, head.DueA = FlowsTend.Partition(c.Environment, shard), fmt.Sprintf("%013d:%s", head.Tend, f.ID)
	}
	return head
}

// ReadFlow reads the head of a flow.
func ReadFlow(raw item.Item) (*Flow, error) {
	f := &Flow{Raw: raw}
	return f, Unmarshal(raw, f)
}

// Record is the flow in the form of the contract, without its plan.
func (f *Flow) Record() *lane.FlowRecord {
	return &lane.FlowRecord{
		ID:         ParseFlowPK(f.PK),
		Version:    f.Version,
		CreatedAt:  f.Created.Time(),
		Round:      f.Round,
		Closed:     f.Closed,
		TendAt:     f.Tend.Time(),
		FinishedAt: f.Finished.Time(),
		Status:     runlane.FlowStatus(f.Status),
	}
}

// Write is the part of a transaction that writes the head, on the version before it.
func (f *Flow) Write(before *Flow) (item.Write, error) {
	raw, err := Marshal(f)
	if before == nil || err != nil {
		return item.Write{After: raw, Condition: item.Absent}, err
	}
	after := maps.Clone(before.Raw) // what this version does not know stays
	for _, name := range flowAttributes {
		delete(after, name)
	}
	maps.Copy(after, raw)
	return item.Write{Before: before.Raw, After: after, Condition: before.Unchanged()}, nil
}

// flowAttributes may be absent.
var flowAttributes = []string{"td", "ff", "st", AttrDueP, AttrDueA}

// Unchanged is the condition that this flow is at its version. Its change is of one write of one flow, also where the id
// had another flow before.
func (f *Flow) Unchanged() item.Condition { return item.Equal("ci", item.Text(f.Change)) }

// Wrote reports whether an item is this head.
func (f *Flow) Wrote(now item.Item) bool { return item.TextOf(now["ci"]) == f.Change }

// Proof shows that the head was written by its transaction.
func (f *Flow) Proof() item.Proof {
	return item.Proof{Operation: "settle flow", Pk: f.PK, Sk: f.SK, Values: item.Item{"ci": item.Text(f.Change)}}
}

// GoneProof shows that the head was removed.
func (f *Flow) GoneProof() item.Proof {
	return item.Proof{Operation: "settle flow", Pk: f.PK, Sk: f.SK, Values: item.Item{"ci": nil}}
}

// PutPlan is the part of a transaction that puts the plan of the flow's round. It needs no condition: every write of a
// plan is beside one of the head, which has one.
func (f *Flow) PutPlan(plan []byte) (item.Write, error) {
	raw, err := Marshal(&FlowPlan{PK: f.PK, SK: FlowPlanSK(f.Round), Version: f.Version, Plan: plan})
	return item.Write{After: raw}, err
}

// open is the check of a run's creation that its flow takes it.
func open(e runlane.Environment, c *lane.FlowCheck) item.Write {
	return item.Write{
		Before: FlowHead(lane.FlowKey{Environment: e, FlowID: c.FlowID}),
		Condition: item.Equal("rn", item.Num(int64(c.Round))).And(
			item.Equal("cz", item.Num(0)),
			item.Equal("ca", item.Num(int64(ToMillis(c.CreatedAt)))),
		),
		Check: true,
	}
}

// Flow is the flow of which the run is a node.
func (r *Run) Flow() (id runlane.FlowID, is bool) {
	return runlane.FlowID(r.SourceRun), r.SourceType == string(runlane.SourceFlow)
}

// InFlow reports a node of a flow that has not finished.
func (r *Run) InFlow(flows map[runlane.FlowID]*Flow) bool {
	id, is := r.Flow()
	f := flows[id]
	return is && f != nil && f.Finished == 0 && f.Created == r.SourceFire
}
