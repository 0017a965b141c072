package awstest

import (
	"context"
	"errors"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Violations are the invariants of a storage that something stored in the environment breaks.
func Violations(
	ctx context.Context, s lane.Storage, environment runlane.Environment,
) (found []lane.Violation, err error) {
	checker, ok := lane.As[lane.Checker](s)
	if !ok {
		return nil, errors.New("the storage cannot be checked")
	}
	q := &lane.PageQuery{Environment: environment, Limit: runlane.MaxPageLimit}
	for {
		page, err := checker.Check(ctx, q)
		if err != nil {
			return nil, err
		}
		found = append(found, page.Items...)
		if q.After = page.Next; q.After == "" {
			return found, nil
		}
	}
}
