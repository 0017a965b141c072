package core

import (
	"context"
	"errors"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core/internal/origin"
	"github.com/runlane/runlane-go/lane"
)

// repeat plans another run of a node, from the latest of its runs that was made in these rounds.
func (f *flow) repeat(ctx context.Context, by change, i int, rounds []int) (*plan, error) {
	for n := len(rounds) - 1; ; n-- {
		source := f.source(i, rounds[n])
		old, err := f.rt.get(ctx, f.runOf(i, rounds[n]))
		stranger := err == nil && !origin.Same(old.Source, source)
		switch {
		case n > 0 && (stranger || errors.Is(err, runlane.ErrRunNotFound)):
			continue
		case stranger:
			return nil, origin.Stranger(old, source)
		case errors.Is(err, runlane.ErrRunNotFound): // pruned since the flow was read
			return nil, flowInvalid(f.record.ID, "start it under another id",
				"has the node %q, whose run is gone", f.plan.Nodes[i].Name)
		case err != nil:
			return nil, err
		}
		return by.planRepeat(old, runlane.SourceRerun)
	}
}

// remake makes the run of a node once more.
func (f *flow) remake(ctx context.Context, by change, i int) error {
	p, err := f.repeat(ctx, by, i, f.plan.Nodes[i].Before)
	if err != nil {
		return err
	}
	p.id = f.runID(i)
	p.options.RunID = p.id
	p.node = &lane.FlowCheck{FlowID: f.record.ID, Round: f.record.Round}
	return f.create(ctx, p, i)
}
