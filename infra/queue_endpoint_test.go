//go:build e2e

package infra_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go/infra"
)

// Only a service that keeps the whole definition of a queue passes these: LocalStack, which make e2e has, does; ElasticMQ, which
// make test has, does not.

func TestCreateQueue_Twice_IsOneQueueWithItsDeadLetterQueue(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"", ".fifo"} {
		t.Run("suffix "+suffix, func(t *testing.T) {
			t.Parallel()
			ctx, b := setup(t)
			first := b.createQueue(t, ctx, b.name+suffix)
			second := b.createQueue(t, ctx, b.name+suffix)
			if diff := cmp.Diff(first, second); diff != "" {
				t.Errorf("created twice (-first +second):\n%s", diff)
			}
			for what, value := range map[string]string{"URL": first.URL, "ARN": first.ARN} {
				if !strings.HasSuffix(value, b.name+suffix) {
					t.Errorf("%s %q does not end in the queue's name", what, value)
				}
			}
			read, err := b.queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
				QueueUrl:       aws.String(first.DeadLetterURL),
				AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameRedriveAllowPolicy},
			})
			if err != nil {
				t.Fatal(err)
			}
			want, err := infra.RedriveAllowPolicy(first.ARN)
			if err != nil {
				t.Fatal(err)
			}
			if got := read.Attributes["RedriveAllowPolicy"]; got != want {
				t.Errorf("redrive allow policy %q, want %q", got, want)
			}
		})
	}
}

func TestCreateQueue_OtherQueueOfThatName_IsRefused(t *testing.T) {
	t.Parallel()
	ctx, b := setup(t)
	b.createQueue(t, ctx, b.name)
	_, err := infra.CreateQueue(ctx, b.queues, b.name, &infra.QueueOptions{FunctionTimeout: 30 * time.Second})
	if !errors.Is(err, infra.ErrQueueDiffers) || !strings.Contains(err.Error(), `VisibilityTimeout is "360", want "180"`) {
		t.Errorf("error %v, want ErrQueueDiffers about the visibility timeout", err)
	}
}

func TestCreateQueue_MessageReceivedTooOften_ReachesTheDeadLetterQueue(t *testing.T) {
	t.Parallel()
	ctx, b := setup(t)
	queue := b.createQueue(t, ctx, b.name)
	if _, err := b.queues.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(queue.URL), MessageBody: aws.String("poison")}); err != nil {
		t.Fatal(err)
	}
	for try := range infra.MaxReceiveCount {
		got := b.receive(t, ctx, queue.URL, 10)
		if len(got) != 1 {
			t.Fatalf("receipt %d gave %d messages, want 1", try+1, len(got))
		}
		if _, err := b.queues.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
			QueueUrl: aws.String(queue.URL), ReceiptHandle: got[0].ReceiptHandle, VisibilityTimeout: 0,
		}); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.receive(t, ctx, queue.URL, 1); len(got) != 0 {
		t.Fatalf("the message was received once more than %d times", infra.MaxReceiveCount)
	}
	got := b.receive(t, ctx, queue.DeadLetterURL, 10)
	if len(got) != 1 || aws.ToString(got[0].Body) != "poison" {
		t.Errorf("dead-letter queue holds %d messages, want the poison one", len(got))
	}
}

func TestDeleteQueue_Twice_IsNoError(t *testing.T) {
	t.Parallel()
	ctx, b := setup(t)
	queue := b.createQueue(t, ctx, b.name)
	for range 2 {
		if err := infra.DeleteQueue(ctx, b.queues, queue); err != nil {
			t.Fatal(err)
		}
	}
	var missing *sqstypes.QueueDoesNotExist
	for _, name := range []string{queue.Name, queue.DeadLetterName} {
		if _, err := b.queues.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(name)}); !errors.As(err, &missing) {
			t.Errorf("queue %s after deletion: error %v, want QueueDoesNotExist", name, err)
		}
	}
}

func (b bundle) createQueue(t *testing.T, ctx context.Context, name string) infra.Queue {
	t.Helper()
	queue, err := infra.CreateQueue(ctx, b.queues, name, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := infra.DeleteQueue(context.WithoutCancel(ctx), b.queues, queue); err != nil {
			t.Error(err)
		}
	})
	return queue
}

func (b bundle) receive(t *testing.T, ctx context.Context, url string, wait int32) []sqstypes.Message {
	t.Helper()
	out, err := b.queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: aws.String(url), MaxNumberOfMessages: 10, WaitTimeSeconds: wait,
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Messages
}
