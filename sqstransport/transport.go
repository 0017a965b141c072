// Package sqstransport is a [lane.Transport] on Amazon SQS: it publishes wakeups to standard and FIFO queues, delays
// them natively, receives them by long polling, and hands back what could not be handled. Messages carry no state, so
// losing, repeating or reordering them never corrupts a run.
//
// One Lambda function or many long-lived workers may read the same queues; both settle their records by the same rules:
// [Deliver] runs a batch, [Transport.HandBack] gives back what failed.
package sqstransport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"golang.org/x/sync/errgroup"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Defaults of [Options].
const (
	// DefaultTimeout bounds each request, the SDK's own retries included.
	DefaultTimeout = 10 * time.Second
	// DefaultVisibility is how long a received wakeup stays invisible to others before it is extended again.
	DefaultVisibility = time.Minute
)

// Limits of the service.
const (
	// MaxDelay is the longest native delay of a standard queue.
	MaxDelay = 15 * time.Minute
	// MaxMessageBytes bounds one message, and one batch of them.
	MaxMessageBytes = 1 << 20

	maxBatch = 10
	// maxRequests bounds the requests that one call has under way.
	maxRequests = 8
)

// API is the part of the SQS client that the transport uses; *sqs.Client implements it.
type API interface {
	SendMessageBatch(
		context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options),
	) (*sqs.SendMessageBatchOutput, error)
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(
		context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options),
	) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (
		*sqs.ChangeMessageVisibilityBatchOutput, error)
	GetQueueAttributes(
		context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options),
	) (*sqs.GetQueueAttributesOutput, error)
}

// Options of [New]. nil means the defaults.
type Options struct {
	// Fair sets a message group on wakeups of standard queues too, one a concurrency key, so that a tenant with many
	// runs does not delay the others. SQS charges extra for such messages.
	Fair bool
	// Logger defaults to that of the runtime which is opened on the lane.
	Logger *slog.Logger
	// Timeout of each request, on top of the wait of a long poll. 0 means DefaultTimeout.
	Timeout time.Duration
	// Visibility of received wakeups, in whole seconds from 3 s to 12 h. Receive extends it for as long as a handler
	// runs, so it only says how soon the wakeups of a process that died come again. 0 means DefaultVisibility.
	Visibility time.Duration
}

// Transport implements [lane.Transport], [lane.Receiver] and [HandBacker].
type Transport struct {
	lane.UnimplementedTransport

	api        API
	bindings   map[runlane.QueueName]*binding
	fair       bool
	logger     *slog.Logger
	timeout    time.Duration
	visibility time.Duration
}

var (
	_ lane.Transport = (*Transport)(nil)
	_ lane.Receiver  = (*Transport)(nil)
)

// binding is an SQS queue that carries the wakeups of one or more queues of the application.
type binding struct {
	name runlane.QueueName // default, or the first of them by name
	url  string
	fifo bool
}

// New binds queues of the application to the URLs of SQS queues; a URL that ends in ".fifo" is a FIFO queue. It makes
// no request. What is wrong with the bindings or the options is runlane.ErrConfigurationInvalid.
//
//	Queue                                              SQS queue that carries its wakeups
//	bound by its name                                  that one; several names may have the same URL
//	any other, runlane.DefaultQueue bound to standard  that of runlane.DefaultQueue
//	any other                                          none: the queue is not bound
//
// A FIFO queue carries only what is bound to it by name, because those who bind another queue expect no order.
func New(client API, queues map[runlane.QueueName]string, options *Options) (*Transport, error) {
	if options == nil {
		options = &Options{}
	}
	t := &Transport{
		api:        client,
		bindings:   make(map[runlane.QueueName]*binding, len(queues)),
		fair:       options.Fair,
		logger:     options.Logger,
		timeout:    options.Timeout,
		visibility: options.Visibility,
	}
	if t.timeout == 0 {
		t.timeout = DefaultTimeout
	}
	if t.visibility == 0 {
		t.visibility = DefaultVisibility
	}
	switch {
	case client == nil:
		return nil, invalid("transport has no SQS client", "pass an *sqs.Client to sqstransport.New", nil)
	case t.timeout < 0:
		return nil, invalid(
			fmt.Sprintf("transport has Timeout %s", t.timeout),
			"use a positive Timeout, or 0 for the default",
			nil,
		)
	case t.visibility < 3*time.Second || t.visibility > 12*time.Hour || t.visibility%time.Second != 0:
		return nil, invalid(
			fmt.Sprintf("transport has Visibility %s", t.visibility),
			"use whole seconds from 3s to 12h",
			nil,
		)
	case len(queues) == 0:
		return nil, invalid(
			"no queue is bound",
			"name at least one queue and its URL, in RUNLANE_QUEUES as name=url",
			nil,
		)
	}
	byURL := map[string]*binding{}
	names := slices.Sorted(maps.Keys(queues))
	slices.SortStableFunc(names, func(a, b runlane.QueueName) int { return defaultFirst(a) - defaultFirst(b) })
	for _, name := range names {
		b, err := newBinding(name, queues[name])
		if err != nil {
			return nil, err
		}
		if byURL[b.url] == nil {
			byURL[b.url] = b
		}
		t.bindings[name] = byURL[b.url]
	}
	return t, nil
}

