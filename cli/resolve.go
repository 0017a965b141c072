package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// Bounds of looking for a prefix: so many active runs, and as many finished ones, the newest of them.
const (
	prefixRuns = 1000
	minPrefix  = 6
)

// findRun returns the run of an id, or of the beginning of one. A prefix is looked for among the runs that lists show. Before
// something is changed (exact), it has to be the only one of all runs; otherwise the only one of those looked at will do.
func (s *session) findRun(ctx context.Context, given string, exact bool) (*runlane.Run, error) {
	rt, err := s.rt(ctx)
	if err != nil {
		return nil, err
	}
	run, err := rt.Runs().Get(ctx, runlane.RunID(given))
	if !errors.Is(err, runlane.ErrRunNotFound) || len(given) < minPrefix {
		return run, err
	}
	matches, all, listErr := prefixed(ctx, rt, given)
	switch {
	case errors.Is(listErr, runlane.ErrCapabilityUnsupported): // a lane without lists takes whole ids only
		return nil, err
	case listErr != nil:
		return nil, listErr
	case len(matches) > 1:
		return nil, ambiguous(given, matches)
	case len(matches) == 0 && !all:
		return nil, &withNext{cause: err, next: fmt.Sprintf(
			"give the whole id: a prefix is looked for among the first %d active and the newest %d finished runs only", prefixRuns, prefixRuns)}
	case len(matches) == 0:
		return nil, err
	case !all && exact:
		return nil, usagef("give the whole id", "%s may be the beginning of several runs: there are too many to look at all", quoted(given))
	}
	return rt.Runs().Get(ctx, matches[0])
}

// ambiguous names runs that begin alike.
func ambiguous(given string, matches []runlane.RunID) error {
	const shown = 5
	var names []string
	for _, id := range matches[:min(len(matches), shown)] {
		names = append(names, string(id))
	}
	if len(matches) > shown {
		names = append(names, "…")
	}
	return usagef("give more of the id: "+strings.Join(names, ", "), "%s is the beginning of %d runs", quoted(given), len(matches))
}

// prefixed lists ids that begin with a text, and says whether all runs were looked at.
func prefixed(ctx context.Context, rt *core.Runtime, prefix string) (matches []runlane.RunID, all bool, err error) {
	all = true
	var active, finished statuses
	_, _ = active.Set("active"), finished.Set("finished") // both are statuses
	for _, part := range []statuses{active, finished} {
		options := &core.ListOptions{RunFilter: core.RunFilter{Statuses: part}, Limit: runlane.MaxPageLimit}
		for range prefixRuns / runlane.MaxPageLimit {
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
