package shown

import (
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

// Tree is a run's summary with its calls.
type Tree struct {
	runlane.RunSummary

	Failure *runlane.Failure `json:"failure,omitempty"`
	Calls   []Called         `json:"calls,omitempty"`
}

type Called struct {
	Name     string                 `json:"name"`
	TaskID   runlane.TaskID         `json:"taskId"`
	CalledAt time.Time              `json:"calledAt"`
	Count    int                    `json:"count"`
	Ended    int                    `json:"ended"`
	Statuses map[runlane.Status]int `json:"statuses,omitempty"`
	Runs     []Tree                 `json:"runs,omitempty"`
}

func TreeOf(tree *core.RunTree) Tree {
	seen := Tree{RunSummary: tree.Run.Summary()}
	if !tree.Run.Failure.IsZero() {
		seen.Failure = &tree.Run.Failure
	}
	for i := range tree.Calls {
		call := &tree.Calls[i]
		called := Called{
			Name:     call.Name,
			TaskID:   call.TaskID,
			CalledAt: call.CalledAt,
			Count:    call.Count,
			Ended:    call.Ended,
			Statuses: call.Statuses,
		}
		for n := range call.Runs {
			called.Runs = append(called.Runs, TreeOf(&call.Runs[n]))
		}
		seen.Calls = append(seen.Calls, called)
	}
	return seen
}
