package console

import (
	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// listPages bounds how many pages of a list are read for one of the console: where few runs match among many, each has
// looked at a thousand and may be empty.
const listPages = 10

// list reads up to o.Limit runs. Next is empty only when there are no others.
func (v *visitor) list(o core.ListOptions) (*runlane.Page[runlane.RunSummary], error) {
	whole, limit := &runlane.Page[runlane.RunSummary]{}, o.Limit
	for range listPages {
		o.Limit = limit - len(whole.Items)
		found, err := v.rt.Runs().List(v.r.Context(), &o)
		if err != nil {
			return nil, err
		}
		whole.Items, whole.Next = append(whole.Items, found.Items...), found.Next
		if found.Next == "" || len(whole.Items) >= limit {
			break
		}
		o.After = found.Next
	}
	return whole, nil
}

// none says that a list is empty, or only that nothing was found so far.
func none(list *runlane.Page[runlane.RunSummary], all g.Node) g.Node {
	if list.Next == "" {
		return all
	}
	return g.Text("None among the runs that were looked at, which are not all.")
}
