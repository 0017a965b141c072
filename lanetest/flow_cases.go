package lanetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Flows.
func flowCases() []storageCase {
	flows := needsBoth(needsKept, needsLeases)
	return []storageCase{
		{"ARecordIsKeptWithEveryField", flows, flowsKept},
		{"ARecordDependsOnTheVersionThatWasRead", flows, flowsVersioned},
		{"APlanThatIsLeftOutStays", flows, flowsPlanned},
		{"OfManyWritersAtOnceOneWrites", flows, flowsRace},
		{"ARunIsMadeForAnOpenFlowInItsRound", flows, flowsOpen},
		{"ANodeKeepsItsSource", needsBoth(flows, needsHistory), flowsSource},
		{"AnEndOfANodeIsPendingUntilItIsCounted", flows, flowsTold},
		{"ListsHaveEachOnce", flows, flowsListed},
		{"OnesToBeTendedAreListedByTheirMoment", flows, flowsTended},
		{"MalformedOnesAreRefused", flows, flowsMalformed},
		{"NodesOfAFlowThatHasNotFinishedAreNotPruned", needsBoth(flows, needsPruning), flowsPruned},
	}
}

// newFlow is a flow that was not put yet.
func newFlow(id runlane.FlowID) lane.FlowRecord {
	return lane.FlowRecord{ID: id, CreatedAt: noon, TendAt: noon.Add(time.Hour), Plan: []byte(`{"nodes":[]}`)}
}

func withVersion(f lane.FlowRecord, version int64) lane.FlowRecord {
	f.Version = version
	return f
}

func (b *bundle) putFlow(f *lane.FlowRecord) *lane.FlowRecord {
	b.t.Helper()
	return must(b.storage.PutFlow(b.ctx(), &lane.FlowCommand{Environment: b.env, Flow: *f}))(b.t)
}

func (b *bundle) getFlow(id runlane.FlowID) *lane.FlowRecord {
	b.t.Helper()
	return must(b.storage.GetFlow(b.ctx(), &lane.FlowRead{FlowKey: lane.FlowKey{Environment: b.env, FlowID: id}}))(b.t)
}

func (b *bundle) wantFlowChanged(c *lane.FlowCommand) {
	b.t.Helper()
	c.Environment = b.env
	_, err := b.storage.PutFlow(b.ctx(), c)
	wantConflict(b.t, err, runlane.ConflictFlow, "")
}

func flowsKept(t *testing.T, b *bundle) {
	id := runlane.FlowID("release Ω/1")
	_, err := b.storage.GetFlow(b.ctx(), &lane.FlowRead{FlowKey: lane.FlowKey{Environment: b.env, FlowID: id}})
	wantError(t, err, runlane.ErrFlowNotFound)
	f := newFlow(id)
	f.CreatedAt = noon.Add(123456 * time.Nanosecond) // not a whole millisecond
	put := b.putFlow(&f)
	want := f.AtRest()
	want.Version = 1
	equal(t, "what was written", want, put)
	equal(t, "what is read", want, b.getFlow(id))
	next := *put
	next.Round, next.Closed, next.TendAt = 3, 2, time.Time{}
	next.FinishedAt, next.Status, next.Plan = noon.Add(time.Hour), runlane.FlowFailed, []byte("another")
	put = b.putFlow(&next)
	next.Version++
	equal(t, "what was written again", &next, put)
	equal(t, "what is read again", &next, b.getFlow(id))
	put.Plan[0]++
	want = next.AtRest()
	want.Plan = []byte("another")
	equal(t, "after a change of the copy", want, b.getFlow(id))
	want.Plan = nil
	key := lane.FlowKey{Environment: b.env, FlowID: id}
	read := must(b.storage.GetFlow(b.ctx(), &lane.FlowRead{FlowKey: key, WithoutPlan: true}))(t)
	equal(t, "without its plan", want, read)
	key.FlowID = "absent"
	_, err = b.storage.GetFlow(b.ctx(), &lane.FlowRead{FlowKey: key, WithoutPlan: true})
	wantError(t, err, runlane.ErrFlowNotFound)
}

