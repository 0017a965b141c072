package dynamostore_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// The price of looking at a queue is that of its active runs: other queues' cost their keys, finished runs nothing. It is stated
// with core's Queues.Stats.
func TestQueueStats_Requests(t *testing.T) {
	t.Parallel()
	client := awstest.DynamoDB(t)
	store := dynamostore.New(client, awstest.Table(t, client), nil)
	l, err := lane.New(store, memlane.NewTransport(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := core.Open(t.Context(), l, &core.Options{Environment: "stats", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rt.Close(t.Context()) }()
	task := runlane.NewTask[int]("task", nil)
	call := func(queue runlane.QueueName, delay time.Duration) *runlane.Run {
		result, err := rt.Trigger(t.Context(), task.With(1), &runlane.TriggerOptions{Queue: runlane.Queue{Name: queue}, Delay: delay})
		if err != nil {
			t.Fatal(err)
		}
		return result.Run
	}
	for range 3 {
		call("wanted", 0)
		call("wanted", time.Hour)
		call("other", 0)
		if _, err := rt.Runs().Cancel(t.Context(), call("wanted", 0).ID, nil); err != nil {
			t.Fatal(err)
		}
	}
	before := store.Stats()
	stats, err := rt.Queues().Stats(t.Context(), "wanted")
	if err != nil {
		t.Fatal(err)
	}
	if stats.Waiting != 3 || stats.Delayed != 3 || stats.AtLeast {
		t.Errorf("stats are %+v", stats)
	}
	after := store.Stats()
	for operation, want := range map[string]dynamostore.Usage{
		"list runs":   {Requests: 56, ReadUnits: 28}, // 7 kinds of markers in 8 shards, none of them with a page of rows
		"read runs":   {Requests: 1, ReadUnits: 6},   // those of the queue alone
		"read pauses": {Requests: 1, ReadUnits: 0.5},
	} {
		got := after.Operations[operation]
		got.Requests -= before.Operations[operation].Requests
		got.ReadUnits -= before.Operations[operation].ReadUnits
		if got != want {
			t.Errorf("%s: %+v, want %+v", operation, got, want)
		}
	}
	if total := after.Requests - before.Requests; total != 58 || after.WriteUnits != before.WriteUnits {
		t.Errorf("%d requests, %v units written", total, after.WriteUnits-before.WriteUnits)
	}
}
