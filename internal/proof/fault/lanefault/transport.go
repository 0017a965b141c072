package lanefault

import (
	"context"
	"errors"
	"slices"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Transport is a transport whose sending goes wrong as the plan says: with runlane.ErrTransportUnavailable.
// Wakeups are truly sent, lost before or after they were accepted, or sent twice. Depth does not go wrong, and neither
// does the receiver that lane.As finds behind it.
func Transport(t lane.Transport, plan *Plan) lane.Transport {
	return &faultyTransport{Transport: t, plan: plan}
}

type faultyTransport struct {
	lane.Transport
	plan *Plan
}

// Unwrap lets lane.As find what the transport can do besides.
func (t *faultyTransport) Unwrap() lane.Transport { return t.Transport }

func (t *faultyTransport) PublishWakeups(ctx context.Context, c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	return t.send(ctx, "PublishWakeups", len(c.Attempts), func() ([]lane.PublishOutcome, error) {
		return t.Transport.PublishWakeups(ctx, c)
	})
}

// send answers a throttled call message by message, as a provider does. It answers a call that loses its messages as if
// they were accepted.
func (t *faultyTransport) send(
	ctx context.Context, method string, messages int, call func() ([]lane.PublishOutcome, error),
) ([]lane.PublishOutcome, error) {
	outcomes, err := faulty(ctx, t.plan, method, runlane.ErrTransportUnavailable, call)
	switch {
	case errors.Is(err, errLost):
		return slices.Repeat([]lane.PublishOutcome{{Type: lane.Published}}, messages), nil
	case !errors.Is(err, errThrottled):
		return outcomes, err
	}
	outcomes = make([]lane.PublishOutcome, messages)
	for i := range outcomes {
		outcomes[i] = lane.PublishOutcome{
			Type: lane.PublishFailed, Failure: runlane.NewFailure(runlane.ErrTransportUnavailable, "throttled", nil),
		}
	}
	return outcomes, nil
}

func (t *faultyTransport) SendWakeups(
	ctx context.Context, wakeups []lane.DelayedWakeup,
) ([]lane.PublishOutcome, error) {
	return t.send(ctx, "SendWakeups", len(wakeups), func() ([]lane.PublishOutcome, error) {
		return t.Transport.SendWakeups(ctx, wakeups)
	})
}
