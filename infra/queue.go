package infra

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const (
	// defaultFunctionTimeout is the default of [QueueOptions].FunctionTimeout.
	defaultFunctionTimeout = 60 * time.Second
	// maxFunctionTimeout is Lambda's limit.
	maxFunctionTimeout = 15 * time.Minute
	// VisibilityFactor is the visibility timeout in function timeouts. AWS recommends 6, so that a message does not
	// reappear while throttled or retried invocations work on it.
	VisibilityFactor = 6
	// MaxReceiveCount is how often a message of a standard queue is received before it moves to the dead-letter queue.
	MaxReceiveCount = 5
	// MaxFIFOReceiveCount is the same for a FIFO queue. If a batch of ten is one group and an invocation has time only
	// for the first record, the last record is received ten times before it starts.
	MaxFIFOReceiveCount = 10 + MaxReceiveCount
	// retention is how long queues keep a message: SQS's maximum.
	retention = 14 * 24 * time.Hour

	fifoSuffix       = ".fifo"
	deadLetterSuffix = "-dead-letters"
)

// ErrQueueDiffers means that a queue of that name exists with other attributes; match with errors.Is.
var ErrQueueDiffers = errors.New("queue differs from its definition")

// QueueOptions configure a work queue. nil means all defaults.
type QueueOptions struct {
	// FunctionTimeout is the timeout of the function that reads the queue, in whole seconds, at most 15 minutes. The
	// queue's visibility timeout is [VisibilityFactor] times that. 0 means a minute.
	FunctionTimeout time.Duration
}

// Queue is a created work queue with its dead-letter queue.
type Queue struct {
	Name, URL, ARN                               string
	DeadLetterName, DeadLetterURL, DeadLetterARN string
}

func isFIFO(name string) bool { return strings.HasSuffix(name, fifoSuffix) }

// DeadLetterName returns the name of a work queue's dead-letter queue. SQS requires a FIFO queue for a FIFO queue.
func DeadLetterName(name string) string {
	if base, fifo := strings.CutSuffix(name, fifoSuffix); fifo {
		return base + deadLetterSuffix + fifoSuffix
	}
	return name + deadLetterSuffix
}

// QueueAttributes returns the attributes of a work queue: messages are kept for 14 days, invisible for six function
// timeouts once received, dead letters after the fifth receipt ([MaxFIFOReceiveCount] for FIFO), and encrypted by SQS.
// A FIFO queue orders and deduplicates by message group, never by content. The error is for options out of range.
func QueueAttributes(name, deadLetterARN string, options *QueueOptions) (map[string]string, error) {
	timeout := defaultFunctionTimeout
	if options != nil && options.FunctionTimeout != 0 {
		timeout = options.FunctionTimeout
	}
	if timeout < time.Second || timeout > maxFunctionTimeout || timeout%time.Second != 0 {
		return nil, fmt.Errorf(
			"queue %q: function timeout %s: use whole seconds from 1s to %s",
			name,
			timeout,
			maxFunctionTimeout,
		)
	}
	receipts := MaxReceiveCount
	if isFIFO(name) {
		receipts = MaxFIFOReceiveCount
	}
	redrive, err := json.Marshal(redrivePolicy{DeadLetterTargetARN: deadLetterARN, MaxReceiveCount: receipts})
	if err != nil {
		return nil, fmt.Errorf("queue %q: redrive policy: %w", name, err)
	}
	attributes := sharedAttributes(name)
	attributes[string(types.QueueAttributeNameVisibilityTimeout)] = seconds(VisibilityFactor * timeout)
	attributes[string(types.QueueAttributeNameRedrivePolicy)] = string(redrive)
	return attributes, nil
}

// redrivePolicy has SQS's field names. A struct keeps their order, so that creating a queue twice sends the same text.
type redrivePolicy struct {
	DeadLetterTargetARN string `json:"deadLetterTargetArn"`
	MaxReceiveCount     int    `json:"maxReceiveCount"`
}

// DeadLetterAttributes returns the attributes of a dead-letter queue: like a work queue's, without redrive and with the
// default visibility timeout. [RedriveAllowPolicy] is added later.
func DeadLetterAttributes(name string) map[string]string { return sharedAttributes(name) }

// RedriveAllowPolicy returns a dead-letter queue's attribute that allows only its work queue to move messages there.
func RedriveAllowPolicy(workARN string) (string, error) {
	policy, err := json.Marshal(redriveAllowPolicy{RedrivePermission: "byQueue", SourceQueueARNs: []string{workARN}})
	if err != nil {
		return "", fmt.Errorf("queue %q: redrive allow policy: %w", workARN, err)
	}
	return string(policy), nil
}

type redriveAllowPolicy struct {
	RedrivePermission string   `json:"redrivePermission"`
	SourceQueueARNs   []string `json:"sourceQueueArns"`
}

