package sqstransport_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqstransport"
)

const defaultURL = "https://sqs.eu-west-1.amazonaws.com/123456789012/default"

// bind binds queues to any URLs.
func bind(t *testing.T, client sqstransport.API, urls map[runlane.QueueName]string) *sqstransport.Transport {
	t.Helper()
	transport, err := sqstransport.New(client, urls, &sqstransport.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return transport
}

func TestCarrier_IsTheQueuesOwnBindingOrTheDefault(t *testing.T) {
	t.Parallel()
	type urls = map[runlane.QueueName]string
	for name, tc := range map[string]struct {
		bound   urls
		queue   runlane.QueueName
		carrier runlane.QueueName // "": none
	}{
		"own":                          {urls{"default": defaultURL, "mail": mailURL}, "mail", "mail"},
		"default":                      {urls{"default": defaultURL, "mail": mailURL}, "default", "default"},
		"not bound, with a default":    {urls{"default": defaultURL, "mail": mailURL}, "audio", "default"},
		"not bound, without a default": {urls{"mail": mailURL}, "audio", ""},
		"not bound, the default FIFO":  {urls{"default": orderURL}, "audio", ""},
		"the default FIFO itself":      {urls{"default": orderURL}, "default", "default"},
		"bound to the URL of another":  {urls{"mail": mailURL, "post": mailURL}, "post", "mail"},
		"FIFO, bound to another's URL": {urls{"orders": orderURL, "refunds": orderURL}, "refunds", "orders"},
		"bound to the default's URL":   {urls{"default": defaultURL, "mail": defaultURL}, "mail", "default"},
		"named before the default":     {urls{"default": defaultURL, "audio": defaultURL}, "audio", "default"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			transport := bind(t, newFakeSQS(), tc.bound)
			carrier, ok := transport.Carrier(tc.queue)
			equal(t, "carrier", []any{carrier, ok}, []any{tc.carrier, tc.carrier != ""})
			carrier, ok = lane.CarrierOf(transport, tc.queue)
			if ok != (tc.carrier != "") || ok && carrier != tc.carrier {
				t.Errorf("CarrierOf: %q, %t", carrier, ok)
			}
			_, _, err := transport.Depth(t.Context(), tc.queue)
			equal(t, "queue without a carrier", errors.Is(err, runlane.ErrConfigurationInvalid), tc.carrier == "")
		})
	}
}

// Wakeups of queues that share an SQS queue travel in one request, each with the name of its queue.
func TestPublish_QueuesThatShare_TravelTogether(t *testing.T) {
	t.Parallel()
	client := newFakeSQS()
	transport := bind(t, client, map[runlane.QueueName]string{"default": defaultURL, "post": mailURL, "mail": mailURL})
	list := slices.Concat(attempts("default", 2), attempts("audio", 3), attempts("mail", 2), attempts("post", 1))
	equal(t, "outcomes", summary(publish(t, transport, list)), slices.Repeat([]string{"published"}, len(list)))
	equal(t, "requests", len(client.sends), 2)
	equal(t, "messages", []int{len(client.left(defaultURL)), len(client.left(mailURL))}, []int{5, 3})
	queues := map[runlane.QueueName]int{}
	for _, message := range slices.Concat(client.left(defaultURL), client.left(mailURL)) {
		w, err := sqstransport.ParseMessage(message.body)
		if err != nil {
			t.Fatal(err)
		}
		queues[w.Queue]++
	}
	equal(t, "queues", queues, map[runlane.QueueName]int{"default": 2, "audio": 3, "mail": 2, "post": 1})

	equal(t, "longest delay", transport.MaxDelay("audio"), sqstransport.MaxDelay)
	later := lane.DelayedWakeup{Wakeup: wakeup("audio", "later"), Delay: time.Minute}
	outcomes, err := transport.SendWakeups(t.Context(), []lane.DelayedWakeup{later})
	if err != nil || outcomes[0].Type != lane.Published || len(client.left(defaultURL)) != 6 {
		t.Errorf("a delayed wakeup: %+v %v", outcomes, err)
	}
}

// A key of one queue does not wait for the same key of another.
func TestPublish_FIFOQueuesThatShare_HaveSeparateGroups(t *testing.T) {
	t.Parallel()
	client := newFakeSQS()
	transport := bind(t, client, map[runlane.QueueName]string{"orders": orderURL, "refunds": orderURL})
	list := slices.Concat(attempts("orders", 1), attempts("refunds", 1))
	for i := range list {
		list[i].GroupKey = "customer-1"
	}
	publish(t, transport, list)
	left := client.left(orderURL)
	if len(left) != 2 || left[0].group == left[1].group || left[0].group == "" {
		t.Errorf("messages are %+v", left)
	}
}

func TestStart_QueuesThatShare_AreAskedAboutOnce(t *testing.T) {
	t.Parallel()
	client := newFakeSQS()
	var mu sync.Mutex
	asked := map[string]int{}
	client.onAttributes = func(in *sqs.GetQueueAttributesInput) (map[string]string, error) {
		mu.Lock()
		defer mu.Unlock()
		asked[*in.QueueUrl]++
		return map[string]string{}, nil
	}
	transport := bind(t, client, map[runlane.QueueName]string{"default": defaultURL, "mail": mailURL, "post": mailURL})
	if err := transport.Start(t.Context(), lane.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	equal(t, "requests", asked, map[string]int{defaultURL: 1, mailURL: 1})
}

// One poll serves all queues of an SQS queue, also those that were not named.
func TestReceive_QueuesThatShare_ArePolledOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newFakeSQS()
		transport := bind(t, client, map[runlane.QueueName]string{"default": defaultURL})
		publish(t, transport, slices.Concat(attempts("audio", 5), attempts("mail", 4), attempts("post", 1)))
		var mu sync.Mutex
		got := map[runlane.QueueName]int{}
		stop := receiving(t, transport, 10, func(_ context.Context, w lane.Wakeup) error {
			mu.Lock()
			defer mu.Unlock()
			got[w.Queue]++
			return nil
		}, "audio", "mail")
		time.Sleep(25 * time.Second)
		receives, _, _ := client.counts()
		stop()
		equal(t, "wakeups", got, map[runlane.QueueName]int{"audio": 5, "mail": 4, "post": 1})
		if receives > 4 {
			t.Errorf("%d polls in 25 s of one SQS queue", receives)
		}
		equal(t, "messages left", len(client.left(defaultURL)), 0)
	})
}

// Another program sends a queue's wakeups by another binding: they are handled, and the log says so once.
func TestReceive_WakeupsByAnotherBinding_AreToldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newFakeSQS()
		var text bytes.Buffer
		here, err := sqstransport.New(client, map[runlane.QueueName]string{"default": defaultURL, "mail": mailURL},
			&sqstransport.Options{Logger: slog.New(slog.NewTextHandler(&text, nil))})
		if err != nil {
			t.Fatal(err)
		}
		elsewhere := bind(t, client, map[runlane.QueueName]string{"default": defaultURL})
		publish(t, elsewhere, slices.Concat(attempts("mail", 3), attempts("audio", 2)))
		var handled atomic.Int32
		stop := receiving(t, here, 10, func(context.Context, lane.Wakeup) error {
			handled.Add(1)
			return nil
		}, "default", "mail")
		time.Sleep(25 * time.Second)
		stop()
		equal(t, "handled", handled.Load(), int32(5))
		const advice = "give all programs of the environment the same RUNLANE_QUEUES"
		if said := strings.Count(text.String(), advice); said != 1 {
			t.Errorf("said %d times in\n%s", said, text.String())
		}
	})
}
