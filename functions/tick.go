package functions

import (
	"context"
	"time"

	"github.com/runlane/runlane-go/core"
)

const (
	// tickTime is how long an invocation without a deadline works.
	tickTime = time.Minute
	// minTickReserve and tickReserveShare are the time kept free before the deadline.
	minTickReserve   = time.Second
	tickReserveShare = 20 // one part in
)

// Tick maintains until nothing is waiting or the invocation's deadline nears, see core.TickOptions.Repeat. A failure
// ends nothing as long as other work makes progress. A round without any progress, as in an outage, is the last: the
// next invocation comes within a minute. The error joins those of all rounds.
func Tick(rt *core.Runtime) func(context.Context) error {
	return func(ctx context.Context) error {
		began := time.Now()
		end, ok := ctx.Deadline()
		if !ok {
			end = began.Add(tickTime)
		}
		end = end.Add(-max(minTickReserve, end.Sub(began)/tickReserveShare))
		_, err := rt.Tick(ctx, &core.TickOptions{Deadline: end, Repeat: true})
		return err
	}
}
