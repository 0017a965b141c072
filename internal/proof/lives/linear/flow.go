package linear

import (
	"errors"
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
)

// Operations on a flow.
const (
	linearStart  = "start"
	linearRetry  = "retry"
	linearCancel = "cancel"
	linearMake   = "make" // a run of a node
)

// flow is the record of one. Without a version there is none.
type flow struct {
	version       int64
	round, closed int
	plan          string
}

func (f flow) text() string { return fmt.Sprintf("round %d, closed %d, %s", f.round, f.closed, f.plan) }

func (f flow) open(round int) bool { return f.version > 0 && f.round == round && f.closed == 0 }

func flowSubject() linearSubject {
	return linearSubject{
		needs:  func(c lane.StorageCapabilities) bool { return c.SuspendsRuns },
		act:    actOnFlow,
		settle: settleFlows,
		begin:  flow{},
		step:   stepFlow,
		meets: []string{
			"start done", "start refused", "retry done", "retry refused", "cancel done", "cancel refused", "make done",
			"make refused", "read done",
		},
	}
}

// actOnFlow changes a flow as it was read, which another client may have changed since.
func actOnFlow(c *linearClient) {
	key := c.key()
	f := readFlow(c, key)
	switch roll := c.choose.IntN(6); {
	case f.version == 0:
		putFlow(c, key, linearStart, f)
	case roll == 0:
		putFlow(c, key, linearRetry, f)
	case roll == 1:
		putFlow(c, key, linearCancel, f)
	case roll > 2:
		makeNode(c, key, f.round)
	}
}

func flowID(key string) runlane.FlowID { return runlane.FlowID("flow of " + key) }

// readFlow returns a flow, an absent one where no answer came.
func readFlow(c *linearClient, key string) (f flow) {
	_, heard := c.reads(linearCall{Key: key, Kind: linearRead}, func(s lane.Storage) (linearAnswer, error) {
		f = flow{}
		record, err := s.GetFlow(c.ctx(), &lane.FlowRead{FlowKey: lane.FlowKey{Environment: c.env, FlowID: flowID(key)}})
		switch {
		case runlane.CodeOf(err) == runlane.ErrFlowNotFound:
			return linearAnswer{Result: linearDone, Token: f.text()}, nil
		case err != nil:
			return linearAnswer{}, err
		}
		f = flow{record.Version, record.Round, record.Closed, string(record.Plan)}
		return linearAnswer{Result: linearDone, Sequence: f.version, Token: f.text()}, nil
	})
	if !heard {
		return flow{}
	}
	return f
}

func putFlow(c *linearClient, key, kind string, f flow) {
	call := linearCall{Key: key, Kind: kind, Expected: f.version, Token: c.NewToken()}
	next := after(f, call)
	record := lane.FlowRecord{
		ID: flowID(key), Version: f.version, CreatedAt: noon, TendAt: noon, Round: next.round, Closed: next.closed,
	}
	if kind != linearCancel { // which changes no plan
		record.Plan = []byte(next.plan)
	}
	c.writes(call, func(s lane.Storage) (linearAnswer, error) {
		_, err := s.PutFlow(c.ctx(), &lane.FlowCommand{Environment: c.env, Flow: record})
		return flowAnswer(err)
	})
}

// makeNode makes a run of a node, in a round that was read.
func makeNode(c *linearClient, key string, round int) {
	command := c.Creation(c.t, noon, lanetest.RunOptions{Source: runlane.Source{
		Type: runlane.SourceFlow, FlowID: flowID(key), Node: "node", Round: round, CreatedAt: noon,
	}})
	command.Flow = &lane.FlowCheck{FlowID: flowID(key), CreatedAt: noon, Round: round}
	call := linearCall{Key: key, Kind: linearMake, Round: round, Run: command.Projected.ID}
	c.writes(call, func(s lane.Storage) (linearAnswer, error) {
		_, err := s.AppendRunEvents(c.ctx(), command)
		return flowAnswer(err)
	})
}

func flowAnswer(err error) (linearAnswer, error) {
	if errors.Is(err, runlane.ConflictFlow) {
		return linearAnswer{Result: linearRefused}, nil
	}
	return linearAnswer{Result: linearDone}, err
}

// settleFlows wants each flow to be as its last change left it: open ones get runs, cancelled ones none until a retry.
func settleFlows(c *linearClient) {
	for i := range c.o.Keys {
		key := c.keyName(i)
		for _, kind := range []string{linearStart, linearCancel, linearRetry} {
			f := readFlow(c, key)
			if (f.version == 0) == (kind == linearStart) {
				putFlow(c, key, kind, f)
			}
			makeNode(c, key, readFlow(c, key).round)
		}
	}
}

// after is a flow that a call has changed.
func after(f flow, call linearCall) flow {
	f.version++
	switch call.Kind {
	case linearStart:
		f.plan = call.Token
	case linearRetry:
		f.plan, f.closed = call.Token, 0
		f.round++
	case linearCancel:
		f.closed = 1
	}
	return f
}

// stepFlow is the contract of flows, one operation after the other: who changes another version than there is changes
// nothing, and a run is made in the round of an open flow alone.
func stepFlow(state any, call linearCall, answer linearAnswer) (bool, any) {
	f := state.(flow)
	fits := f.version == call.Expected
	switch {
	case call.Kind == linearRead:
		return answer.Sequence == f.version && answer.Token == f.text(), f
	case call.Kind == linearMake:
		fits = f.open(call.Round)
	}
	switch {
	case answer.Result == linearRefused: // a lost race is reason enough
		return !call.Quiet || !fits, f
	case !fits:
		return answer.Result == linearUnknown, f
	case call.Kind == linearMake:
		return true, f
	}
	return true, after(f, call)
}
