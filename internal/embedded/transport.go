package embedded

import (
	"time"

	"github.com/runlane/runlane-go"
)

// JudgeReceive refuses a call of Receive without queues or workers.
func JudgeReceive(queues []runlane.QueueName, concurrency int) error {
	if len(queues) > 0 && concurrency >= 1 {
		return nil
	}
	return &runlane.Error{
		Code:    runlane.ErrConfigurationInvalid,
		Message: "nothing to receive: no queue is named, or concurrency is below 1",
		Hint:    "name the queues to read and a concurrency of at least 1",
	}
}

// JudgeQueueNames refuses an option, such as "Options.Ordered", that names an invalid queue.
func JudgeQueueNames(option string, names []runlane.QueueName) error {
	for _, name := range names {
		if err := name.Validate(); err != nil {
			return &runlane.Error{
				Code:    runlane.ErrConfigurationInvalid,
				Message: option + " has a bad name",
				Hint:    "use printable text without ':'",
				Cause:   err,
			}
		}
	}
	return nil
}

// HandBackPause returns how long a refused wakeup waits before it is delivered again: first after the first refusal,
// then twice as long each time, up to longest. before counts the earlier refusals.
func HandBackPause(first, longest time.Duration, before int64) time.Duration {
	pause := first
	for ; before > 0 && pause < longest; before-- {
		pause = min(2*pause, longest)
	}
	return pause
}
