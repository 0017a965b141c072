package sqstransport_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqstransport"
)

func TestPublish_ManyWakeups_TenARequestGroupedByQueue(t *testing.T) {
	t.Parallel()
	client := newFakeSQS()
	list := slices.Concat(attempts("mail", 23), attempts("audio", 3), attempts("orders", 11))
	for i := range list { // queues mixed, so that outcomes have to find their way back
		j := (i * 17) % len(list)
		list[i], list[j] = list[j], list[i]
	}
	for _, o := range publish(t, open(t, client, nil), list) {
		if o.Type != lane.Published {
			t.Fatalf("outcome %+v", o)
		}
	}
	sizes := map[string][]int{}
	for _, in := range client.sends {
		sizes[*in.QueueUrl] = append(sizes[*in.QueueUrl], len(in.Entries))
	}
	for _, s := range sizes {
		slices.Sort(s)
	}
	equal(t, "requests", sizes, map[string][]int{mailURL: {3, 10, 10}, audioURL: {3}, orderURL: {1, 10}})
}

// X-Ray's header goes beside the message, delayed or not. What is none would make SQS refuse the wakeup.
func TestPublish_XRayHeader_OnlyInItsForm(t *testing.T) {
	t.Parallel()
	const header = "Root=1-4bf92f35-77b34da6a3ce929d0e0e4736;Parent=00f067aa0ba902b7;Sampled=1"
	client := newFakeSQS()
	list := attempts("mail", 4)
	for i, carrier := range []map[string]string{
		{"X-Amzn-Trace-Id": header}, {"x-amzn-trace-id": header}, {"X-Amzn-Trace-Id": header + ";Lineage=a"}, {"traceparent": header},
	} {
		list[i].TraceCarrier = carrier
	}
	transport := open(t, client, nil)
	publish(t, transport, list)
	if _, err := transport.SendWakeups(t.Context(), []lane.DelayedWakeup{{Wakeup: list[0].Wakeup, Delay: time.Second}}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, in := range client.sends {
		for _, e := range in.Entries {
			got = append(got, aws.ToString(e.MessageSystemAttributes["AWSTraceHeader"].StringValue))
		}
	}
	equal(t, "headers", got, []string{header, header, "", "", header})
}

func TestPublish_LargeMessages_StayBelowTheRequestLimit(t *testing.T) {
	t.Parallel()
	client := newFakeSQS()
	list := attempts("mail", 5)
	for i := range list {
		list[i].TraceCarrier = map[string]string{"pad": strings.Repeat("x", 400<<10)}
	}
	equal(t, "outcomes", summary(publish(t, open(t, client, nil), list)), slices.Repeat([]string{"published"}, 5))
	for _, in := range client.sends {
		size := 0
		for _, e := range in.Entries {
			size += len(*e.MessageBody)
		}
		if size > sqstransport.MaxMessageBytes {
			t.Errorf("request of %d bytes", size)
		}
	}
	equal(t, "requests", len(client.sends), 3)
}

func TestPublish_PartialFailure_EachOutcomeAtItsAttempt(t *testing.T) {
	t.Parallel()
	failures := map[string]types.BatchResultErrorEntry{
		"mail-run-1": {Code: aws.String("InvalidMessageContents"), SenderFault: true, Message: aws.String("bad character")},
		"mail-run-3": {Code: aws.String("RequestThrottled"), SenderFault: true},
		"mail-run-4": {Code: aws.String("InternalError")},
		"mail-run-5": {Code: aws.String("InvalidParameterValue"), SenderFault: true},
		"mail-run-6": {Code: aws.String("SomethingNew"), SenderFault: true},
		"mail-run-7": {Code: aws.String("KmsThrottled"), SenderFault: true},
		"mail-run-8": {Code: aws.String("AccessDenied"), SenderFault: true},
	}
	const forgotten = "mail-run-2"
	client := newFakeSQS()
	client.onSend = func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, bool, error) {
		out := &sqs.SendMessageBatchOutput{}
		for _, e := range slices.Backward(in.Entries) { // the order of an answer means nothing
			w, err := sqstransport.ParseMessage(*e.MessageBody)
			if err != nil {
				return nil, true, err
			}
			failure, failed := failures[string(w.RunID)]
			switch {
			case w.RunID == forgotten:
			case failed:
				failure.Id = e.Id
				out.Failed = append(out.Failed, failure)
			default:
				out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id})
			}
		}
		return out, true, nil
	}
	outcomes := publish(t, open(t, client, nil), attempts("mail", 12))
	equal(t, "outcomes", summary(outcomes), []string{
		"published", "transport_publish_failed!", "transport_unavailable", "transport_unavailable", "transport_unavailable",
		"transport_publish_failed!", "transport_publish_failed", "transport_unavailable", "transport_unavailable",
		"published", "published", "published",
	})
	equal(t, "provider's words", outcomes[1].Failure.Meta,
		map[string]string{"provider_code": "InvalidMessageContents", "provider_message": "bad character"})
}

