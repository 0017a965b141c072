package console

import (
	g "maragu.dev/gomponents"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// listPages limits the pages of a list that are read for one page of the console. If few runs match among many, each
// page has scanned a thousand and may be empty.
const listPages = 10

// list reads up to o.Limit runs. Next is empty only at the end of the list.
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

// none returns the text for an empty list, or a note that not all runs were searched.
func none(list *runlane.Page[runlane.RunSummary], all g.Node) g.Node {
	if list.Next == "" {
		return all
	}
	return g.Text("None among the runs that were looked at, which are not all.")
}
