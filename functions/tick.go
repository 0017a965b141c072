package functions

import (
	"context"
	"time"

	"github.com/runlane/runlane-go/core"
)

const (
	// tickTime limits an invocation without a deadline.
	tickTime = time.Minute
	// minTickReserve and tickReserveShare are the time kept free before the deadline.
	minTickReserve   = time.Second
	tickReserveShare = 20 // one part in
)

// Tick does maintenance until nothing is due or the invocation's deadline is near, see core.TickOptions.Repeat. A round
// without progress, as in an outage, is the last. The error joins the errors of all rounds.
func Tick(rt *core.Runtime) func(context.Context) error {
	return func(ctx context.Context) error {
		began := time.Now()
		end, ok := ctx.Deadline()
		if !ok {
			end = began.Add(tickTime)
		}
		end = end.Add(-max(minTickReserve, end.Sub(began)/tickReserveShare))
		ctx, done := rt.Trace(ctx, core.Work{Kind: core.WorkInvocation, Name: RoleTick})
		_, err := rt.Tick(ctx, &core.TickOptions{Deadline: end, Repeat: true})
		done(core.WorkEnd{Err: err})
		return err
	}
}
