package taskbook

import (
	"context"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

// Bounds of the search for a run by the beginning of its id: at most PrefixRuns active runs, and as many of the newest
// finished ones, for a beginning of MinPrefix bytes or more.
const (
	PrefixRuns = 1000
	MinPrefix  = 6
)

// RunsByPrefix lists ids that begin with a text, among the runs that lists show, and says whether all were searched. A
// text that is too short for the search matches nothing.
func RunsByPrefix(
	ctx context.Context, rt *core.Runtime, prefix string,
) (matches []runlane.RunID, all bool, err error) {
	if len(prefix) < MinPrefix {
		return nil, true, nil
	}
	all = true
	for _, word := range []string{"active", "finished"} {
		statuses, _ := shown.Statuses(word) // both are words
		options := &core.ListOptions{RunFilter: core.RunFilter{Statuses: statuses}, Limit: runlane.MaxPageLimit}
		for range PrefixRuns / runlane.MaxPageLimit {
			page, err := rt.Runs().List(ctx, options)
			if err != nil {
				return nil, false, err
			}
			for i := range page.Items {
				if strings.HasPrefix(string(page.Items[i].ID), prefix) {
					matches = append(matches, page.Items[i].ID)
				}
			}
			if options.After = page.Next; options.After == "" {
				break
			}
		}
		all = all && options.After == ""
	}
	return matches, all, nil
}
