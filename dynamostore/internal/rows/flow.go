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

// Sort keys within a flow's partition. The head is small because each run of the flow checks it. Each round has one
// plan, written once.
const (
	FlowHeadSK     = "head"
	FlowPlanPrefix = "plan:"
)

type Flow struct {
	PK       string `dynamodbav:"pk"`
	SK       string `dynamodbav:"sk"`
	Version  int64  `dynamodbav:"sq"`
	Change   string `dynamodbav:"ci"` // ID of the put
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

	Raw item.Item `dynamodbav:"-"`
}

type FlowPlan struct {
	PK      string `dynamodbav:"pk"`
	SK      string `dynamodbav:"sk"`
	Version int64  `dynamodbav:"sq"` // of the head written with it
	Plan    []byte `dynamodbav:"pl"`
}

// FlowList names a list of flows, which is a kind of index partition.
type FlowList string

// An unfinished flow is in FlowsOpen, a finished one in FlowsOver. While a tick has to look at a flow, it is in
// FlowsTend.
const (
	FlowsOpen FlowList = "flow-open" // index done, by ID
	FlowsOver FlowList = "flow-over" // index done, by finish
	FlowsTend FlowList = "flow-tend" // index due, by the time of the next look
)

func (l FlowList) Partition(e runlane.Environment, shard int) string {
	return e.Name() + ":" + string(l) + ":" + strconv.Itoa(shard)
}

func FlowPK(key lane.FlowKey) string { return key.Environment.Name() + ":flow:" + string(key.FlowID) }

func ParseFlowPK(pk string) runlane.FlowID {
	_, id, _ := strings.Cut(pk, ":flow:")
	return runlane.FlowID(id)
}

func FlowHead(key lane.FlowKey) item.Item { return item.Key(FlowPK(key), FlowHeadSK) }

func FlowPlanSK(round int) string { return fmt.Sprintf("%s%010d", FlowPlanPrefix, round) }

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

func ReadFlow(raw item.Item) (*Flow, error) {
	f := &Flow{Raw: raw}
	return f, Unmarshal(raw, f)
}

// Record returns the flow as package lane defines it, without its plan.
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

// Write returns the write of the head. It depends on the write before.
func (f *Flow) Write(before *Flow) (item.Write, error) {
	raw, err := Marshal(f)
	if before == nil || err != nil {
		return item.Write{After: raw, Condition: item.Absent}, err
	}
	after := maps.Clone(before.Raw) // keeps attributes of newer versions
	for _, name := range flowAttributes {
		delete(after, name)
	}
	maps.Copy(after, raw)
	return item.Write{Before: before.Raw, After: after, Condition: before.Unchanged()}, nil
}

var flowAttributes = []string{"td", "ff", "st", AttrDueP, AttrDueA}

// Unchanged requires the flow's last write, which is unique even if the ID had another flow before.
func (f *Flow) Unchanged() item.Condition { return item.Equal("ci", item.Text(f.Change)) }

func (f *Flow) Wrote(now item.Item) bool { return item.TextOf(now["ci"]) == f.Change }

func (f *Flow) Proof() item.Proof {
	return item.Proof{Operation: "settle flow", Pk: f.PK, Sk: f.SK, Values: item.Item{"ci": item.Text(f.Change)}}
}

func (f *Flow) GoneProof() item.Proof {
	return item.Proof{Operation: "settle flow", Pk: f.PK, Sk: f.SK, Values: item.Item{"ci": nil}}
}

// PutPlan returns the write of the round's plan. The write of the head in the same transaction has the condition.
func (f *Flow) PutPlan(plan []byte) (item.Write, error) {
	raw, err := Marshal(&FlowPlan{PK: f.PK, SK: FlowPlanSK(f.Round), Version: f.Version, Plan: plan})
	return item.Write{After: raw}, err
}

func checkFlowOpen(e runlane.Environment, c *lane.FlowCheck) item.Write {
	return item.Write{
		Before: FlowHead(lane.FlowKey{Environment: e, FlowID: c.FlowID}),
		Condition: item.Equal("rn", item.Num(int64(c.Round))).And(
			item.Equal("cz", item.Num(0)),
			item.Equal("ca", item.Num(int64(ToMillis(c.CreatedAt)))),
		),
		Check: true,
	}
}

func (r *Run) Flow() (id runlane.FlowID, is bool) {
	return runlane.FlowID(r.SourceRun), r.SourceType == string(runlane.SourceFlow)
}

func (r *Run) InFlow(flows map[runlane.FlowID]*Flow) bool {
	id, is := r.Flow()
	f := flows[id]
	return is && f != nil && f.Finished == 0 && f.Created == r.SourceFire
}
