package crashtest

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/internal/proof/awstest"
)

// triggering is a scenario of one call. With a key, the caller calls again, and there is one run.
func triggering(name string, call runlane.Call, options *runlane.TriggerOptions) scenario {
	return scenario{
		name: name,
		act:  func(ctx context.Context, c *child) error { return c.trigger(ctx, call, options) },
		judge: func(a *account) {
			a.all(runlane.StatusSucceeded)
			a.tries(1)
		},
	}
}

// keyed are the keys of a run that owns two.
func keyed() *runlane.TriggerOptions {
	return &runlane.TriggerOptions{IdempotencyKey: "order", SingletonKey: "customer"}
}

func triggerScenarios() []scenario {
	big := act{Name: "big", Bulk: noise(3000)}
	plain := triggering("trigger", play.With(act{Name: "a"}), nil)
	plain.options = hooked

	keys := triggering("trigger with keys", play.With(big), keyed())
	keys.repeat = func(w *world) {
		w.trigger(play.With(big), keyed())
		w.deliver()
		w.fresh(play.With(act{Name: "b"}), &runlane.TriggerOptions{SingletonKey: "customer"})
	}
	keys.judge = func(a *account) {
		a.all(runlane.StatusSucceeded)
		a.count(2)
	}

	full := triggering("trigger on a full queue", lined.With(act{Name: "a"}), nil)
	full.prepare = func(w *world) { w.trigger(lined.With(act{Name: "first"}), nil) }
	full.repeat = slotIsFree
	full.judge = func(a *account) { a.all(runlane.StatusSucceeded) }

	slot := triggering("trigger with a slot", lined.With(act{Name: "a"}), nil)
	slot.repeat = slotIsFree

	refused := triggering("trigger, the wakeup is refused", play.With(act{Name: "a"}), nil)
	refused.prepare = func(w *world) { w.refusing("InternalFailureOfThisMessage") }

	impossible := triggering("trigger, the wakeup is impossible", play.With(act{Name: "a"}), nil)
	impossible.prepare = func(w *world) { w.refusing("InvalidMessageContents") }
	impossible.repeat = func(w *world) {
		_, err := w.rt.DeadLetters().RequeueAll(w.t.Context(), &core.BulkOptions{AllRuns: true})
		w.must(err)
		w.deliver()
	}

	return []scenario{
		plain, keys, full, slot, refused, impossible,
		triggering("trigger delayed", play.With(act{Name: "a"}), &runlane.TriggerOptions{Delay: 30 * time.Second}),
		triggering("trigger deferred", play.With(act{Name: "a"}), &runlane.TriggerOptions{Deferred: true}),
		{
			name: "trigger a batch",
			act: func(ctx context.Context, c *child) error {
				results, err := c.rt.TriggerBatch(ctx, []core.BatchItem{
					{Call: play.With(act{Name: "a"})}, {Call: lined.With(act{Name: "b"})},
					{Call: play.With(act{Name: "c"}), Options: &runlane.TriggerOptions{Delay: 10 * time.Second}},
				})
				for _, r := range results {
					if r.Result != nil {
						c.promise(r.Result.Run.ID)
					}
				}
				return err
			},
			repeat: slotIsFree,
			judge:  func(a *account) { a.all(runlane.StatusSucceeded) },
		},
		{
			name: "run now",
			act: func(ctx context.Context, c *child) error {
				result, err := c.rt.RunNow(ctx, play.With(act{Name: "a"}), nil)
				if err == nil {
					c.promise(result.Run.ID)
				}
				return err
			},
			judge: func(a *account) { a.all(runlane.StatusSucceeded) },
		},
		{
			name: "relay",
			prepare: func(w *world) {
				w.stream(w.trigger(play.With(act{Name: "a"}), &runlane.TriggerOptions{Deferred: true}))
			},
			act: func(ctx context.Context, c *child) error {
				var event events.DynamoDBEvent
				if err := json.Unmarshal([]byte(c.Arguments["event"]), &event); err != nil {
					return err
				}
				response, err := functions.Relay(c.rt)(ctx, event)
				if err == nil && len(response.BatchItemFailures) == 0 {
					c.trap.mark("the relay's answer")
				}
				return err
			},
			judge: func(a *account) {
				a.all(runlane.StatusSucceeded)
				a.tries(1)
			},
		},
	}
}

// stream gives the child what the table's stream shows of a new run.
func (w *world) stream(id runlane.RunID) {
	w.t.Helper()
	out, err := w.client.Query(w.t.Context(), &dynamodb.QueryInput{
		TableName: &w.table, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("pk = :pk"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":pk": &types.AttributeValueMemberS{Value: string(w.environment) + ":run:" + string(id)},
		},
	})
	w.must(err)
	var event events.DynamoDBEvent
	for _, item := range out.Items {
		if strings.HasPrefix(textOf(item["sk"]), "log:") {
			event.Records = append(event.Records, events.DynamoDBEventRecord{
				EventName: "INSERT", Change: events.DynamoDBStreamRecord{SequenceNumber: "1", NewImage: awstest.StreamImage(item)},
			})
		}
	}
	text, err := json.Marshal(event)
	w.must(err)
	w.arguments["event"] = string(text)
}
