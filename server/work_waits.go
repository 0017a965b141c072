package server

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/shown"
)

// A run can wait through its claim: for a time, or for signals.

type sleepBody struct {
	claimToken
	Name string `json:"name" required:"true" doc:"the identity of the pause for the life of the run"`
	For  span   `json:"for" required:"true" doc:"how long, from the first time on"`
}

type awaitBody struct {
	claimToken
	Name    string   `json:"name" doc:"the identity of the wait for the life of the run; the signals unless given"`
	Signals []string `json:"signals" required:"true" doc:"their names"`
	All     bool     `json:"all" doc:"true: a signal of each name is needed"`
	Prompt  string   `json:"prompt" doc:"the question to a person"`
	Timeout *span    `json:"timeout" doc:"how long to wait, from the first time on; for ever unless given; 0s: not at all"`

	Schemas map[string]json.RawMessage `json:"schemas" doc:"JSON Schemas of bodies by the names of their signals: a body that does not fit is refused to its sender"`
}

func sleepRun(ctx context.Context, _ *call, claim *core.Claim, body *sleepBody) (*reply, error) {
	return waited(claim, runlane.WaitAnswer{}, claim.Sleep(ctx, body.Name, time.Duration(body.For)))
}

func awaitSignal(ctx context.Context, _ *call, claim *core.Claim, body *awaitBody) (*reply, error) {
	if len(body.Signals) == 0 {
		return nil, badInput("signals is empty", "name what the run waits for")
	}
	name := body.Name
	if name == "" {
		name = strings.Join(body.Signals, "+") // a different choice of signals is a different wait
	}
	request := runlane.WaitRequest{
		Name:   name,
		Names:  body.Signals,
		All:    body.All,
		Prompt: body.Prompt,

		Schemas: body.Schemas,
	}
	if body.Timeout != nil {
		request.Timeout = time.Duration(*body.Timeout)
		if request.Timeout == 0 {
			request.Timeout = runlane.NoWait
		}
	}
	answer, err := claim.Wait(ctx, request)
	return waited(claim, answer, err)
}

// waited answers with the result of a wait, or reports that the attempt ended in order to wait.
func waited(claim *core.Claim, answer runlane.WaitAnswer, err error) (*reply, error) {
	suspended := runlane.Suspended(err)
	if err != nil && !suspended {
		return nil, err
	}
	return object("waited", &shown.Waited{
		Run:        claim.Run.ID,
		Suspended:  suspended,
		WaitAnswer: answer,
	}), nil
}
