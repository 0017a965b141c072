package rows

import (
	"fmt"
	"maps"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

// CallPrefix starts the sort keys of calls. It sorts before 'log:': reading a run does not read calls, and pruning
// removes them.
const CallPrefix = "call:"

// callFormat is the format of runs that call or were called. A program that knows no calls would commit the end without
// the notification.
const callFormat = 2

// Call is stored under the calling run, with its creation in the key.
type Call struct {
	PK     string `dynamodbav:"pk"`
	SK     string `dynamodbav:"sk"`
	At     Millis `dynamodbav:"at"`
	Name   string `dynamodbav:"nm"`
	Task   string `dynamodbav:"tk"`
	Count  int    `dynamodbav:"nn"`
	Ended  int    `dynamodbav:"en"`
	Sum    string `dynamodbav:"hs,omitempty"`
	Commit string `dynamodbav:"ci"` // of the put

	Raw item.Item `dynamodbav:"-"`
}

func CallSpan(createdAt Millis) string { return fmt.Sprintf("%s%013d:", CallPrefix, createdAt) }

func CallKey(run lane.RunKey, createdAt Millis, name string) item.Item {
	return item.Key(RunPK(run), CallSpan(createdAt)+name)
}

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

func ReadCall(raw item.Item) (*Call, error) {
	c := &Call{Raw: raw}
	return c, Unmarshal(raw, c)
}

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

func (c *Call) Put() (item.Write, error) {
	raw, err := Marshal(c)
	return item.Write{After: raw, Condition: item.Absent}, err
}

func (c *Call) Proof() item.Proof {
	return item.Proof{Operation: "settle call", Pk: c.PK, Sk: c.SK, Values: item.Item{"ci": item.Text(c.Commit)}}
}

// Counted returns the write that counts one more ended run. It depends on the count as read.
func (c *Call) Counted() item.Write {
	after := maps.Clone(c.Raw)
	after["en"] = item.Num(int64(c.Ended) + 1)
	return item.Write{Before: c.Raw, After: after, Condition: item.Equal("en", item.Num(int64(c.Ended)))}
}

// Calling returns the write that marks the run as a caller, under its lease. The sequence stays.
func (r *Run) Calling(c *lane.CallCommand) item.Write {
	// Lease tokens are unique, so this is the right run.
	return item.Write{Before: r.Raw, After: r.Called().Raw, Condition: item.Equal("lt", item.Text(c.LeaseToken))}
}

// Called returns the run marked as a caller.
func (r *Run) Called() *Run {
	called := *r
	called.Calls, called.Raw = 1, maps.Clone(r.Raw)
	called.Raw["cl"], called.Raw[AttrFormat] = item.Num(1), item.Num(callFormat)
	return &called
}

// checkMissing checks that the call still waits for ends.
func checkMissing(run lane.RunKey, createdAt Millis, name string) item.Write {
	return item.Write{
		Before:    CallKey(run, createdAt, name),
		Condition: item.Condition{Text: "#en < #nn"},
		Check:     true,
	}
}

// NotificationPending reports a finished run that still has to notify another run.
func (r *Run) NotificationPending() bool { return r.State().Terminal() && r.Marker().Kind == Ended }

// MustNotify reports a run that has to notify another run when it ends.
func (r *Run) MustNotify() bool {
	run := runlane.Run{Status: r.State(), Source: runlane.Source{Type: runlane.SourceType(r.SourceType)}}
	return lane.MustNotify(&run, r.Calls > 0)
}

// From is the run that called this one or that this one repeats.
func (r *Run) From() (id runlane.RunID, ok bool) {
	source := r.source()
	return source.RunID, source.Type == runlane.SourceCall || lane.Repeats(&source)
}

// Needed reports a run that pruning must keep: its active caller may still read it, or it repeats a run that stays, and
// the next repetition would have the same ID and execute it again. goes has the runs that are pruned too.
func (r *Run) Needed(from map[runlane.RunID]*Run, goes map[runlane.RunID]bool) bool {
	id, ok := r.From()
	source := from[id]
	if !ok || source == nil || source.CreatedAt != r.SourceFire {
		return false
	}
	return source.State().Active() || r.SourceType != string(runlane.SourceCall) && !goes[id]
}

// Notified returns the write that removes the marker of a finished run after the notification.
func (r *Run) Notified() item.Write {
	after := maps.Clone(r.Raw)
	delete(after, AttrDueP)
	delete(after, AttrDueA)
	// A finished run changes no more but for its mark, and may make room for another one of its id.
	condition := item.Equal("ca", item.Num(int64(r.CreatedAt))).And(item.Equal(AttrDueA, item.Text(r.DueA)))
	return item.Write{Before: r.Raw, After: after, Condition: condition}
}

// NotifiedProof shows that the notification was recorded, by any process.
func (r *Run) NotifiedProof() item.Proof {
	return item.Proof{
		Operation: "settle notification",
		Pk:        r.PK,
		Sk:        RunSK,
		Values:    item.Item{"ca": item.Num(int64(r.CreatedAt)), AttrDueP: nil},
		Shared:    true,
	}
}

// NotBegun checks that the caller has begun no wait since it was read: this end completes the call, and would have to
// end that wait.
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

// NotifiedEnd is a notification: its writes join the commit of the caller that it resumes.
type NotifiedEnd struct {
	Ended *Run
	Call  *Call
}
