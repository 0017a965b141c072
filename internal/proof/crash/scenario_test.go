package crash_test

import (
	"context"
	"encoding/json"
	"slices"
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
	"github.com/runlane/runlane-go/internal/proof/crash"
)

// scenarios are those of all lanes, and those of SQS and of functions.
func scenarios() []crash.Scenario {
	plain, line := crash.Play.With(crash.Act{Name: "a"}), crash.Lined.With(crash.Act{Name: "a"})

	refused := crash.Triggering("trigger, the wakeup is refused", plain, nil)
	refused.Prepare = refusing("InternalFailureOfThisMessage")

	impossible := crash.Triggering("trigger, the wakeup is impossible", plain, nil)
	impossible.Prepare = refusing("InvalidMessageContents")
	impossible.Repeat = func(p *crash.Process) {
		_, err := p.Runtime.DeadLetters().RequeueAll(context.Background(), &core.BulkOptions{AllRuns: true})
		p.Must(err)
		p.Deliver()
	}

	relay := crash.Delivering("relay")
	relay.Prepare = func(p *crash.Process) { stream(p, p.Trigger(plain, &runlane.TriggerOptions{Deferred: true})) }
	relay.Act = func(ctx context.Context, p *crash.Process) error {
		var event events.DynamoDBEvent
		if err := json.Unmarshal([]byte(p.Arguments["event"]), &event); err != nil {
			return err
		}
		response, err := functions.Relay(p.Runtime)(ctx, event)
		if err == nil && len(response.BatchItemFailures) == 0 {
			p.Mark("the relay's answer")
		}
		return err
	}

	early := crash.Delivering("delivery before its time")
	early.Prepare = func(p *crash.Process) {
		p.Trigger(plain, &runlane.TriggerOptions{Delay: time.Minute})
		l := p.Lane.(*awsLane)
		l.each(func(of *queue, now time.Time) {
			for _, m := range of.held {
				m.visible = now
			}
		})
	}

	foreign := crash.Delivering("delivery without a handler", plain)
	foreign.Options = func(p *crash.Process, o *core.Options) {
		if p.Dies() {
			o.Handlers, o.Queues = nil, []runlane.Queue{runlane.DefaultQueue, crash.Narrow}
		}
	}

	refusedSlot := crash.Delivering("delivery without a free slot")
	refusedSlot.Repeat, refusedSlot.Prepare = crash.SlotIsFree, func(p *crash.Process) {
		first := p.Trigger(line, nil)
		p.Advance(crash.Between)
		p.Trigger(line, nil) // takes the slot
		l := p.Lane.(*awsLane)
		l.each(func(of *queue, now time.Time) { // the first one's message alone is visible
			for _, m := range of.held {
				if !strings.Contains(m.body, string(first)) {
					m.visible = now.Add(visibility)
				}
			}
		})
	}

	unknowing := crash.Delivering("worker without the handler", plain)
	unknowing.Options = func(p *crash.Process, o *core.Options) {
		if p.Dies() {
			o.Handlers, o.Queues = o.Handlers[1:], []runlane.Queue{runlane.DefaultQueue}
		}
	}
	unknowing.Act = func(ctx context.Context, p *crash.Process) error {
		options := &core.WorkOptions{NoTick: true, Queues: []runlane.QueueName{runlane.DefaultQueue.Name}}
		return p.Work(ctx, options, 50*time.Millisecond, func(context.Context, *crash.Process) (bool, error) {
			_, answered := p.Lane.(*awsLane).answered.Load("ChangeMessageVisibilityBatch")
			return answered, nil
		})
	}
	return slices.Concat(crash.Scenarios(), []crash.Scenario{
		refused, impossible, relay, early, foreign, refusedSlot, unknowing,
	})
}

// refusing lets SQS refuse every message with a code, for a minute.
func refusing(code string) func(p *crash.Process) {
	return func(p *crash.Process) {
		l := p.Lane.(*awsLane)
		l.each(func(of *queue, now time.Time) { of.refuses, of.until = code, now.Add(time.Minute) })
	}
}

// stream gives the child what the table's stream shows of a new run.
func stream(p *crash.Process, id runlane.RunID) {
	p.TB.Helper()
	l := p.Lane.(*awsLane)
	out, err := l.client.Query(context.Background(), &dynamodb.QueryInput{
		TableName: &l.table, ConsistentRead: aws.Bool(true), KeyConditionExpression: aws.String("pk = :pk"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":pk": &types.AttributeValueMemberS{Value: string(l.environment) + ":run:" + string(id)},
		},
	})
	p.Must(err)
	var event events.DynamoDBEvent
	for _, item := range out.Items {
		if strings.HasPrefix(textOf(item["sk"]), "log:") {
			event.Records = append(event.Records, events.DynamoDBEventRecord{
				EventName: "INSERT", Change: events.DynamoDBStreamRecord{SequenceNumber: "1", NewImage: awstest.StreamImage(item)},
			})
		}
	}
	text, err := json.Marshal(event)
	p.Must(err)
	p.Arguments["event"] = string(text)
}
