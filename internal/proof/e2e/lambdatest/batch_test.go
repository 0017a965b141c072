package lambdatest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/examples/webhooks"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/functions/eventsource"
	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
)

// The three programs that are deployed deliver webhooks: those of eager and of deferred triggers, and one that fails at first.
func TestDeployedPrograms_DeliverThroughQueueRelayAndTick(t *testing.T) {
	t.Parallel()
	i := install(t, installOptions{name: "webhooks", streamed: true})
	var received, refused atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "grumpy") && refused.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		received.Add(1)
	}))
	defer receiver.Close()
	changes := map[string]string{webhooks.EndpointsVariable: "shop=" + receiver.URL, webhooks.SecretVariable: "secret"}
	bridge := i.deploy("bridge", functions.RoleBridge, lambdatest.Options{}, changes)
	i.mapQueue(bridge, eventsource.QueueOptions{})
	i.mapStream(i.deploy("relay", functions.RoleRelay, lambdatest.Options{}, changes))
	i.tickEvery(i.deploy("tick", functions.RoleTick, lambdatest.Options{}, changes), 5*time.Second)

	const each = 12
	var ids []runlane.RunID
	trigger := func(id, payload string, options *runlane.TriggerOptions) {
		result, err := i.Trigger(t.Context(), webhooks.Deliver.With(webhooks.Delivery{
			ID: id, Event: "order", Endpoint: "shop", Payload: webhooks.Payload(payload),
		}), options)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, result.Run.ID)
	}
	for n := range each {
		trigger(fmt.Sprint("eager-", n), `{"a": 1}`, nil)
		trigger(fmt.Sprint("deferred-", n), `{"a": 1}`, &runlane.TriggerOptions{Deferred: true})
	}
	trigger("grumpy", `{"who": "grumpy"}`, nil)
	i.succeeds(ids...)
	equal(t, "webhooks", received.Load(), int64(len(ids)))
	i.sound()
}

// One batch of everything that can be in a queue: what is the run's is recorded with it, what is not comes back alone.
func TestBatch_OfEverything_ReportsAloneWhatCannotBeHandled(t *testing.T) {
	t.Parallel()
	i := install(t, installOptions{})
	bridge := i.deploy("program", functions.RoleBridge, lambdatest.Options{}, map[string]string{lambdatest.WithoutVariable: "other"})
	good := i.act(lambdatest.Play, lambdatest.Act{Name: "good"}, nil)
	failing := i.act(lambdatest.Play, lambdatest.Act{Name: "failing", Do: lambdatest.Fail}, nil)
	other := i.act(lambdatest.Other, lambdatest.Act{Name: "other"}, nil)
	const malformed, foreign, newer, gone = "hello", `{"v":1,"environment":"staging","runId":"run_1","queue":"default","requestedAt":"2026-11-03T12:00:00Z"}`,
		`{"v":2}`, `{"v":1,"environment":"prod","runId":"run_gone","queue":"default","requestedAt":"2026-11-03T12:00:00Z"}`
	for _, body := range []string{malformed, foreign, newer, gone} {
		i.send(body)
	}
	event := i.receive(7)
	answer := invoke(t, bridge, event)
	var response events.SQSEventResponse
	if err := json.Unmarshal(answer.Payload, &response); err != nil || answer.Failure != "" {
		t.Fatalf("answer is %q %s", answer.Failure, answer.Payload)
	}
	var back []string
	for _, f := range response.BatchItemFailures {
		at := slices.IndexFunc(event.Records, func(r events.SQSMessage) bool { return r.MessageId == f.ItemIdentifier })
		if at < 0 {
			t.Fatalf("a failure of an unknown record: %s", answer.Payload)
		}
		body := event.Records[at].Body
		if strings.Contains(body, string(other)) {
			body = "other"
		}
		back = append(back, body)
	}
	slices.Sort(back)
	equal(t, "handed back", back, []string{malformed, "other", foreign, newer})
	i.succeeds(good)
	for id, want := range map[runlane.RunID]runlane.Status{failing: runlane.StatusRetrying, other: runlane.StatusQueued} {
		run, err := i.Runs().Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "status", run.Status, want)
	}
	i.sound()

	// The next version has the handler: what came back, and the retry, reach their ends through the same queue.
	next := i.deploy("program", functions.RoleBridge, lambdatest.Options{}, nil)
	i.mapQueue(next, eventsource.QueueOptions{})
	i.succeeds(good, failing, other)
	i.sound()
}

// A hundred invocations at once, each in a separate process, and none ends before all have begun.
func TestInvocations_HundredAtOnce_EachExecutesItsRun(t *testing.T) {
	t.Parallel()
	const invocations = 100
	i := install(t, installOptions{})
	bridge := i.deploy("program", functions.RoleBridge, lambdatest.Options{
		Concurrency: invocations, InitTimeout: patience, Timeout: patience,
	}, nil)
	var ids []runlane.RunID
	for n := range invocations {
		ids = append(ids, i.act(lambdatest.Play, lambdatest.Act{Name: fmt.Sprint("guest-", n), Do: lambdatest.Meet, Party: invocations}, nil))
	}
	var running sync.WaitGroup
	for _, record := range i.receive(invocations).Records {
		running.Go(func() {
			answer, err := bridge.InvokeJSON(t.Context(), events.SQSEvent{Records: []events.SQSMessage{record}})
			if err != nil || answer.Failure != "" || string(answer.Payload) != `{"batchItemFailures":[]}` {
				t.Errorf("answer is %+v, %v", answer, err)
			}
		})
	}
	running.Wait()
	i.succeeds(ids...)
	equal(t, "attempts", len(i.attempts()), invocations)
	equal(t, "processes", len(bridge.Processes()), invocations)
	i.sound()
}