func TestPublish_RequestFails_IsUnavailableForItsAttemptsOnly(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		says string
	}{
		"missing queue":     {&types.QueueDoesNotExist{}, "RUNLANE_QUEUES"},
		"missing, queries":  {&smithy.GenericAPIError{Code: "AWS.SimpleQueueService.NonExistentQueue", Fault: smithy.FaultClient}, `"mail"`},
		"access denied":     {&smithy.GenericAPIError{Code: "AccessDenied", Fault: smithy.FaultClient}, "permissions"},
		"throttled":         {&types.RequestThrottled{}, "throttles"},
		"refused":           {&smithy.GenericAPIError{Code: "SomethingNew", Fault: smithy.FaultClient}, "refused"},
		"refused, no fault": {unmodeled(http.StatusBadRequest), "refused"},
		"failed, no fault":  {unmodeled(http.StatusInternalServerError), "does not answer"},
		"unreachable":       {&net.OpError{Op: "dial", Err: errors.New("connection refused")}, "AWS_ENDPOINT_URL"},
		"timed out":         {context.DeadlineExceeded, "does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := newFakeSQS()
			client.onSend = func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, bool, error) {
				return nil, *in.QueueUrl == mailURL, tc.err
			}
			outcomes := publish(t, open(t, client, nil), append(attempts("mail", 2), attempts("audio", 1)...))
			equal(t, "outcomes", summary(outcomes), []string{"transport_unavailable", "transport_unavailable", "published"})
			if !strings.Contains(outcomes[0].Failure.Message, tc.says) {
				t.Errorf("message %q does not say %q", outcomes[0].Failure.Message, tc.says)
			}
		})
	}
}

// unmodeled is an error as the SDK makes it of an answer that its model does not know.
func unmodeled(status int) error {
	return &awshttp.ResponseError{ResponseError: &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: &smithy.GenericAPIError{Code: "SomethingNew"},
	}}
}

func TestPublish_UnboundQueue_WaitsForItsBinding(t *testing.T) {
	t.Parallel()
	outcomes := publish(t, open(t, newFakeSQS(), nil, "mail"), append(attempts("audio", 1), attempts("mail", 1)...))
	equal(t, "outcomes", summary(outcomes), []string{"transport_unavailable", "published"})
	if !strings.Contains(outcomes[0].Failure.Message, "audio=<url> to RUNLANE_QUEUES") {
		t.Errorf("message %q does not say what to do", outcomes[0].Failure.Message)
	}
}

func TestPublish_NoCommand_IsContractViolation(t *testing.T) {
	t.Parallel()
	if _, err := open(t, newFakeSQS(), nil).PublishWakeups(t.Context(), nil); !errors.Is(err, runlane.ErrContractViolation) {
		t.Fatalf("error is %v", err)
	}
	outcomes := publish(t, open(t, newFakeSQS(), nil), nil)
	equal(t, "outcomes of no attempts", len(outcomes), 0)
}

