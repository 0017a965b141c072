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

// flowPatience is how long making the runs of a flow may take. After it, a tick assumes that the maker is dead and
// closes the flow.
const flowPatience = time.Hour

// Flow is a flow as read.
type Flow struct {
	all    *Flows
	record *lane.FlowRecord
	*graph
}

// Start makes the missing runs of a flow. safe cleans errors of application code.
func (all *Flows) Start(
	ctx context.Context, f *runlane.Flow, options *runlane.FlowOptions, safe func(error) error,
) (*runlane.FlowState, error) {
	s, err := all.plan(f, options, safe)
	if err != nil {
		return nil, err
	}
	started, err := s.putOrRead(ctx)
	if err != nil {
		return nil, err
	}
	if !started.record.TendAt.IsZero() && started.record.Closed == 0 {
		again := started != &s.Flow
		err = started.createMissingRuns(ctx, again, func(ctx context.Context, i int) error { return s.makeNode(ctx, started, i) })
		if err != nil {
			return nil, err
		}
	}
	return started.State(ctx)
}

type flowStart struct {
	Flow
	calls   []runlane.Call // encoded
	options []runlane.TriggerOptions
}

// putOrRead writes the record of a new flow, or reads the existing one. Payloads are compared only if both sums are
// known, because a codec may have been added or removed since. A caller who may not learn payloads gets the existing
// flow either way.
func (s *flowStart) putOrRead(ctx context.Context) (*Flow, error) {
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
			"exists with other nodes or payloads")
	}
	if known.record.Round > 0 || !alike { // only a retry, or a caller with the payloads, makes its runs
		known.record.TendAt = time.Time{}
	}
	return known, nil
}

// Read reads a flow. If this runtime has the graph, the record may lack its plan.
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

// source returns the origin of a node's run of a round.
func (f *Flow) source(i, round int) runlane.Source {
	return runlane.Source{
		Type:      runlane.SourceFlow,
		FlowID:    f.record.ID,
		Node:      f.plan.Nodes[i].Name,
		Round:     round,
		CreatedAt: f.record.CreatedAt,
	}
}

// createMissingRuns makes the missing runs of this round, dependents first, and records that all exist. It stops if the
// flow is closed. With again some may exist already: they are read first, because otherwise each try on a long chain
// would start over and never finish.
func (f *Flow) createMissingRuns(ctx context.Context, again bool, one func(ctx context.Context, i int) error) error {
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

func (s *flowStart) makeNode(ctx context.Context, f *Flow, i int) error {
	options := s.options[i]
	options.RunID = f.runID(i)
	return s.all.Host.Make(ctx, s.calls[i], &options, f.node(i))
}

// node returns the part of a node's run in this round.
func (f *Flow) node(i int) *Node {
	return &Node{
		RunID:  f.runID(i),
		Check:  lane.FlowCheck{FlowID: f.record.ID, CreatedAt: f.record.CreatedAt, Round: f.record.Round},
		Source: f.source(i, f.plan.Nodes[i].Round),
		Waits:  f.waitsFor(i),
	}
}

// waitsFor counts the predecessors of a node that get runs in this round.
func (f *Flow) waitsFor(i int) (need int) {
	for _, after := range f.plan.Nodes[i].After {
		if f.plan.Nodes[after].Round == f.record.Round {
			need++
		}
	}
	return need
}

func (f *Flow) complete(ctx context.Context) error {
	_, err := f.change(ctx, func(record *lane.FlowRecord) bool {
		made := record.Closed == 0 && !record.TendAt.IsZero()
		record.TendAt = time.Time{}
		return made
	})
	return err
}

// change applies by to the record and writes it, as long as the flow is unfinished and in the same round. After a
// conflict it repeats with the current record. by returns false if no write is needed; changed is then false.
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
