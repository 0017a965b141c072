package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
)

// Probe is what a run of [Check] carries.
type Probe struct {
	Do string `json:"do"` // CheckSucceed, CheckRetry or CheckRelease
}

// What a [Probe] can ask for.
const (
	// CheckSucceed ends at the first attempt.
	CheckSucceed = "succeed"
	// CheckRetry fails once, then succeeds.
	CheckRetry = "retry"
	// CheckRelease is released once, then succeeds.
	CheckRelease = "release"
)

// CheckPause lies between the attempts of a [Check].
const CheckPause = time.Second

// ErrCheckFailed is the one failure of a [Check] that was asked to be retried.
const ErrCheckFailed runlane.ErrorCode = "webhook_check_failed"

// Check is a task without effects, to see a deployment work: it sends no request.
var Check = runlane.NewTask("webhooks.check", &runlane.TaskOptions[Probe]{
	Queue:   Queue,
	Retry:   runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(CheckPause), NoJitter: true},
	Timeout: 5 * time.Second,
})

// check goes by the run's counters, not by the attempt's number: an attempt that was lost with its process does not
// change what was asked for.
func check(_ context.Context, a *runlane.Attempt, p Probe) error {
	switch {
	case p.Do == CheckRetry && a.Run.Counters.Failures == 0:
		return &runlane.Error{Code: ErrCheckFailed, Message: "the check asked for one failure", Retryable: true}
	case p.Do == CheckRelease && a.Run.Counters.Releases == 0:
		return runlane.Release(CheckPause, "the check asked for one release")
	case p.Do == CheckSucceed, p.Do == CheckRetry, p.Do == CheckRelease:
		return nil
	}
	return runlane.Permanent(&runlane.Error{
		Code: runlane.ErrValidationFailed, Message: fmt.Sprintf("a check cannot do %q", p.Do),
		Hint: "use " + CheckSucceed + ", " + CheckRetry + " or " + CheckRelease,
	})
}
