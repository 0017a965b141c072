package rows

import (
	"fmt"
	"maps"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

// CallPrefix begins the sort keys of a run's calls. It sorts before 'log:', so that a run is read without them, and
// pruning removes them with the rest.
const CallPrefix = "call:"

// callFormat is the format of runs that call or were called: the terminal commit of a program that knows no calls would
// tell no one.
const callFormat = 2

// Call is a call beside the run that called. The run's creation is in its key, as in that of a record.
type Call struct {
	PK     string `dynamodbav:"pk"`
	SK     string `dynamodbav:"sk"`
	At     Millis `dynamodbav:"at"`
	Name   string `dynamodbav:"nm"`
	Task   string `dynamodbav:"tk"`
	Count  int    `dynamodbav:"nn"`
	Ended  int    `dynamodbav:"en"`
	Sum    string `dynamodbav:"hs,omitempty"`
	Commit string `dynamodbav:"ci"` // that put it

	Raw item.Item `dynamodbav:"-"` // as stored
}

// CallSpan is the prefix of all calls of one creation.
func CallSpan(createdAt Millis) string { return fmt.Sprintf("%s%013d:", CallPrefix, createdAt) }

// CallKey is the key of a call.
func CallKey(run lane.RunKey, createdAt Millis, name string) item.Item {
	return item.Key(RunPK(run), CallSpan(createdAt)+name)
}

// NewCall is the item of a call.
func NewCall(c *lane.CallCommand, commit string) *Call {
	return &Call{
		PK:     RunPK(c.RunKey),
		SK:     CallSpan(ToMillis(c.CreatedAt)) + c.Call.Name,
		At:     ToMillis(c.Call.At),
		Name:   c.Call.Name,
		Task:   string(c.Call.TaskID),
		Count:  c.Call.Count,
		Sum:    c.Call.Sum,
		Commit: commit,
	}
}

// ReadCall reads the item of a call.
func ReadCall(raw item.Item) (*Call, error) {
	c := &Call{Raw: raw}
	return c, Unmarshal(raw, c)
}

// Call is the call in the form of the contract.
func (c *Call) Call() *lane.RunCall {
	return &lane.RunCall{
		Name:   c.Name,
		TaskID: runlane.TaskID(c.Task),
		Count:  c.Count,
		Ended:  c.Ended,
		Sum:    c.Sum,
		At:     c.At.Time(),
	}
}

// Put is the call's part of a transaction.
func (c *Call) Put() (item.Write, error) {
	raw, err := Marshal(c)
	return item.Write{After: raw, Condition: item.Absent}, err
}

// Proof shows that the call was put by its transaction.
func (c *Call) Proof() item.Proof {
	return item.Proof{Operation: "settle call", Pk: c.PK, Sk: c.SK, Values: item.Item{"ci": item.Text(c.Commit)}}
}

// Counted is the part of a transaction that counts one more end, on the count that was read.
func (c *Call) Counted() item.Write {
	after := maps.Clone(c.Raw)
	after["en"] = item.Num(int64(c.Ended) + 1)
	return item.Write{Before: c.Raw, After: after, Condition: item.Equal("en", item.Num(int64(c.Ended)))}
}

// Calling is the part of a transaction that marks a run as one that calls, under its owner's token. The sequence stays.
func (r *Run) Calling(c *lane.CallCommand) item.Write {
	// No two leases have a token in common, so that it is of this run alone.
	return item.Write{Before: r.Raw, After: r.Called().Raw, Condition: item.Equal("lt", item.Text(c.LeaseToken))}
}

// Called is the run as one that calls.
func (r *Run) Called() *Run {
	called := *r
	called.Calls, called.Raw = 1, maps.Clone(r.Raw)
	called.Raw["cl"], called.Raw[AttrFormat] = item.Num(1), item.Num(callFormat)
	return &called
}

// missing is the check of a transaction that ends of the call are still to be counted.
func missing(run lane.RunKey, createdAt Millis, name string) item.Write {
	return item.Write{
		Before:    CallKey(run, createdAt, name),
		Condition: item.Condition{Text: "#en < #nn"},
		Check:     true,
	}
}

// Untold reports a finished run whose end is to be told.
func (r *Run) Untold() bool { return r.State().Terminal() && r.Marker().Kind == Ended }

// Leaves reports a run whose end leaves something to be told.
func (r *Run) Leaves() bool {
	run := runlane.Run{Status: r.State(), Source: runlane.Source{Type: runlane.SourceType(r.SourceType)}}
	return lane.Untold(&run, r.Calls > 0)
}

// From is the run that called this one, or that this one repeats.
func (r *Run) From() (id runlane.RunID, ok bool) {
	source := r.source()
	return source.RunID, source.Type == runlane.SourceCall || lane.Repeats(&source)
}

// Needed reports a run that its caller, which is active, may still read, or that repeats one which stays: otherwise the
// next repetition, which has the same id, would execute it again. goes says which runs are pruned along.
func (r *Run) Needed(from map[runlane.RunID]*Run, goes map[runlane.RunID]bool) bool {
	id, ok := r.From()
	source := from[id]
	if !ok || source == nil || source.CreatedAt != r.SourceFire {
		return false
	}
	return source.State().Active() || r.SourceType != string(runlane.SourceCall) && !goes[id]
}

// Told is the part of a transaction that takes the mark from a finished run: its end was told.
func (r *Run) Told() item.Write {
	after := maps.Clone(r.Raw)
	delete(after, AttrDueP)
	delete(after, AttrDueA)
	// A finished run changes no more but for its mark, and may make room for another one of its id.
	condition := item.Equal("ca", item.Num(int64(r.CreatedAt))).And(item.Equal(AttrDueA, item.Text(r.DueA)))
	return item.Write{Before: r.Raw, After: after, Condition: condition}
}

// ToldProof shows that the run's end was told, by whomever.
func (r *Run) ToldProof() item.Proof {
	return item.Proof{
		Operation: "settle telling",
		Pk:        r.PK,
		Sk:        RunSK,
		Values:    item.Item{"ca": item.Num(int64(r.CreatedAt)), AttrDueP: nil},
		Shared:    true,
	}
}

// NotBegun is the check of a transaction that the run, whose call is whole with it, has begun no wait since it was
// read: the wait that was read does not end with it.
func (r *Run) NotBegun(to *lane.CallRead) item.Write {
	return item.Write{
		Before: item.KeyOf(r.Raw),
		Condition: item.Condition{
			Text:   "attribute_not_exists(#ws) OR #ws <> #sq OR #ws = :seen",
			Values: item.Item{":seen": item.Num(to.Wait)},
		},
		Check: true,
	}
}

// ToldEnd is what the end of a run changes beside the commit of the run that it resumes.
type ToldEnd struct {
	Ended *Run
	Call  *Call
}
