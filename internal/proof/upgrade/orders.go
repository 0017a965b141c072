package main

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/runlane/runlane-go"
)

// Milliseconds that a run waits: over an update, or over all of this.
const (
	soon   = 2_000
	over   = 8_000
	far    = 24 * 3600_000
	anHour = 3600_000
)

// dying is a run whose worker ends in the middle of its first attempt. It has to be alone when it does: the process has
// all runs of a batch.
func dying(p string) order { return order{Name: p + "-dies", Do: "die", ends: runlane.StatusSucceeded} }

// unsent are runs whose wakeups are not sent before the next version sends them.
func unsent(p string) []order {
	return []order{
		{Name: p + "-down", Sends: "down", ends: runlane.StatusSucceeded},
		{Name: p + "-deferred", Deferred: true, ends: runlane.StatusSucceeded},
		{Name: p + "-deferred-sealed", Deferred: true, Sealed: true, ends: runlane.StatusSucceeded},
		{Name: p + "-refused", Sends: "refused", ends: runlane.StatusSucceeded}, // after an operator asked for it
	}
}

// quick are runs that have ended, or wait, within seconds.
func quick(p string) []order {
	orders := []order{
		{Name: p + "-plain", ends: runlane.StatusSucceeded},
		{Name: p + "-sealed", Sealed: true, ends: runlane.StatusSucceeded},
		{Name: p + "-long", Pad: strings.Repeat("compresses well ", 12_000), ends: runlane.StatusSucceeded},
		{Name: p + "-dense", Pad: dense(100_000), ends: runlane.StatusSucceeded},
		{Name: p + "-dense-sealed", Pad: dense(50_000), Sealed: true, ends: runlane.StatusSucceeded},
		{Name: p + "-fails", Do: "fail", ends: runlane.StatusFailed},
		{Name: p + "-soon", Later: soon, ends: runlane.StatusSucceeded},
		{Name: p + "-retries-far", Do: "retry", Milliseconds: anHour, ends: runlane.StatusRetrying},
		{Name: p + "-released-far", Do: "release", Milliseconds: anHour, ends: runlane.StatusReleased},
		{Name: p + "-far", Later: far, ends: runlane.StatusScheduled},
		{Name: p + "-cancelled", Later: far, ends: runlane.StatusCancelled},
		{Name: p + "-key", IdempotencyKey: p + "-key", ends: runlane.StatusSucceeded},
	}
	return append(orders, owners()...)
}

// owners are runs whose keys outlive versions: each version gets the same runs as answers.
func owners() []order {
	return []order{
		{Name: "key", IdempotencyKey: "key", ends: runlane.StatusSucceeded},
		{Name: "sealed-key", IdempotencyKey: "sealed-key", Sealed: true, ends: runlane.StatusSucceeded},
		{Name: "single", SingletonKey: "single", Later: far, ends: runlane.StatusScheduled},
		{Name: "single", SingletonKey: "single", Later: far, ends: runlane.StatusScheduled},
	}
}

// acrossUpdate are runs that the next version meets in the middle: waiting, in full slots, and executing until their
// gate is opened.
func acrossUpdate(p string) []order {
	orders := []order{
		{Name: p + "-near", Later: over, ends: runlane.StatusSucceeded},
		{Name: p + "-near-sealed", Later: over, Sealed: true, ends: runlane.StatusSucceeded},
		{Name: p + "-retries", Do: "retry", Milliseconds: over, ends: runlane.StatusSucceeded},
		{Name: p + "-released", Do: "release", Milliseconds: over, ends: runlane.StatusSucceeded},
	}
	for i := range 6 {
		orders = append(orders, order{
			Name: p + "-bound-" + strconv.Itoa(i), Bound: true, Do: "hold", Gate: p, ends: runlane.StatusSucceeded,
		})
	}
	for _, name := range []string{"-holds", "-holds-too"} {
		orders = append(orders, order{Name: p + name, Do: "hold", Gate: p, ends: runlane.StatusSucceeded})
	}
	// No one opens its gate: it ends by being told that it is to be cancelled, however late that is.
	return append(orders, order{Name: p + "-asked", Do: "hold", Gate: "never", ends: runlane.StatusCancelled})
}

// passing is what is triggered all the time.
func passing(p string, n int) []order {
	name := p + "-passing-" + strconv.Itoa(n)
	return []order{
		{Name: name, ends: runlane.StatusSucceeded},
		{Name: name + "-deferred", Deferred: true, ends: runlane.StatusSucceeded},
		{Name: name + "-later", Later: soon, Sealed: true, ends: runlane.StatusSucceeded},
		{Name: name + "-bound", Bound: true, ends: runlane.StatusSucceeded},
		{Name: "key", IdempotencyKey: "key", ends: runlane.StatusSucceeded},
	}
}

// dense is text that does not compress to less than half.
func dense(n int) string {
	var out strings.Builder
	for i := 0; out.Len() < n; i++ {
		sum := sha256.Sum256([]byte(strconv.Itoa(i)))
		out.WriteString(hex.EncodeToString(sum[:]))
	}
	return out.String()[:n]
}