func flowsVersioned(t *testing.T, b *bundle) {
	f := newFlow("versioned")
	b.wantFlowChanged(&lane.FlowCommand{Flow: withVersion(f, 1)})
	b.wantFlowChanged(&lane.FlowCommand{Flow: withVersion(f, 1), Remove: true})
	b.putFlow(&f)
	b.wantFlowChanged(&lane.FlowCommand{Flow: f})
	b.wantFlowChanged(&lane.FlowCommand{Flow: withVersion(f, 2)})
	other := withVersion(f, 1)
	other.CreatedAt = noon.Add(time.Second)
	b.wantFlowChanged(&lane.FlowCommand{Flow: other})
	b.wantFlowChanged(&lane.FlowCommand{Flow: other, Remove: true})
	next := withVersion(f, 1)
	next.Closed = 1
	b.putFlow(&next)
	b.wantFlowChanged(&lane.FlowCommand{Flow: next})
	b.wantFlowChanged(&lane.FlowCommand{Flow: next, Remove: true})
	equal(t, "its closing", 1, b.getFlow(f.ID).Closed)
	must(b.storage.PutFlow(b.ctx(), &lane.FlowCommand{Environment: b.env, Flow: withVersion(f, 2), Remove: true}))(t)
	_, err := b.storage.GetFlow(b.ctx(), &lane.FlowRead{FlowKey: lane.FlowKey{Environment: b.env, FlowID: f.ID}})
	wantError(t, err, runlane.ErrFlowNotFound)
	equal(t, "the version of one that is made anew", int64(1), b.putFlow(&f).Version)
}

func flowsPlanned(t *testing.T, b *bundle) {
	f := newFlow("planned")
	f.Plan = slices.Repeat([]byte("0123456789abcdef"), 20_000)
	b.putFlow(&f)
	next := withVersion(f, 1)
	next.Plan, next.Closed = nil, 1
	put := b.putFlow(&next)
	if len(put.Plan) != 0 {
		t.Errorf("a plan of %d bytes is returned that was not given", len(put.Plan))
	}
	equalBytes(t, "its plan", f.Plan, b.getFlow(f.ID).Plan)
}

func flowsRace(t *testing.T, b *bundle) {
	f := newFlow("race")
	b.putFlow(&f)
	errs := make([]error, 8)
	var group sync.WaitGroup
	for n := range errs {
		group.Go(func() {
			next := withVersion(f, 1)
			next.Plan, next.Round = nil, n
			_, errs[n] = b.storage.PutFlow(b.ctx(), &lane.FlowCommand{Environment: b.env, Flow: next})
		})
	}
	group.Wait()
	wrote := 0
	for _, err := range errs {
		if err == nil {
			wrote++
			continue
		}
		wantConflict(t, err, runlane.ConflictFlow, "")
	}
	equal(t, "writers that wrote", 1, wrote)
}

// making is the creation of a node.
func (b *bundle) making(f *lane.FlowRecord, node string) *lane.AppendCommand {
	b.t.Helper()
	c := b.Creation(b.t, noon, RunOptions{Source: nodeOf(f, node)})
	c.Flow = &lane.FlowCheck{FlowID: f.ID, CreatedAt: f.CreatedAt, Round: f.Round}
	return c
}

// nodeOf is the source of a node.
func nodeOf(f *lane.FlowRecord, node string) runlane.Source {
	return runlane.Source{
		Type:      runlane.SourceFlow,
		FlowID:    f.ID,
		Node:      node,
		Round:     f.Round,
		CreatedAt: f.CreatedAt,
	}
}

