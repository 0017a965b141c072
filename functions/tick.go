package functions

import (
	"context"
	"time"

	"github.com/runlane/runlane-go/core"
)

const (
	// tickTime is how long an invocation without a deadline works.
	tickTime = time.Minute
	// minTickRound is what must be left for one more round.
	minTickRound = 5 * time.Second
	// minTickReserve and tickReserveShare are what is kept free before the deadline.
	minTickReserve   = time.Second
	tickReserveShare = 20 // one part in
)

// Tick maintains until nothing is waiting or the invocation's deadline nears. It also stops after a round that got nothing done nor out
// of the way, or in which a stage failed: the next invocation comes within a minute. The error joins those of that round's stages.
func Tick(rt *core.Runtime) func(context.Context) error {
	return func(ctx context.Context) error {
		began := time.Now()
		end, ok := ctx.Deadline()
		if !ok {
			end = began.Add(tickTime)
		}
		end = end.Add(-max(minTickReserve, end.Sub(began)/tickReserveShare))
		for {
			result, err := rt.Tick(ctx, &core.TickOptions{Deadline: end})
			if err != nil || !result.More || progress(result) == 0 || time.Until(end) < minTickRound {
				return err
			}
		}
	}
}

// progress counts what a round did, and the pages that it got out of the way of the next.
func progress(r *core.TickResult) (n int) {
	for _, stage := range []core.StageResult{r.Cancelled, r.Abandoned, r.Delivered, r.Redelivered, r.Scheduled, r.Dispatched, r.Flushed} {
		n += stage.Done + stage.Passed
	}
	return n
}
