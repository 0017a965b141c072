package sqstransport_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqstransport"
)

// Idle connections belong to the SDK's HTTP client, which lives as long as the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

const (
	mailURL  = "https://sqs.eu-west-1.amazonaws.com/123456789012/mail"
	audioURL = "https://sqs.eu-west-1.amazonaws.com/123456789012/audio"
	orderURL = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders.fifo"
)

var start = time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)

// open binds mail and audio (standard) and orders (FIFO), or what is given.
func open(t *testing.T, client sqstransport.API, options *sqstransport.Options, names ...runlane.QueueName) *sqstransport.Transport {
	t.Helper()
	urls := map[runlane.QueueName]string{"mail": mailURL, "audio": audioURL, "orders": orderURL}
	bound := map[runlane.QueueName]string{}
	for _, name := range names {
		bound[name] = urls[name]
	}
	if len(names) == 0 {
		bound = urls
	}
	if options == nil {
		options = &sqstransport.Options{Logger: slog.New(slog.DiscardHandler)}
	}
	transport, err := sqstransport.New(client, bound, options)
	if err != nil {
		t.Fatal(err)
	}
	return transport
}

func wakeup(queue runlane.QueueName, run string) lane.Wakeup {
	return lane.Wakeup{RunKey: lane.RunKey{Environment: "prod", RunID: runlane.RunID(run)}, Queue: queue, RequestedAt: start}
}

// attempts are n wakeups with separate outbox ids and run ids.
func attempts(queue runlane.QueueName, n int) []lane.PublishAttempt {
	list := make([]lane.PublishAttempt, n)
	for i := range list {
		list[i] = lane.PublishAttempt{
			OutboxRef: lane.OutboxRef{ID: fmt.Sprintf("%s-outbox-%d", queue, i), ClaimToken: "claim"},
			Wakeup:    wakeup(queue, fmt.Sprintf("%s-run-%d", queue, i)),
			GroupKey:  fmt.Sprintf("%s-run-%d", queue, i),
		}
	}
	return list
}

func publish(t *testing.T, transport *sqstransport.Transport, list []lane.PublishAttempt) []lane.PublishOutcome {
	t.Helper()
	outcomes, err := transport.PublishWakeups(t.Context(), &lane.PublishCommand{Attempts: list})
	if err != nil {
		t.Fatal(err)
	}
	if len(outcomes) != len(list) {
		t.Fatalf("%d outcomes for %d attempts", len(outcomes), len(list))
	}
	return outcomes
}

// summary is an outcome in one word: published, or the code of its failure, with an exclamation mark where it is permanent.
func summary(outcomes []lane.PublishOutcome) []string {
	list := make([]string, len(outcomes))
	for i, o := range outcomes {
		list[i] = string(o.Type)
		if o.Type == lane.PublishFailed {
			list[i] = string(o.Failure.Code)
		}
		if o.Permanent {
			list[i] += "!"
		}
	}
	return list
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
