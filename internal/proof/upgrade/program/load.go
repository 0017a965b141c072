package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
)

// Order is a run to trigger.
type Order struct {
	Job

	// Bound chooses that task instead of Work.
	Bound bool `json:"bound,omitempty"`
	// Later is how many milliseconds the run waits.
	Later          int    `json:"later,omitempty"`
	Deferred       bool   `json:"deferred,omitempty"`
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
	SingletonKey   string `json:"singletonKey,omitempty"`
	// Sealed encrypts the payload.
	Sealed bool `json:"sealed,omitempty"`
	// Sends says how the transport answers: "" sends the wakeup, "refused" is for ever, "down" is an outage.
	Sends string `json:"sends,omitempty"`
}

// Acknowledged is what the trigger of an order returned.
type Acknowledged struct {
	Name    string                 `json:"name"`
	Run     runlane.RunID          `json:"run"`
	Outcome runlane.TriggerOutcome `json:"outcome"`
}

// load triggers the orders of its input, one after the other.
func load(ctx context.Context) (err error) {
	type kind struct {
		sealed bool
		sends  string
	}
	runtimes := map[kind]*core.Runtime{}
	defer func() {
		for _, rt := range runtimes {
			err = errors.Join(err, rt.Close(ctx))
		}
	}()
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var o Order
		if err := in.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		k := kind{o.Sealed, o.Sends}
		if runtimes[k] == nil {
			rt, err := openWith(ctx, k.sealed, refusing(k.sends))
			if err != nil {
				return err
			}
			runtimes[k] = rt
		}
		task := Work
		if o.Bound {
			task = Bound
		}
		result, err := runtimes[k].Trigger(ctx, task.With(o.Job), &runlane.TriggerOptions{
			Delay:          time.Duration(o.Later) * time.Millisecond,
			Deferred:       o.Deferred,
			IdempotencyKey: o.IdempotencyKey,
			SingletonKey:   o.SingletonKey,
			ReturnActive:   o.SingletonKey != "",
		})
		if err != nil {
			return fmt.Errorf("trigger %s: %w", o.Name, err)
		}
		if err := out.Encode(Acknowledged{o.Name, result.Run.ID, result.Outcome}); err != nil {
			return err
		}
	}
}

// refuser is a transport that sends nothing.
type refuser struct {
	lane.Transport

	outcome lane.PublishOutcome
}

func (r refuser) PublishWakeups(_ context.Context, c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	outcomes := make([]lane.PublishOutcome, len(c.Attempts))
	for i := range outcomes {
		outcomes[i] = r.outcome
	}
	return outcomes, nil
}

func refusing(sends string) func(lane.Transport) lane.Transport {
	outcome := lane.PublishOutcome{Type: lane.PublishFailed}
	switch sends {
	case "refused":
		outcome.Failure = runlane.NewFailure(runlane.ErrTransportPublishFailed, "refused, as it was told", nil)
		outcome.Permanent = true
	case "down":
		outcome.Failure = runlane.NewFailure(runlane.ErrTransportUnavailable, "down, as it was told", nil)
	default:
		return nil
	}
	return func(t lane.Transport) lane.Transport { return refuser{t, outcome} }
}