func TestPublish_EndedContext_SendsNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	client := newFakeSQS()
	transport := open(t, client, nil)
	if _, err := transport.PublishWakeups(ctx, &lane.PublishCommand{Attempts: attempts("mail", 1)}); !errors.Is(err, runlane.ErrOperationCancelled) {
		t.Errorf("error of PublishWakeups is %v", err)
	}
	if _, err := transport.SendWakeups(ctx, []lane.DelayedWakeup{{Wakeup: wakeup("mail", "r")}}); !errors.Is(err, runlane.ErrOperationCancelled) {
		t.Errorf("error of SendWakeups is %v", err)
	}
	equal(t, "requests", len(client.sends), 0)
}

func TestPublish_ContextEndsOnTheWay_IsUnavailableForWhatIsUnknown(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	client := newFakeSQS()
	client.onSend = func(*sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, bool, error) {
		cancel()
		return nil, true, ctx.Err()
	}
	outcomes, err := open(t, client, nil).PublishWakeups(ctx, &lane.PublishCommand{Attempts: attempts("mail", 1)})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "outcomes", summary(outcomes), []string{"transport_unavailable"})
}

func TestPublish_SilentService_EndsAfterTheTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport := open(t, silent{newFakeSQS()}, nil)
		began := time.Now()
		equal(t, "outcomes", summary(publish(t, transport, attempts("mail", 1))), []string{"transport_unavailable"})
		equal(t, "time it took", time.Since(began), sqstransport.DefaultTimeout)
	})
}

// silent never answers.
type silent struct{ *fakeSQS }

