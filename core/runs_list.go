package core

import (
	"context"
	"fmt"
	"iter"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// List returns a page of runs: active ones by their next need for attention, then finished ones, newest first. A page
// may be short or empty and still have a Next. Lists lag a little behind [Runs.Get]. The pages neither repeat nor miss
// a run that did not change meanwhile. Impossible options are runlane.ErrValidationFailed. A lane that does not show
// runs to operators is runlane.ErrCapabilityUnsupported.
func (r *Runs) List(ctx context.Context, options *ListOptions) (*runlane.Page[runlane.RunSummary], error) {
	if err := r.rt.gate.enterLate(); err != nil {
		return nil, err
	}
	defer r.rt.gate.leave()
	if options == nil {
		options = &ListOptions{}
	}
	if err := firstError(options.check("ListOptions"), r.rt.operatorReads()); err != nil {
		return nil, err
	}
	scope, after := fmt.Sprintf("runs %s %s", r.rt.environment, options.scope()), runlane.Cursor("")
	if options.After != "" {
		at, err := openCursor(options.After, scope, "ListOptions.After")
		if err != nil {
			return nil, err
		}
		after = runlane.Cursor(at)
	}
	page, err := r.rt.listRuns(ctx, &options.RunFilter, options.Limit, after)
	if err != nil {
		return nil, err
	}
	if page.Next != "" {
		page.Next = sealCursor(scope, string(page.Next))
	}
	return page, nil
}

func (rt *Runtime) listRuns(
	ctx context.Context, f *RunFilter, limit int, after runlane.Cursor,
) (*runlane.Page[runlane.RunSummary], error) {
	q := f.query()
	q.PageQuery = lane.PageQuery{Environment: rt.environment, Limit: limit, After: after}
	return rt.storage().ListRuns(ctx, q)
}

// All walks the pages of [Runs.List], Limit runs at a time. An error ends it.
func (r *Runs) All(ctx context.Context, options *ListOptions) iter.Seq2[runlane.RunSummary, error] {
	o := ListOptions{}
	if options != nil {
		o = *options
	}
	return func(yield func(runlane.RunSummary, error) bool) {
		at := o
		for {
			page, err := r.List(ctx, &at)
			if err != nil {
				yield(runlane.RunSummary{}, err)
				return
			}
			for i := range page.Items {
				if !yield(page.Items[i], nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			at.After = page.Next
		}
	}
}
