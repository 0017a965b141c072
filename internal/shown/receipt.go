package shown

import (
	"fmt"

	"github.com/runlane/runlane-go"
)

// Answer is how the request or the command of a receipt ended, in a few words.
func Answer(r *runlane.Receipt) string {
	switch {
	case r.Fault != "":
		return r.Fault
	case r.Status != 0:
		return fmt.Sprintf("%d, %d bytes", r.Status, r.BodyBytes)
	case r.ExitCode != nil:
		return fmt.Sprintf("exit code %d", *r.ExitCode)
	case r.Signal != "":
		return r.Signal
	default:
		return "none"
	}
}
