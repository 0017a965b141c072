// Package origin compares the sources of runs.
package origin

import (
	"fmt"

	"github.com/runlane/runlane-go"
)

// Same reports whether two sources are the same. Equal IDs are not enough: a user may have triggered an unrelated run
// with a computed ID, and it would notify nobody.
func Same(a, b runlane.Source) bool {
	same := a.CreatedAt.Equal(b.CreatedAt) && a.FireTime.Equal(b.FireTime)
	a.CreatedAt, a.FireTime = b.CreatedAt, b.FireTime
	a.OriginID = b.OriginID // follows from the others
	return same && a == b
}

// Stranger returns the error for a run of another origin with a computed ID. The ID names that run as long as it is
// kept, so the error is permanent.
func Stranger(run *runlane.Run, wanted runlane.Source) error {
	of := fmt.Sprintf("a run of type %q", wanted.Type)
	switch {
	case wanted.Call != "":
		of = fmt.Sprintf("a run of call %q", wanted.Call)
	case wanted.Node != "":
		of = fmt.Sprintf("node %q of flow %q", wanted.Node, wanted.FlowID)
	}
	return runlane.Permanent(&runlane.Error{
		Code:    runlane.ErrValidationFailed,
		Message: "a run of another origin has the id of " + of,
		RunID:   run.ID,
		Hint:    "find out who made it: leave TriggerOptions.RunID empty, or use ids of your own form",
	})
}
