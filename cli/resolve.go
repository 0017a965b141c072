package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/apart"
	"github.com/runlane/runlane-go/internal/taskbook"
	"github.com/runlane/runlane-go/lane"
)

// findRun returns the run with an ID or a prefix of one, among the runs that lists show. With exact, for changes, the
// prefix must be unique among all runs, otherwise among the searched ones.
func (s *session) findRun(ctx context.Context, given string, exact bool) (*runlane.Run, error) {
	rt, err := s.rt(ctx)
	if err != nil {
		return nil, err
	}
	ctx = apart.Leave(ctx)
	run, err := rt.Runs().Get(ctx, runlane.RunID(given))
	if !errors.Is(err, runlane.ErrRunNotFound) {
		return run, err
	}
	if hint := otherEnvironments(ctx, rt); hint != "" {
		return nil, &withNext{cause: err, next: hint}
	}
	matches, all, listErr := taskbook.RunsByPrefix(ctx, rt, given)
	switch {
	case errors.Is(listErr, runlane.ErrCapabilityUnsupported): // a lane without lists takes whole IDs only
		return nil, err
	case listErr != nil:
		return nil, listErr
	case len(matches) > 1:
		return nil, ambiguous(given, matches)
	case len(matches) == 0 && !all:
		return nil, &withNext{
			cause: err,
			next: fmt.Sprintf(
				"give the whole id: a prefix is looked for among the first %d active and the newest %d finished runs "+
					"only",
				taskbook.PrefixRuns,
				taskbook.PrefixRuns,
			),
		}
	case len(matches) == 0:
		return nil, err
	case !all && exact:
		return nil, usagef(
			"give the whole id",
			"%s may be the beginning of several runs: there are too many to look at all",
			quoted(given),
		)
	}
	return rt.Runs().Get(ctx, matches[0])
}

// otherEnvironments returns a hint if the environment of the call has no runs but others do: --env may be missing or
// mistyped.
func otherEnvironments(ctx context.Context, rt *core.Runtime) string {
	lister, ok := lane.As[environmentLister](rt.Lane().Storage)
	if !ok {
		return ""
	}
	found, err := lister.Environments(ctx)
	if err != nil || len(found) == 0 || slices.Contains(found, runlane.Environment(rt.Environment().Name())) {
		return ""
	}
	names := make([]string, len(found))
	for i, environment := range found {
		names[i] = quoted(string(environment))
	}
	return fmt.Sprintf("environment %s has no runs here, %s has: use --env", quoted(rt.Environment().Name()),
		strings.Join(names, ", "))
}

func ambiguous(given string, matches []runlane.RunID) error {
	const shown = 5
	var names []string
	for _, id := range matches[:min(len(matches), shown)] {
		names = append(names, string(id))
	}
	if len(matches) > shown {
		names = append(names, "…")
	}
	return usagef(
		"give more of the id: "+strings.Join(names, ", "),
		"%s is the beginning of %d runs",
		quoted(given),
		len(matches),
	)
}
