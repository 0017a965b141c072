// Package origin compares where runs come from.
package origin

import (
	"fmt"

	"github.com/runlane/runlane-go"
)

// Same reports that a run comes from where a computed id says. An id alone is no proof: a run that someone
// triggered under it is another one, which tells its end to no one.
func Same(a, b runlane.Source) bool {
	same := a.CreatedAt.Equal(b.CreatedAt) && a.FireTime.Equal(b.FireTime)
	a.CreatedAt, a.FireTime = b.CreatedAt, b.FireTime
	return same && a == b
}

// Stranger refuses a run of another origin under a computed id. Ids name one run as long as it is kept, so another
// attempt would find the same.
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
