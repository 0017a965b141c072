package functions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/sqstransport"
)

const (
	standardARN = "arn:aws:sqs:eu-west-1:123456789012:work"
	fifoARN     = "arn:aws:sqs:eu-west-1:123456789012:work.fifo"
)

// greet has a handler, unknown does not.
var (
	greet   = runlane.NewTask[string]("greet", nil)
	unknown = runlane.NewTask[string]("unknown", nil)
)

// transport is memlane's with the one ability that SQS has beyond it, written down.
type transport struct {
	lane.Transport

	err error

	mu    sync.Mutex
	calls []handBack
}

// handBack is one call, with the delay that the shared rule gives each message.
type handBack struct {
	Queue  string
	Delays map[string]time.Duration
}

func (t *transport) Unwrap() lane.Transport { return t.Transport }

func (t *transport) HandBack(_ context.Context, queue string, records []sqstransport.HandedBack) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	delays := map[string]time.Duration{}
	for _, r := range records {
		if r.ReceiptHandle != "receipt-"+r.MessageID {
			return fmt.Errorf("message %s has receipt handle %s", r.MessageID, r.ReceiptHandle)
		}
		delays[r.MessageID] = sqstransport.HandBackDelay(r.Record, r.Err)
	}
	t.calls = append(t.calls, handBack{queue, delays})
	return t.err
}

// program is a runtime with the task greet on a lane in memory.
type program struct {
	*core.Runtime

	transport *transport
	mu        sync.Mutex
	greeted   []string
}

// open starts a program; greet calls handle when it is set, else succeeds.
func open(t *testing.T, handle func(ctx context.Context, name string) error) *program {
	t.Helper()
	return openWith(t, handle, &core.Options{})
}

func openWith(t *testing.T, handle func(ctx context.Context, name string) error, options *core.Options) *program {
	t.Helper()
	p := &program{transport: &transport{Transport: memlane.NewTransport(nil)}}
	handler := greet.Handle(func(ctx context.Context, _ *runlane.Attempt, name string) error {
		p.mu.Lock()
		p.greeted = append(p.greeted, name)
		p.mu.Unlock()
		if handle == nil {
			return nil
		}
		return handle(ctx, name)
	})
	options.Handlers = []runlane.Handler{handler}
	p.Runtime = openOn(t, memlane.NewStorage(nil), p.transport, options)
	return p
}

func openOn(t *testing.T, storage lane.Storage, transport lane.Transport, options *core.Options) *core.Runtime {
	t.Helper()
	l, err := lane.New(storage, transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	options.Environment = "prod"
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	rt, err := core.Open(t.Context(), l, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return rt
}

// trigger makes a run and returns its id.
func (p *program) trigger(t *testing.T, call runlane.Call) runlane.RunID {
	t.Helper()
	result, err := p.Trigger(t.Context(), call, nil)
	if err != nil {
		t.Fatal(err)
	}
	return result.Run.ID
}

func (p *program) status(t *testing.T, id runlane.RunID) runlane.Status {
	t.Helper()
	run, err := p.Runs().Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return run.Status
}

// body is a message as sqstransport writes it: the contract at rest, spelled out.
func body(environment string, id runlane.RunID) string {
	return fmt.Sprintf(`{"v":1,"environment":%q,"runId":%q,"queue":"default","requestedAt":"2026-11-03T12:00:00Z"}`, environment, id)
}

func wakeup(id runlane.RunID) string { return body("prod", id) }

// message is a record as Lambda sends it; of a message group, where one is given.
func message(id, body, arn string, receiveCount int, group ...string) events.SQSMessage {
	m := events.SQSMessage{
		MessageId: id, ReceiptHandle: "receipt-" + id, Body: body, EventSource: "aws:sqs", EventSourceARN: arn,
		Attributes: map[string]string{"ApproximateReceiveCount": strconv.Itoa(receiveCount)},
	}
	for _, g := range group {
		m.Attributes["MessageGroupId"] = g
	}
	return m
}

func failures(response events.SQSEventResponse) []string {
	list := []string{}
	for _, f := range response.BatchItemFailures {
		list = append(list, f.ItemIdentifier)
	}
	return list
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// marshal is the event as Lambda would send it.
func marshal(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

var errScripted = errors.New("scripted failure")