func (silent) SendMessageBatch(ctx context.Context, _ *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestPublish_FIFO_GroupsByKeyAndDeduplicatesByOutboxID(t *testing.T) {
	t.Parallel()
	client := newFakeSQS()
	list := attempts("orders", 5)
	list[1].GroupKey = list[0].GroupKey                 // same key
	list[2].GroupKey = strings.Repeat("schlüssel ", 50) // nothing that SQS would take
	list[3].GroupKey = ""                               // the run's id then
	list[4].GroupKey = string(list[3].RunID)
	list[3].OutboxRef.ID = list[0].OutboxRef.ID // published again
	publish(t, open(t, client, nil), list)
	hex := regexp.MustCompile(`^[0-9a-f]{32}$`)
	var groups, ids []string
	for _, e := range client.sends[0].Entries {
		groups, ids = append(groups, *e.MessageGroupId), append(ids, *e.MessageDeduplicationId)
		if !hex.MatchString(*e.MessageGroupId) || !hex.MatchString(*e.MessageDeduplicationId) {
			t.Errorf("group %q, deduplication id %q", *e.MessageGroupId, *e.MessageDeduplicationId)
		}
		equal(t, "delay", e.DelaySeconds, int32(0))
	}
	equal(t, "wakeups of one key share a group", groups[0], groups[1])
	equal(t, "a wakeup without a key is in its run's group", groups[3], groups[4])
	equal(t, "groups", len(slices.Compact(slices.Sorted(slices.Values(groups)))), 3)
	equal(t, "one outbox row has one deduplication id", ids[3], ids[0])
	equal(t, "deduplication ids", len(slices.Compact(slices.Sorted(slices.Values(ids)))), 4)
	// A golden value: an id that changes with a release would let repeated publications through, and split groups.
	equal(t, "group of orders/orders-run-0", groups[0], "28cb1bc9d808b4fd3cbd87bcd58027fb")
}

func TestPublish_FIFO_SameKeyInTwoQueues_GroupsDiffer(t *testing.T) {
	t.Parallel()
	// Parts are length-prefixed: moving characters between queue and key makes another group.
	client := newFakeSQS()
	transport, err := sqstransport.New(client, map[runlane.QueueName]string{
		"ab": "https://sqs.eu-west-1.amazonaws.com/1/ab.fifo", "a": "https://sqs.eu-west-1.amazonaws.com/1/a.fifo",
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, transport, []lane.PublishAttempt{
		{OutboxRef: lane.OutboxRef{ID: "1"}, Wakeup: wakeup("ab", "r"), GroupKey: "c"},
		{OutboxRef: lane.OutboxRef{ID: "2"}, Wakeup: wakeup("a", "r"), GroupKey: "bc"},
	})
	if *client.sends[0].Entries[0].MessageGroupId == *client.sends[1].Entries[0].MessageGroupId {
		t.Error("two queues share a group")
	}
}

func TestPublish_FIFO_FailedRequest_StopsTheQueueToKeepOrder(t *testing.T) {
	t.Parallel()
	client := newFakeSQS()
	requests := 0
	client.onSend = func(in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, bool, error) {
		requests++
		return nil, requests == 2, &types.RequestThrottled{}
	}
	outcomes := summary(publish(t, open(t, client, nil), attempts("orders", 35)))
	want := slices.Concat(slices.Repeat([]string{"published"}, 10), slices.Repeat([]string{"transport_unavailable"}, 25))
	equal(t, "outcomes", outcomes, want)
	equal(t, "requests", requests, 2)
	for i, m := range client.left(orderURL) {
		if w, err := sqstransport.ParseMessage(m.body); err != nil || string(w.RunID) != fmt.Sprintf("orders-run-%d", i) {
			t.Fatalf("message %d is %q", i, m.body)
		}
	}
}

func TestPublish_Standard_GroupsOnlyWhenFairnessIsAskedFor(t *testing.T) {
	t.Parallel()
	for _, fair := range []bool{false, true} {
		client := newFakeSQS()
		publish(t, open(t, client, &sqstransport.Options{Fair: fair}), attempts("mail", 1))
		equal(t, "has a group", client.sends[0].Entries[0].MessageGroupId != nil, fair)
		equal(t, "has a deduplication id", client.sends[0].Entries[0].MessageDeduplicationId != nil, false)
	}
}

func TestHazard13_SendWakeups_DelayIsRoundedUpAndBounded(t *testing.T) {
	t.Parallel()
	client := newFakeSQS()
	transport := open(t, client, nil)
	delays := []time.Duration{
		-time.Second, 0, 1, time.Second, time.Second + 1, 1500 * time.Millisecond, sqstransport.MaxDelay - 1, sqstransport.MaxDelay,
		sqstransport.MaxDelay + 1,
	}
	var list []lane.DelayedWakeup
	for i, d := range delays {
		list = append(list, lane.DelayedWakeup{Wakeup: wakeup("mail", fmt.Sprintf("run-%d", i)), Delay: d})
	}
	list = append(list, lane.DelayedWakeup{Wakeup: wakeup("orders", "fifo"), Delay: time.Second},
		lane.DelayedWakeup{Wakeup: wakeup("none", "unbound"), Delay: time.Second})
	outcomes, err := transport.SendWakeups(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "outcomes", summary(outcomes), append(slices.Repeat([]string{"published"}, 8),
		"transport_publish_failed!", "transport_publish_failed!", "transport_unavailable"))
	var seconds []int32
	for _, e := range client.sends[0].Entries {
		seconds = append(seconds, e.DelaySeconds)
	}
	equal(t, "seconds", seconds, []int32{0, 0, 1, 1, 2, 2, 900, 900})
}

func TestMaxDelay_ByKindOfQueue(t *testing.T) {
	t.Parallel()
	transport := open(t, newFakeSQS(), nil)
	for queue, want := range map[runlane.QueueName]time.Duration{"mail": 15 * time.Minute, "orders": 0, "none": 0} {
		equal(t, string(queue), transport.MaxDelay(queue), want)
	}
}
