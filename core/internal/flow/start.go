package flow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/fail"
	"github.com/runlane/runlane-go/internal/blind"
	"github.com/runlane/runlane-go/lane"
)

// flowPatience is how long the runs of a flow may take to be made. After it, a tick takes the maker for dead and closes
// the flow.
const flowPatience = time.Hour

// Flow is a flow as it was read.
type Flow struct {
	all    *Flows
	record *lane.FlowRecord
	*graph
}

// Start makes the runs of a flow durable, those that are missing. safe is for errors that code of the application
// returned.
func (all *Flows) Start(
	ctx context.Context, f *runlane.Flow, options *runlane.FlowOptions, safe func(error) error,
) (*runlane.FlowState, error) {
	s, err := all.plan(f, options, safe)
	if err != nil {
		return nil, err
	}
	started, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	if !started.record.TendAt.IsZero() && started.record.Closed == 0 {
		again := started != &s.Flow
		err = started.make(ctx, again, func(ctx context.Context, i int) error { return s.makeNode(ctx, started, i) })
		if err != nil {
			return nil, err
		}
	}
	return started.State(ctx)
}

// flowStart is a flow on its way to be made.
type flowStart struct {
	Flow
	calls   []runlane.Call // encoded
	options []runlane.TriggerOptions
}

// begin puts the record of the flow, or finds the one that is there. Payloads are compared where both tell of them: a
// codec may have been given, or taken away, since. Who may not learn payloads gets the flow as it is.
func (s *flowStart) begin(ctx context.Context) (*Flow, error) {
	record, err := s.all.Host.Storage().PutFlow(ctx, &lane.FlowCommand{Environment: s.all.Environment, Flow: *s.record})
	if err == nil {
		s.record, s.version = record, record.Version
		s.all.graphs.keep(record, s.graph)
		return &s.Flow, nil
	}
	if !fail.IsConflict(err, runlane.ConflictFlow) {
		return nil, err
	}
	known, err := s.all.Read(ctx, s.record.ID)
	if err != nil {
		return nil, err
	}
	alike := s.plan.Sum == "" || known.plan.Sum == "" || s.plan.Sum == known.plan.Sum
	if !s.plan.same(&known.plan) || !alike && !blind.Is(ctx) {
		return nil, Invalid(s.record.ID, "a flow's id names one graph, with its payloads: use another id",
			"is there, with other nodes or payloads")
	}
	if known.record.Round > 0 || !alike { // a retry makes its runs, or who has its payloads
		known.record.TendAt = time.Time{}
	}
	return known, nil
}

// Read reads a flow. Its graph is read where this runtime does not have it: the record may be without its plan.
func (all *Flows) Read(ctx context.Context, id runlane.FlowID) (*Flow, error) {
	kept := all.graphs.find(id)
	if kept.graph != nil {
		record, err := all.readRecord(ctx, id, true)
		if err != nil {
			return nil, err
		}
		if kept.of(record) {
			all.graphs.keep(record, kept.graph)
			return &Flow{all: all, record: record, graph: kept.graph}, nil
		}
	}
	record, err := all.readRecord(ctx, id, false)
	if err != nil {
		return nil, err
	}
	f := &Flow{all: all, record: record}
	if f.graph, err = readGraph(record); err != nil {
		return nil, err
	}
	f.version = record.Version
	all.graphs.keep(record, f.graph)
	return f, nil
}

func (all *Flows) readRecord(ctx context.Context, id runlane.FlowID, withoutPlan bool) (*lane.FlowRecord, error) {
	key := lane.FlowKey{Environment: all.Environment, FlowID: id}
	return all.Host.Storage().GetFlow(ctx, &lane.FlowRead{FlowKey: key, WithoutPlan: withoutPlan})
}

// source is where a node's run of a round comes from.
func (f *Flow) source(i, round int) runlane.Source {
	return runlane.Source{
		Type:      runlane.SourceFlow,
		FlowID:    f.record.ID,
		Node:      f.plan.Nodes[i].Name,
		Round:     round,
		CreatedAt: f.record.CreatedAt,
	}
}

// make makes the runs of this round that are missing, those that wait before those that they wait for, and records that
// all are there. One that is found closed is left to who closed it. Where some were made before, again says so: they
// are read first, or a long chain would cost the same again each time and never be whole.
func (f *Flow) make(ctx context.Context, again bool, one func(ctx context.Context, i int) error) error {
	var there map[int]*runlane.Run
	if again {
		var places []int
		for i := range f.plan.Nodes {
			if f.plan.Nodes[i].Round == f.record.Round {
				places = append(places, i)
			}
		}
		var err error
		if there, err = f.read(ctx, places); err != nil {
			return err
		}
	}
	for _, level := range f.levels() {
		err := inParallel(len(level), func(n int) error {
			i := level[n]
			if ctx.Err() != nil {
				return fail.Cancelled(ctx, "")
			}
			if f.plan.Nodes[i].Round != f.record.Round || there[i] != nil {
				return nil
			}
			return one(ctx, i)
		})
		if fail.IsConflict(err, runlane.ConflictFlow) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return f.complete(ctx)
}

// makeNode makes one run of a new flow.
func (s *flowStart) makeNode(ctx context.Context, f *Flow, i int) error {
	options := s.options[i]
	options.RunID = f.runID(i)
	return s.all.Host.Make(ctx, s.calls[i], &options, f.node(i))
}

// node is what a node's run of this round has of the flow.
func (f *Flow) node(i int) *Node {
	return &Node{
		RunID:  f.runID(i),
		Check:  lane.FlowCheck{FlowID: f.record.ID, CreatedAt: f.record.CreatedAt, Round: f.record.Round},
		Source: f.source(i, f.plan.Nodes[i].Round),
		Waits:  f.waitsFor(i),
	}
}

// waitsFor is how many ends a node of this round waits for: those of runs that this round makes.
func (f *Flow) waitsFor(i int) (need int) {
	for _, after := range f.plan.Nodes[i].After {
		if f.plan.Nodes[after].Round == f.record.Round {
			need++
		}
	}
	return need
}

// complete records that every run of the round is there.
func (f *Flow) complete(ctx context.Context) error {
	_, err := f.change(ctx, func(record *lane.FlowRecord) bool {
		made := record.Closed == 0 && !record.TendAt.IsZero()
		record.TendAt = time.Time{}
		return made
	})
	return err
}

// change writes the record as by changes it, while the flow is in the same round and has not finished, on the record as
// it was read last. by reports whether there is anything to write. changed is false where there was not.
func (f *Flow) change(ctx context.Context, by func(record *lane.FlowRecord) bool) (changed bool, err error) {
	for range changeRounds {
		next := *f.record
		if next.Finished() || !by(&next) {
			return false, nil
		}
		next.Plan = nil
		command := &lane.FlowCommand{Environment: f.all.Environment, Flow: next}
		put, err := f.all.Host.Storage().PutFlow(ctx, command)
		if err == nil {
			put.Plan = f.record.Plan
			f.record = put
			return true, nil
		}
		if !fail.IsConflict(err, runlane.ConflictFlow) {
			return false, err
		}
		now, err := f.all.Read(ctx, f.record.ID)
		switch {
		case errors.Is(err, runlane.ErrFlowNotFound):
			return false, nil
		case err != nil:
			return false, err
		case now.record.Round != f.record.Round || !now.record.CreatedAt.Equal(f.record.CreatedAt):
			return false, nil
		}
		*f = *now
	}
	return false, runlane.NewConflict(runlane.ConflictFlow, fmt.Sprintf("flow %q changed during each try", f.record.ID))
}
