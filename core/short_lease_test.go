package core_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go/core"
)

// A client that claims for five seconds and dies leaves its run to the next tick, and a cancellation is ended by it.
func TestTick_FindsTheEndOfAShortLease(t *testing.T) {
	t.Parallel()
	for _, cancelled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			rt := clients(t, core.Options{}, resize)
			trigger(t, rt, resize.With(json.RawMessage(`{}`)))
			claim := claimNext(t, rt, &core.ClaimOptions{Lease: core.MinLease})
			if cancelled {
				if _, err := rt.Runs().Cancel(t.Context(), claim.Run.ID, nil); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(core.MinLease)
			result, err := rt.Tick(t.Context(), nil)
			if found := result.Delivered.Done + result.Cancelled.Done; err != nil || found != 1 {
				t.Errorf("cancelled %t: %v, %+v", cancelled, err, result)
			}
		})
	}
}