// sharedAttributes are those of both queues. A dead-letter queue deduplicates by group too, or it would drop dead
// messages of different groups with the same ID.
func sharedAttributes(name string) map[string]string {
	attributes := map[string]string{
		string(types.QueueAttributeNameMessageRetentionPeriod): seconds(retention),
		string(types.QueueAttributeNameSqsManagedSseEnabled):   "true",
	}
	if !isFIFO(name) {
		return attributes
	}
	maps.Copy(attributes, map[string]string{
		string(types.QueueAttributeNameFifoQueue):                 "true",
		string(types.QueueAttributeNameContentBasedDeduplication): "false",
		string(types.QueueAttributeNameDeduplicationScope):        "messageGroup",
		string(types.QueueAttributeNameFifoThroughputLimit):       "perMessageGroupId",
	})
	return attributes
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

// CreateQueue makes sure that the work queue and its dead-letter queue exist as defined. It never changes an existing
// queue: if one differs, the error wraps [ErrQueueDiffers] and lists the differences.
func CreateQueue(ctx context.Context, client *sqs.Client, name string, options *QueueOptions) (Queue, error) {
	if _, err := QueueAttributes(name, "", options); err != nil {
		return Queue{}, err // before anything is created
	}
	queue := Queue{Name: name, DeadLetterName: DeadLetterName(name)}
	var err error
	queue.DeadLetterURL, queue.DeadLetterARN, err = createQueue(
		ctx,
		client,
		queue.DeadLetterName,
		DeadLetterAttributes(queue.DeadLetterName),
	)
	if err != nil {
		return Queue{}, err
	}
	attributes, err := QueueAttributes(name, queue.DeadLetterARN, options)
	if err != nil {
		return Queue{}, err
	}
	queue.URL, queue.ARN, err = createQueue(ctx, client, name, attributes)
	if err != nil {
		return Queue{}, err
	}
	return queue, allowRedrive(ctx, client, queue)
}

// allowRedrive runs last: the policy needs the work queue's ARN, and the work queue needs the dead-letter queue's.
func allowRedrive(ctx context.Context, client *sqs.Client, queue Queue) error {
	policy, err := RedriveAllowPolicy(queue.ARN)
	if err != nil {
		return err
	}
	_, err = client.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{
		QueueUrl:   aws.String(queue.DeadLetterURL),
		Attributes: map[string]string{string(types.QueueAttributeNameRedriveAllowPolicy): policy},
	})
	if err != nil {
		return fmt.Errorf("set redrive allow policy of queue %q: %w", queue.DeadLetterName, err)
	}
	return nil
}

func createQueue(
	ctx context.Context, client *sqs.Client, name string, attributes map[string]string,
) (url, arn string, err error) {
	created, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(name), Attributes: attributes})
	var exists *types.QueueNameExists
	switch {
	case errors.As(err, &exists):
		located, err := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(name)})
		if err != nil {
			return "", "", fmt.Errorf("look up queue %q: %w", name, err)
		}
		url = aws.ToString(located.QueueUrl)
	case err != nil:
		return "", "", fmt.Errorf("create queue %q: %w", name, err)
	default:
		url = aws.ToString(created.QueueUrl)
	}
	// Read back in both cases: the ARN is needed, and SQS compares only some attributes when a queue is created again.
	read, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl:       aws.String(url),
		AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		return "", "", fmt.Errorf("read attributes of queue %q: %w", name, err)
	}
	if faults := queueFaults(attributes, read.Attributes); len(faults) > 0 {
		return "", "", fmt.Errorf("queue %q: %w: %s; name another queue, or delete and recreate it",
			name, ErrQueueDiffers, strings.Join(faults, "; "))
	}
	return url, read.Attributes[string(types.QueueAttributeNameQueueArn)], nil
}

func queueFaults(want, got map[string]string) []string {
	var faults []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if name == string(types.QueueAttributeNameRedrivePolicy) {
			if !equalRedrive(want[name], got[name]) {
				faults = append(faults, fmt.Sprintf("%s is %q, want %q", name, got[name], want[name]))
			}
			continue
		}
		if !strings.EqualFold(got[name], want[name]) {
			faults = append(faults, fmt.Sprintf("%s is %q, want %q", name, got[name], want[name]))
		}
	}
	return faults
}

// equalRedrive compares by meaning: services format the policy's JSON differently, some with the count as a string.
func equalRedrive(want, got string) bool {
	a, okA := parseRedrive(want)
	b, okB := parseRedrive(got)
	return okA && okB && a == b
}

func parseRedrive(text string) (redrivePolicy, bool) {
	var raw struct {
		DeadLetterTargetARN string          `json:"deadLetterTargetArn"`
		MaxReceiveCount     json.RawMessage `json:"maxReceiveCount"`
	}
	if json.Unmarshal([]byte(text), &raw) != nil {
		return redrivePolicy{}, false
	}
	count, err := strconv.Atoi(strings.Trim(string(raw.MaxReceiveCount), `"`))
	return redrivePolicy{DeadLetterTargetARN: raw.DeadLetterTargetARN, MaxReceiveCount: count}, err == nil
}

// DeleteQueue deletes a work queue and its dead-letter queue with their messages. Missing queues are no error. For
// tests; AWS allows the names again after 60 seconds.
func DeleteQueue(ctx context.Context, client *sqs.Client, queue Queue) error {
	for _, url := range []string{queue.URL, queue.DeadLetterURL} {
		if url == "" {
			continue
		}
		_, err := client.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: aws.String(url)})
		var missing *types.QueueDoesNotExist
		if err != nil && !errors.As(err, &missing) {
			return fmt.Errorf("delete queue %s: %w", url, err)
		}
	}
	return nil
}
