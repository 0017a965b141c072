// Package sqstransport implements [lane.Transport] on Amazon SQS: standard and FIFO queues, native delays, long
// polling. Messages have no state, so losing, repeating or reordering them never corrupts a run.
//
// Lambda functions and long-lived workers may read the same queues. Both use [Deliver] for a batch and
// [Transport.HandBack] for failed records.
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
	// DefaultTimeout limits each request with the SDK's retries.
	DefaultTimeout = 10 * time.Second
	// DefaultVisibility is how long a received wakeup is invisible to others before Receive extends that.
	DefaultVisibility = time.Minute
)

// Limits of the service.
const (
	// MaxDelay is the longest native delay of a standard queue.
	MaxDelay = 15 * time.Minute
	// MaxMessageBytes limits one message, and one batch.
	MaxMessageBytes = 1 << 20

	maxBatch    = 10
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
	// Fair sets a message group on wakeups of standard queues too, one for each concurrency key, so that a tenant with
	// many runs does not delay others. SQS charges extra for these messages.
	Fair bool
	// Logger defaults to the runtime's.
	Logger *slog.Logger
	// Timeout limits each request, in addition to the wait of a long poll. 0 means DefaultTimeout.
	Timeout time.Duration
	// Visibility of received wakeups, in whole seconds from 3 s to 12 h. Receive extends it while a handler runs, so it
	// only affects the wakeups of a dead process. 0 means DefaultVisibility.
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

// binding is an SQS queue that carries the wakeups of one or more of the application's queues.
type binding struct {
	name runlane.QueueName // default, or the first of its queues by name
	url  string
	fifo bool
}

// New binds the application's queues to URLs of SQS queues; a URL that ends in ".fifo" is a FIFO queue. It makes no
// request. Wrong bindings or options are runlane.ErrConfigurationInvalid.
//
//	Queue                                              SQS queue that carries its wakeups
//	bound by its name                                  that one; several names may have the same URL
//	any other, runlane.DefaultQueue bound to standard  that of runlane.DefaultQueue
//	any other                                          none: the queue is not bound
//
// A FIFO queue carries only queues bound to it by name, because the others expect no order.
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
		return nil, configurationError("transport has no SQS client", "pass an *sqs.Client to sqstransport.New", nil)
	case t.timeout < 0:
		return nil, configurationError(
			fmt.Sprintf("transport has Timeout %s", t.timeout),
			"use a positive Timeout, or 0 for the default",
			nil,
		)
	case t.visibility < 3*time.Second || t.visibility > 12*time.Hour || t.visibility%time.Second != 0:
		return nil, configurationError(
			fmt.Sprintf("transport has Visibility %s", t.visibility),
			"use whole seconds from 3s to 12h",
			nil,
		)
	case len(queues) == 0:
		return nil, configurationError(
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

// defaultFirst sorts the default queue first: a binding that it shares gets its name.
func defaultFirst(name runlane.QueueName) int {
	if name == runlane.DefaultQueue.Name {
		return 0
	}
	return 1
}

// carrier is the binding that carries a queue's wakeups, if any.
func (t *Transport) carrier(queue runlane.QueueName) (b *binding, ok bool) {
	if b, ok = t.bindings[queue]; ok {
		return b, true
	}
	b, ok = t.bindings[runlane.DefaultQueue.Name]
	return b, ok && !b.fifo
}

// Carrier implements [lane.Transport] by the table of [New]. Queues bound to one URL have the name
// runlane.DefaultQueue, or the first of their names.
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
		// The address may have credentials in it, so the error does not repeat it.
		return nil, configurationError(
			fmt.Sprintf("queue %q is bound to something that is no queue URL", name),
			"bind it to the URL that SQS gives (in RUNLANE_QUEUES), like "+
				"https://sqs.eu-west-1.amazonaws.com/123456789012/name",
			nil,
		)
	}
	return &binding{name: name, url: address, fifo: strings.HasSuffix(address, ".fifo")}, nil
}

// queueID is "<account>/<name>", the common part of a queue's URL and ARN, or "".
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

// BindingOf returns the binding of an SQS queue by its URL or ARN; ok is false if it is not bound. It makes no request.
func (t *Transport) BindingOf(queue string) (binding runlane.QueueName, ok bool) {
	if b := t.bindingOf(queue); b != nil {
		return b.name, true
	}
	return "", false
}

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

// Start checks that every bound queue is readable, and joins the errors: runlane.ErrConfigurationInvalid for a missing
// queue, runlane.ErrTransportUnavailable for an unreadable one. An unreachable endpoint or refused credentials are one
// runlane.ErrTransportUnavailable.
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
	_ = group.Wait() // never an error
	// All queues share one endpoint and one caller, so an error of that kind is reported once.
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

func (t *Transport) distinct(queues []runlane.QueueName) (bindings []*binding) {
	for _, name := range queues {
		if b, ok := t.carrier(name); ok && !slices.Contains(bindings, b) {
			bindings = append(bindings, b)
		}
	}
	return bindings
}

// Depth returns the approximate numbers of visible and of received messages of the SQS queue that carries the queue's
// wakeups, with those of other queues on it but without delayed ones. An unbound queue is
// runlane.ErrConfigurationInvalid, a failed request runlane.ErrTransportUnavailable.
func (t *Transport) Depth(ctx context.Context, queue runlane.QueueName) (visible, inFlight int, err error) {
	b, ok := t.carrier(queue)
	if !ok {
		return 0, 0, t.unboundError(queue)
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
				Message:   fmt.Sprintf("SQS returned no %s of queue %q", name, queue),
				Retryable: true,
				Cause:     err,
			}
		}
	}
	return numbers[0], numbers[1], nil
}

// The deployment template sets a queue's visibility timeout to six invocations, as AWS recommends, of at least 30 s.
const (
	visibilityInvocations = 6
	shortestInvocation    = 30 * time.Second
)

// InvocationTime is how long a function that executes a queue's wakeups may take: a sixth of the queue's visibility
// timeout, or 0 below 30 s, for a queue that was not made for functions. An unbound queue is
// runlane.ErrConfigurationInvalid, a failed request runlane.ErrTransportUnavailable.
func (t *Transport) InvocationTime(ctx context.Context, queue runlane.QueueName) (time.Duration, error) {
	b, ok := t.carrier(queue)
	if !ok {
		return 0, t.unboundError(queue)
	}
	attributes, err := t.attributes(ctx, b, types.QueueAttributeNameVisibilityTimeout)
	if err != nil {
		return 0, operationError(ctx, b, err)
	}
	seconds, _ := strconv.Atoi(attributes[string(types.QueueAttributeNameVisibilityTimeout)]) // 0: not reported
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
