package shown

import (
	"encoding/json"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

type Claim struct {
	Token        string            `json:"token"`
	Run          runlane.RunID     `json:"runId"`
	Task         runlane.TaskID    `json:"taskId"`
	Queue        runlane.QueueName `json:"queue"`
	Attempt      int               `json:"attempt"`
	Payload      json.RawMessage   `json:"payload"`
	LeaseUntil   time.Time         `json:"leaseUntil"`
	Deadline     time.Time         `json:"deadline,omitzero"`
	Meta         map[string]string `json:"meta,omitempty"`
	TraceCarrier map[string]string `json:"traceCarrier,omitempty"`
	CreatedAt    time.Time         `json:"createdAt"`
}

func ClaimOf(c *core.Claim) *Claim {
	return &Claim{
		Token:        c.Token,
		Run:          c.Run.ID,
		Task:         c.Run.TaskID,
		Queue:        c.Run.Queue,
		Attempt:      c.Run.Counters.Attempts,
		Payload:      c.Run.Payload,
		LeaseUntil:   c.Run.Lease.ExpiresAt,
		Deadline:     c.Deadline(),
		Meta:         c.Run.Meta,
		TraceCarrier: c.Run.TraceCarrier,
		CreatedAt:    c.Run.CreatedAt,
	}
}

// Lease is the state of a claim's lease, and whether its client should stop.
type Lease struct {
	Run             runlane.RunID `json:"runId"`
	LeaseUntil      time.Time     `json:"leaseUntil"`
	CancelRequested bool          `json:"cancelRequested"`
}

func LeaseOf(c *core.Claim) *Lease {
	return &Lease{
		Run:             c.Run.ID,
		LeaseUntil:      c.Run.Lease.ExpiresAt,
		CancelRequested: c.Run.Status == runlane.StatusCancellationRequested,
	}
}

type Waited struct {
	Run       runlane.RunID `json:"runId"`
	Suspended bool          `json:"suspended"`
	runlane.WaitAnswer
}

// CallAnswer is the result of a client's call: its runs, when all have ended.
type CallAnswer struct {
	Run       runlane.RunID `json:"runId"`
	Suspended bool          `json:"suspended"`
	Runs      []CallEnd     `json:"runs,omitempty"`
}

type CallEnd struct {
	Run     runlane.RunID   `json:"runId"`
	Status  runlane.Status  `json:"status"`
	Output  json.RawMessage `json:"output,omitempty"`
	Failure runlane.Failure `json:"failure,omitzero"`
}

// CallAnswerOf shows the runs of a call, or that the attempt was suspended to wait for them.
func CallAnswerOf(caller runlane.RunID, runs []*runlane.Run, suspended bool) *CallAnswer {
	called := &CallAnswer{Run: caller, Suspended: suspended}
	for _, run := range runs {
		called.Runs = append(called.Runs, CallEnd{
			Run:     run.ID,
			Status:  run.Status,
			Output:  run.Output,
			Failure: run.Failure,
		})
	}
	return called
}
