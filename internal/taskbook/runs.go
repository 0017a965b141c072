package taskbook

import (
	"context"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

// Limits of the search for a run by prefix: at most PrefixRuns active runs and as many of the newest finished ones. The
// prefix must have MinPrefix bytes.
const (
	PrefixRuns = 1000
	MinPrefix  = 6
)

// RunsByPrefix returns matching IDs among the runs that lists show, and whether all runs were searched. A prefix that
// is too short matches nothing.
func RunsByPrefix(
	ctx context.Context, rt *core.Runtime, prefix string,
) (matches []runlane.RunID, all bool, err error) {
	if len(prefix) < MinPrefix {
		return nil, true, nil
	}
	all = true
	for _, word := range []string{"active", "finished"} {
		statuses, _ := shown.Statuses(word) // both words are valid
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
