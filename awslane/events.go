package awslane

import (
	"context"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqstransport"
)

// EventQueuesVariable has the URLs of the queues of events that a bus refused: of those to be sent again, a comma, and
// of those given up. Without it, doctor does not look at them.
const EventQueuesVariable = "RUNLANE_EVENT_QUEUES"

// The event queues as the transport that looks at them names them.
const (
	eventRetries     runlane.QueueName = "event-retries"
	eventDeadLetters runlane.QueueName = "event-dead-letters"
)

// eventWatcher is the lane's transport and also knows the queues of refused events.
type eventWatcher struct {
	*sqstransport.Transport

	events *sqstransport.Transport
}

func (w *eventWatcher) Unwrap() lane.Transport { return w.Transport }

// watchEvents returns the transport as it is if there are no event queues.
func watchEvents(transport *sqstransport.Transport, api sqstransport.API, urls []string) (lane.Transport, error) {
	if len(urls) == 0 {
		return transport, nil
	}
	const hint = "set it to the output of the stack, two URLs with a comma between, or leave it unset"
	if len(urls) != 2 {
		return nil, invalid(EventQueuesVariable+" does not name two queues", hint)
	}
	queues := map[runlane.QueueName]string{eventRetries: urls[0], eventDeadLetters: urls[1]}
	events, err := sqstransport.New(api, queues, nil)
	if err != nil {
		return nil, &runlane.Error{
			Code: runlane.ErrConfigurationInvalid, Message: EventQueuesVariable + " cannot be used", Hint: hint, Cause: err,
		}
	}
	return &eventWatcher{Transport: transport, events: events}, nil
}

// RefusedEvents counts, approximately, the events that are sent again and those given up.
func (w *eventWatcher) RefusedEvents(ctx context.Context) (again, givenUp int, err error) {
	var counts [2]int
	for i, queue := range []runlane.QueueName{eventRetries, eventDeadLetters} {
		visible, inFlight, err := w.events.Depth(ctx, queue)
		if err != nil {
			return 0, 0, &runlane.Error{
				Code: runlane.ErrTransportUnavailable, Message: "the queues of refused events cannot be read", Retryable: true,
				Hint: "check " + EventQueuesVariable + ", and the right sqs:GetQueueAttributes on both", Cause: err,
			}
		}
		counts[i] = visible + inFlight
	}
	return counts[0], counts[1], nil
}

func splitURLs(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}