func flowsOpen(t *testing.T, b *bundle) {
	f := newFlow("open")
	refused := func(c *lane.AppendCommand) {
		t.Helper()
		_, err := b.storage.AppendRunEvents(b.ctx(), c)
		wantConflict(t, err, runlane.ConflictFlow, c.Projected.ID)
		_, err = b.storage.GetRun(b.ctx(), c.Key())
		wantError(t, err, runlane.ErrRunNotFound)
	}
	refused(b.making(&f, "a")) // there is no flow
	f = *b.putFlow(&f)
	made := b.making(&f, "a")
	b.append(made)
	late := b.making(&f, "b")
	another := f // of the same id, which it had before it was pruned
	another.CreatedAt = f.CreatedAt.Add(-time.Hour)
	refused(b.making(&another, "b"))
	next := f
	next.Round = 1
	next = *b.putFlow(&next)
	refused(late)
	closed := b.making(&next, "b")
	next.Closed = 1
	b.putFlow(&next)
	refused(closed)
	_, err := b.storage.AppendRunEvents(b.ctx(), made) // which is there
	wantConflict(t, err, runlane.ConflictEventSequence, "")
}

func flowsSource(t *testing.T, b *bundle) {
	f := newFlow("source")
	f.Round = 7
	f = *b.putFlow(&f)
	run := b.append(b.making(&f, "test/linux Ω")).Run
	equal(t, "the run that is read", run, b.get(run.ID))
	equal(t, "its source", nodeOf(&f, "test/linux Ω"), run.Source)
	run = b.claim(run, noon, noon.Add(time.Minute))
	run = b.push(run, noon, Succeeded(run, nil))
	equal(t, "its source when it has ended", run.Source, b.get(run.ID).Source)
	b.eventually(func() string {
		q := lane.RunQuery{PageQuery: lane.PageQuery{Environment: b.env}}
		var got []runlane.Source
		for _, summary := range collect(t, &q.PageQuery, func() (*runlane.Page[runlane.RunSummary], error) {
			return b.storage.ListRuns(b.ctx(), &q)
		}) {
			got = append(got, summary.Source)
		}
		return difference([]runlane.Source{run.Source}, got)
	})
}

func flowsTold(t *testing.T, b *bundle) {
	f := newFlow("told")
	f = *b.putFlow(&f)
	run := b.append(b.making(&f, "a")).Run
	run = b.claim(run, noon, noon.Add(time.Minute))
	if !b.append(b.Append(t, run, noon, Succeeded(run, nil))).NotificationPending {
		t.Error("its end has nothing to tell")
	}
	b.wantPending("a node that has ended", b.get(run.ID))
	b.notify(&lane.NotifyCommand{RunKey: b.key(run.ID), CreatedAt: run.CreatedAt})
	b.wantPending("after it was told")
}

func (b *bundle) wantFlows(what string, q lane.FlowQuery, want ...string) {
	b.t.Helper()
	q.Environment, q.Limit = b.env, 2
	b.eventually(func() string {
		var got []string
		for _, f := range collect(b.t, &q.PageQuery, func() (*runlane.Page[lane.FlowRecord], error) {
			return b.storage.ListFlows(b.ctx(), &q)
		}) {
			if len(f.Plan) > 0 {
				b.t.Errorf("the list shows the plan of %s", f.ID)
			}
			got = append(got, string(f.ID))
		}
		if diff := difference(want, got); diff != "" {
			return what + ": " + diff
		}
		return ""
	})
}

func flowsListed(_ *testing.T, b *bundle) {
	for i := range 10 {
		f := newFlow(runlane.FlowID(fmt.Sprint("f", (i*7)%10)))
		b.putFlow(&f)
		if i%2 == 1 {
			f = withVersion(f, 1)
			f.TendAt, f.Status = time.Time{}, runlane.FlowCompleted
			f.FinishedAt = noon.Add(time.Duration(i) * time.Minute)
			b.putFlow(&f)
		}
	}
	finished := lane.FlowQuery{Finished: true}
	b.wantFlows("open ones", lane.FlowQuery{}, "f0", "f2", "f4", "f6", "f8")
	b.wantFlows("finished ones", finished, "f3", "f9", "f5", "f1", "f7")
	finished.Before = noon.Add(5 * time.Minute)
	b.wantFlows("those that finished before", finished, "f1", "f7")
}

