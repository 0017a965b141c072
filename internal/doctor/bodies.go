package doctor

import (
	"context"
	"fmt"

	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

// Bodies returns a finding about the bodies that the lane keeps apart from its storage, and none if there are none. It
// reads their list: a thousand, or with all every one.
func Bodies(ctx context.Context, rt *core.Runtime, all bool) (findings []shown.Finding) {
	if rt.Lane().Bodies == nil {
		return nil
	}
	options := &core.OrphanOptions{Limit: 1000}
	if all {
		options.Limit = 0
	}
	found, err := rt.Runs().OrphanedBodies(ctx, options)
	switch {
	case err != nil:
		return []shown.Finding{FindingOf("bodies", "", err)}
	case found.Seen == 0:
		return nil
	case found.Orphans > 0:
		err = &Warning{
			Message: fmt.Sprintf("%d of %d bodies seen, with %d bytes, belong to no run", found.Orphans, found.Seen, found.Bytes),
			Fix:     "remove them with \"runlane runs prune --orphans\"",
		}
	}
	return []shown.Finding{FindingOf("bodies", fmt.Sprintf("%s, each of a run", count(found.Seen, "body seen", "bodies seen")), err)}
}