// defaultFirst sorts the default queue before others: a binding that it shares has its name.
func defaultFirst(name runlane.QueueName) int {
	if name == runlane.DefaultQueue.Name {
		return 0
	}
	return 1
}

// carrier is the binding that carries a queue's wakeups. ok is false where there is none.
func (t *Transport) carrier(queue runlane.QueueName) (b *binding, ok bool) {
	if b, ok = t.bindings[queue]; ok {
		return b, true
	}
	b, ok = t.bindings[runlane.DefaultQueue.Name]
	return b, ok && !b.fifo
}

// Carrier implements [lane.Transport] by the table of [New]. Of queues that are bound to one URL it names
// runlane.DefaultQueue, or the first by name.
func (t *Transport) Carrier(queue runlane.QueueName) (binding runlane.QueueName, ok bool) {
	b, ok := t.carrier(queue)
	if !ok {
		return "", false
	}
	return b.name, true
}

func newBinding(name runlane.QueueName, address string) (*binding, error) {
	if err := name.Validate(); err != nil {
		return nil, &runlane.Error{
			Code:    runlane.ErrConfigurationInvalid,
			Message: "a queue has a bad name",
			Hint:    "correct the name in RUNLANE_QUEUES",
			Cause:   err,
		}
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || queueID(address) == "" {
		// The address is not repeated: it may have credentials in it.
		return nil, invalid(
			fmt.Sprintf("queue %q is bound to something that is no queue URL", name),
			"bind it to the URL that SQS gives (in RUNLANE_QUEUES), like "+
				"https://sqs.eu-west-1.amazonaws.com/123456789012/name",
			nil,
		)
	}
	return &binding{name: name, url: address, fifo: strings.HasSuffix(address, ".fifo")}, nil
}

// queueID is "<account>/<name>" of a queue's URL or ARN: what both have in common. "" for anything else.
func queueID(source string) string {
	separator := "/"
	if strings.HasPrefix(source, "arn:") {
		separator = ":"
	}
	parts := strings.Split(source, separator)
	if len(parts) < 5 {
		return ""
	}
	account, name := parts[len(parts)-2], parts[len(parts)-1]
	if account == "" || name == "" {
		return ""
	}
	return account + "/" + name
}

// BindingOf names the binding of an SQS queue, given its URL or its ARN. ok is false for a queue that is not bound. It
// makes no request.
func (t *Transport) BindingOf(queue string) (binding runlane.QueueName, ok bool) {
	if b := t.bindingOf(queue); b != nil {
		return b.name, true
	}
	return "", false
}

// bindingOf finds the binding of a queue's URL or ARN.
func (t *Transport) bindingOf(source string) *binding {
	id := queueID(source)
	if id == "" {
		return nil
	}
	for _, b := range t.bindings {
		if queueID(b.url) == id {
			return b
		}
	}
	return nil
}

// Capabilities depend on the kinds of the bound queues: FIFO queues group and order, standard queues delay.
func (t *Transport) Capabilities() lane.TransportCapabilities {
	c := lane.TransportCapabilities{DurableDelivery: true, OrderedDelivery: true}
	for _, b := range t.bindings {
		if b.fifo {
			c.MessageGrouping = true
		} else {
			c.NativeDelay, c.OrderedDelivery = true, false
		}
	}
	return c
}

// Queues lists the bindings by name.
func (t *Transport) Queues() []runlane.QueueName { return slices.Sorted(maps.Keys(t.bindings)) }

// Start checks that every bound queue exists and may be read. A missing queue is runlane.ErrConfigurationInvalid, and
// one that may not be read runlane.ErrTransportUnavailable: one error a queue, joined. An endpoint that cannot be
// reached, or does not accept the credentials, is runlane.ErrTransportUnavailable.
func (t *Transport) Start(ctx context.Context, o lane.StartOptions) error {
	t.logger = cmp.Or(t.logger, o.Logger)
	bindings := t.distinct(t.Queues())
	errs := make([]error, len(bindings))
	var group errgroup.Group
	group.SetLimit(maxRequests)
	for i, b := range bindings {
		group.Go(func() error {
			_, err := t.attributes(ctx, b, types.QueueAttributeNameQueueArn)
			errs[i] = startError(ctx, b, err)
			return nil
		})
	}
	_ = group.Wait() // its functions return none
	// All queues share one endpoint and one caller: an error of that kind is reported once.
	for i, err := range errs {
		if err != nil && runlane.CodeOf(err) != runlane.ErrConfigurationInvalid && faultOf(err) != faultDenied {
			return errs[i]
		}
	}
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// distinct are the bindings that carry the queues, each once. Queues that are not bound have none.
func (t *Transport) distinct(queues []runlane.QueueName) (bindings []*binding) {
	for _, name := range queues {
		if b, ok := t.carrier(name); ok && !slices.Contains(bindings, b) {
			bindings = append(bindings, b)
		}
	}
	return bindings
}

// Depth reads the approximate numbers of visible and of received messages of the SQS queue that carries the queue's
// wakeups, those of other queues that share it included; delayed ones do not count. A queue that is not bound is
// runlane.ErrConfigurationInvalid, every failure of the request runlane.ErrTransportUnavailable.
func (t *Transport) Depth(ctx context.Context, queue runlane.QueueName) (visible, inFlight int, err error) {
	b, ok := t.carrier(queue)
	if !ok {
		return 0, 0, t.unbound(queue)
	}
	const (
		waiting  = types.QueueAttributeNameApproximateNumberOfMessages
		received = types.QueueAttributeNameApproximateNumberOfMessagesNotVisible
	)
	attributes, err := t.attributes(ctx, b, waiting, received)
	if err != nil {
		return 0, 0, operationError(ctx, b, err)
	}
	numbers := [2]int{}
	for i, name := range []types.QueueAttributeName{waiting, received} {
		if numbers[i], err = strconv.Atoi(attributes[string(name)]); err != nil {
			return 0, 0, &runlane.Error{
				Code:      runlane.ErrTransportUnavailable,
				Message:   fmt.Sprintf("SQS did not say %s of queue %q", name, queue),
				Retryable: true,
				Cause:     err,
			}
		}
	}
	return numbers[0], numbers[1], nil
}

// The deployment template gives a queue the visibility timeout of six invocations, as AWS asks for, and makes none
// shorter than 30 s: a queue with less was not made for functions.
const (
	visibilityInvocations = 6
	shortestInvocation    = 30 * time.Second
)

// InvocationTime is how long a function may take that executes a queue's wakeups: a sixth of the queue's visibility timeout, 0 below 30 s. A queue
// that is not bound is runlane.ErrConfigurationInvalid, every failure of the request runlane.ErrTransportUnavailable.
func (t *Transport) InvocationTime(ctx context.Context, queue runlane.QueueName) (time.Duration, error) {
	b, ok := t.carrier(queue)
	if !ok {
		return 0, t.unbound(queue)
	}
	attributes, err := t.attributes(ctx, b, types.QueueAttributeNameVisibilityTimeout)
	if err != nil {
		return 0, operationError(ctx, b, err)
	}
	seconds, _ := strconv.Atoi(attributes[string(types.QueueAttributeNameVisibilityTimeout)]) // 0: it did not say
	invocation := time.Duration(seconds) * time.Second / visibilityInvocations
	if invocation < shortestInvocation {
		return 0, nil
	}
	return invocation, nil
}

func (t *Transport) attributes(
	ctx context.Context, b *binding, names ...types.QueueAttributeName,
) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	out, err := t.api.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl:       aws.String(b.url),
		AttributeNames: names,
	})
	if err != nil {
		return nil, err
	}
	return out.Attributes, nil
}
