package lane_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// creation is a transition without a fault; the cases below change one thing each.
func creation() *lane.Transition {
	event := func(body runlane.EventBody) runlane.Event {
		return runlane.Event{RunID: "run_1", Environment: "production", OccurredAt: noon, Actor: runlane.SystemActor, Body: body}
	}
	return &lane.Transition{
		Events: []runlane.Event{
			event(&runlane.RunCreated{TaskID: "t", Queue: "q", Payload: []byte(`"secret"`)}),
			event(&runlane.RunDeliveryRequested{Delivery: runlane.Delivery{
				Environment: "production", RunID: "run_1", Queue: "q", AvailableAt: noon, RequestedAt: noon,
			}}),
		},
		Projected: &runlane.Run{ID: "run_1", Environment: "production", TaskID: "t", Queue: "q", Status: runlane.StatusQueued, EventSequence: 2},
		Queue:     runlane.Queue{Name: "q"},
	}
}

func TestTransition_Validate(t *testing.T) {
	t.Parallel()
	repeat := func(tr *lane.Transition, times int) {
		for len(tr.Events) < times {
			tr.Events = append(tr.Events, tr.Events[1])
		}
		tr.Projected.EventSequence = tr.ExpectedSequence + int64(len(tr.Events))
	}
	delivery := func(tr *lane.Transition) *runlane.Delivery {
		return &tr.Events[1].Body.(*runlane.RunDeliveryRequested).Delivery
	}
	for name, c := range map[string]struct {
		change func(*lane.Transition)
		want   string // "" for no fault
	}{
		"creation": {func(*lane.Transition) {}, ""},
		"append": {func(tr *lane.Transition) {
			tr.ExpectedSequence, tr.Events, tr.Projected.EventSequence = 7, tr.Events[1:], 8
		}, ""},
		"no policy":                 {func(tr *lane.Transition) { tr.Queue = runlane.Queue{} }, ""},
		"as many events as allowed": {func(tr *lane.Transition) { repeat(tr, lane.MaxCommitEvents) }, ""},
		"the default environment twice": {func(tr *lane.Transition) {
			tr.Events[0].Environment, tr.Events[1].Environment, tr.Projected.Environment, delivery(tr).Environment = "", "default", "default", ""
		}, ""},

		"no projection":         {func(tr *lane.Transition) { tr.Projected = nil }, "transition has no projected run"},
		"no run id":             {func(tr *lane.Transition) { tr.Projected.ID = "" }, "projected run has no valid id or environment"},
		"bad run id":            {func(tr *lane.Transition) { tr.Projected.ID = "a:b" }, "projected run has no valid id or environment"},
		"bad environment":       {func(tr *lane.Transition) { tr.Projected.Environment = "a:b" }, "projected run has no valid id or environment"},
		"unknown status":        {func(tr *lane.Transition) { tr.Projected.Status = "paused" }, `projected run has the unknown status "paused"`},
		"negative sequence":     {func(tr *lane.Transition) { tr.ExpectedSequence = -1 }, "expected sequence -1 is negative"},
		"no events":             {func(tr *lane.Transition) { tr.Events = nil }, "transition has no events"},
		"too many events":       {func(tr *lane.Transition) { repeat(tr, lane.MaxCommitEvents+1) }, "transition has 101 events, more than 100"},
		"sequence too low":      {func(tr *lane.Transition) { tr.Projected.EventSequence = 1 }, "projected sequence is 1, not 2"},
		"sequence too high":     {func(tr *lane.Transition) { tr.Projected.EventSequence = 3 }, "projected sequence is 3, not 2"},
		"policy of another":     {func(tr *lane.Transition) { tr.Queue.Name = "other" }, `policy of queue "other" given for a run of queue "q"`},
		"event of another run":  {func(tr *lane.Transition) { tr.Events[1].RunID = "run_2" }, "event 1 is of another run or environment"},
		"event of another env":  {func(tr *lane.Transition) { tr.Events[0].Environment = "staging" }, "event 0 is of another run or environment"},
		"no creation":           {func(tr *lane.Transition) { tr.Events, tr.Projected.EventSequence = tr.Events[1:], 1 }, "run.created is the first event of a new run and no other"},
		"creation twice":        {func(tr *lane.Transition) { tr.Events[1] = tr.Events[0] }, "run.created is the first event of a new run and no other"},
		"creation of what is":   {func(tr *lane.Transition) { tr.ExpectedSequence, tr.Projected.EventSequence = 1, 3 }, "run.created is the first event of a new run and no other"},
		"no body":               {func(tr *lane.Transition) { tr.Events[1].Body = nil }, "event 1 has no body"},
		"nil unknown body":      {func(tr *lane.Transition) { tr.Events[1].Body = (*runlane.UnknownEvent)(nil) }, "event 1 has no body"},
		"unknown body":          {func(tr *lane.Transition) { tr.Events[1].Body = &runlane.UnknownEvent{Type: "x"} }, "event 1 has no known body"},
		"delivery of other run": {func(tr *lane.Transition) { delivery(tr).RunID = "run_2" }, "delivery of event 1 is for another run, environment or queue"},
		"delivery elsewhere":    {func(tr *lane.Transition) { delivery(tr).Environment = "" }, "delivery of event 1 is for another run, environment or queue"},
		"delivery on another":   {func(tr *lane.Transition) { delivery(tr).Queue = "other" }, "delivery of event 1 is for another run, environment or queue"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := creation()
			c.change(tr)
			err := tr.Validate()
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			got, ok := errors.AsType[*runlane.Error](err)
			if !ok || got.Code != runlane.ErrContractViolation || got.Message != c.want {
				t.Fatalf("got %v, want %s", err, c.want)
			}
			if tr.Projected != nil && got.RunID != tr.Projected.ID {
				t.Errorf("about run %q", got.RunID)
			}
			if strings.Contains(got.Error(), "secret") {
				t.Errorf("the error repeats the payload: %v", got)
			}
		})
	}
}

func TestTransition_Reads(t *testing.T) {
	t.Parallel()
	tr := creation()
	if got := tr.Key(); got != (lane.RunKey{Environment: "production", RunID: "run_1"}) {
		t.Errorf("got %+v", got)
	}
	if !tr.Creates() || tr.Reserves() {
		t.Errorf("creates %t, reserves %t", tr.Creates(), tr.Reserves())
	}
	tr.ExpectedSequence, tr.Projected.DispatchExpiresAt = 1, noon
	if tr.Creates() || !tr.Reserves() {
		t.Errorf("creates %t, reserves %t", tr.Creates(), tr.Reserves())
	}
}
