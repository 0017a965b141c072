package infra

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go/functions/eventsource"
)

func TestQueueAttributes(t *testing.T) {
	t.Parallel()
	const redrive = `{"deadLetterTargetArn":"arn:dead","maxReceiveCount":5}`
	standard := map[string]string{
		"MessageRetentionPeriod": "1209600", "SqsManagedSseEnabled": "true", "VisibilityTimeout": "360", "RedrivePolicy": redrive,
	}
	cases := map[string]struct {
		name    string
		options *QueueOptions
		want    map[string]string
	}{
		"standard":      {"orders", nil, standard},
		"empty options": {"orders", &QueueOptions{}, standard},
		"longest function": {"orders", &QueueOptions{FunctionTimeout: 15 * time.Minute}, map[string]string{
			"MessageRetentionPeriod": "1209600", "SqsManagedSseEnabled": "true", "VisibilityTimeout": "5400", "RedrivePolicy": redrive,
		}},
		"FIFO": {"orders.fifo", &QueueOptions{FunctionTimeout: 10 * time.Second}, map[string]string{
			"MessageRetentionPeriod": "1209600", "SqsManagedSseEnabled": "true", "VisibilityTimeout": "60",
			"RedrivePolicy": `{"deadLetterTargetArn":"arn:dead","maxReceiveCount":15}`,
			"FifoQueue":     "true", "ContentBasedDeduplication": "false",
			"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId",
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := QueueAttributes(c.name, "arn:dead", c.options)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("attributes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestQueueAttributes_DefaultTimeoutIsTheLocalFunctions(t *testing.T) {
	t.Parallel()
	if defaultFunctionTimeout != eventsource.DefaultTimeout {
		t.Errorf("%s, local functions have %s", defaultFunctionTimeout, eventsource.DefaultTimeout)
	}
}

func TestQueueAttributes_TimeoutOutOfRange_IsRefused(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{-time.Second, time.Millisecond, 1500 * time.Millisecond, 15*time.Minute + time.Second} {
		if got, err := QueueAttributes("orders", "arn:dead", &QueueOptions{FunctionTimeout: timeout}); err == nil {
			t.Errorf("timeout %s gave %v, want an error", timeout, got)
		}
	}
}

func TestDeadLetterAttributes_HaveNoRedriveAndNoVisibility(t *testing.T) {
	t.Parallel()
	want := map[string]string{"MessageRetentionPeriod": "1209600", "SqsManagedSseEnabled": "true"}
	if diff := cmp.Diff(want, DeadLetterAttributes("orders-dead-letters")); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
}

func TestDeadLetterName_KeepsTheKind(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"orders": "orders-dead-letters", "orders.fifo": "orders-dead-letters.fifo"} {
		if got := DeadLetterName(name); got != want || isFIFO(got) != isFIFO(name) {
			t.Errorf("DeadLetterName(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestQueueFaults_ComparesByMeaning(t *testing.T) {
	t.Parallel()
	want, err := QueueAttributes("orders", "arn:dead", nil)
	if err != nil {
		t.Fatal(err)
	}
	with := func(name, value string) map[string]string {
		got := map[string]string{"QueueArn": "arn:orders"}
		for k, v := range want {
			got[k] = v
		}
		got[name] = value
		return got
	}
	cases := map[string]struct {
		got    map[string]string
		faults []string
	}{
		"equal":               {with("VisibilityTimeout", "360"), nil},
		"redrive as text":     {with("RedrivePolicy", `{ "maxReceiveCount":"5", "deadLetterTargetArn":"arn:dead" }`), nil},
		"capital truth":       {with("SqsManagedSseEnabled", "True"), nil},
		"other visibility":    {with("VisibilityTimeout", "30"), []string{`VisibilityTimeout is "30", want "360"`}},
		"redrive elsewhere":   {with("RedrivePolicy", `{"deadLetterTargetArn":"arn:other","maxReceiveCount":5}`), []string{`RedrivePolicy is "{\"deadLetterTargetArn\":\"arn:other\",\"maxReceiveCount\":5}", want "{\"deadLetterTargetArn\":\"arn:dead\",\"maxReceiveCount\":5}"`}},
		"no redrive":          {with("RedrivePolicy", ""), []string{`RedrivePolicy is "", want "{\"deadLetterTargetArn\":\"arn:dead\",\"maxReceiveCount\":5}"`}},
		"two at once, sorted": {map[string]string{"RedrivePolicy": want["RedrivePolicy"], "VisibilityTimeout": "360"}, []string{`MessageRetentionPeriod is "", want "1209600"`, `SqsManagedSseEnabled is "", want "true"`}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.faults, queueFaults(want, c.got)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}