func flowsTended(_ *testing.T, b *bundle) {
	for i := range 4 {
		f := newFlow(runlane.FlowID(fmt.Sprint("f", i)))
		if f.TendAt = noon.Add(time.Duration(i) * time.Minute); i == 0 {
			f.TendAt = time.Time{}
		}
		b.putFlow(&f)
	}
	tended := func(until time.Duration) lane.FlowQuery { return lane.FlowQuery{Before: noon.Add(until)} }
	b.wantFlows("before a moment", tended(2*time.Minute), "f1")
	b.wantFlows("after it", tended(2*time.Minute+time.Millisecond), "f1", "f2")
	b.wantFlows("long after", tended(time.Hour), "f1", "f2", "f3")
	f := withVersion(newFlow("f1"), 1)
	f.TendAt = time.Time{}
	b.putFlow(&f)
	b.wantFlows("one that was tended", tended(time.Hour), "f2", "f3")
	soon := withVersion(newFlow("f3"), 1)
	soon.TendAt = noon.Add(time.Second)
	b.putFlow(&soon)
	b.wantFlows("the soonest first", tended(time.Hour), "f3", "f2")
}

func flowsMalformed(t *testing.T, b *bundle) {
	for what, spoil := range map[string]func(c *lane.FlowCommand){
		"no id":                     func(c *lane.FlowCommand) { c.Flow.ID = "" },
		"a bad id":                  func(c *lane.FlowCommand) { c.Flow.ID = "a:b" },
		"a bad environment":         func(c *lane.FlowCommand) { c.Environment = "a:b" },
		"no time":                   func(c *lane.FlowCommand) { c.Flow.CreatedAt = time.Time{} },
		"no plan":                   func(c *lane.FlowCommand) { c.Flow.Plan = nil },
		"a plan that is too long":   func(c *lane.FlowCommand) { c.Flow.Plan = make([]byte, lane.MaxFlowPlanBytes+1) },
		"a version below 0":         func(c *lane.FlowCommand) { c.Flow.Version = -1 },
		"a round below 0":           func(c *lane.FlowCommand) { c.Flow.Round = -1 },
		"a closing below 0":         func(c *lane.FlowCommand) { c.Flow.Closed = -1 },
		"an end without a status":   func(c *lane.FlowCommand) { c.Flow.FinishedAt = noon },
		"a status without an end":   func(c *lane.FlowCommand) { c.Flow.Status = runlane.FlowFailed },
		"a removal without version": func(c *lane.FlowCommand) { c.Remove = true },
		"a removal without an id":   func(c *lane.FlowCommand) { c.Remove, c.Flow.Version, c.Flow.ID = true, 1, "" },
	} {
		c := &lane.FlowCommand{Environment: b.env, Flow: newFlow("malformed")}
		spoil(c)
		if _, err := b.storage.PutFlow(b.ctx(), c); runlane.CodeOf(err) != runlane.ErrContractViolation {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := b.storage.GetFlow(b.ctx(), &lane.FlowRead{FlowKey: lane.FlowKey{Environment: b.env, FlowID: "a:b"}})
	wantError(t, err, runlane.ErrValidationFailed)
	b.wantFlows("nothing", lane.FlowQuery{})
}

func flowsPruned(t *testing.T, b *bundle) {
	f := newFlow("pruned")
	f = *b.putFlow(&f)
	run := b.append(b.making(&f, "a")).Run
	run = b.claim(run, noon, noon.Add(time.Minute))
	run = b.push(run, noon, Succeeded(run, nil))
	b.notify(&lane.NotifyCommand{RunKey: b.key(run.ID), CreatedAt: run.CreatedAt})
	prune := func() {
		t.Helper()
		must(b.storage.PruneRuns(b.ctx(), &lane.PruneCommand{
			PageQuery: lane.PageQuery{Environment: b.env}, OlderThan: noon.Add(time.Hour),
		}))(t)
	}
	prune()
	b.get(run.ID)
	f.TendAt, f.FinishedAt, f.Status = time.Time{}, noon, runlane.FlowCompleted
	b.putFlow(&f)
	b.eventually(func() string {
		prune()
		if _, err := b.storage.GetRun(b.ctx(), b.key(run.ID)); runlane.CodeOf(err) != runlane.ErrRunNotFound {
			return "the run is there"
		}
		return ""
	})
	b.made = nil // it is gone
}
