package sqstransport_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqstransport"
)

func TestNew_WhatCannotWork_IsConfigurationInvalidWithHint(t *testing.T) {
	t.Parallel()
	good := map[runlane.QueueName]string{"mail": mailURL}
	for name, tc := range map[string]struct {
		client  sqstransport.API
		queues  map[runlane.QueueName]string
		options *sqstransport.Options
	}{
		"no client":            {queues: good},
		"no queues":            {client: newFakeSQS()},
		"bad queue name":       {client: newFakeSQS(), queues: map[runlane.QueueName]string{"a:b": mailURL}},
		"no URL":               {client: newFakeSQS(), queues: map[runlane.QueueName]string{"mail": ""}},
		"a name for a URL":     {client: newFakeSQS(), queues: map[runlane.QueueName]string{"mail": "mail"}},
		"an ARN for a URL":     {client: newFakeSQS(), queues: map[runlane.QueueName]string{"mail": "arn:aws:sqs:eu-west-1:1:mail"}},
		"URL without a queue":  {client: newFakeSQS(), queues: map[runlane.QueueName]string{"mail": "https://sqs.eu-west-1.amazonaws.com/1/"}},
		"negative timeout":     {newFakeSQS(), good, &sqstransport.Options{Timeout: -1}},
		"visibility too short": {newFakeSQS(), good, &sqstransport.Options{Visibility: time.Second}},
		"visibility too long":  {newFakeSQS(), good, &sqstransport.Options{Visibility: 13 * time.Hour}},
		"visibility in parts":  {newFakeSQS(), good, &sqstransport.Options{Visibility: 3500 * time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := sqstransport.New(tc.client, tc.queues, tc.options)
			e, ok := errors.AsType[*runlane.Error](err)
			if !ok || e.Code != runlane.ErrConfigurationInvalid || e.Hint == "" {
				t.Fatalf("error is %v", err)
			}
		})
	}
}

func TestCapabilities_FollowTheKindsOfQueues(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		queues []runlane.QueueName
		want   lane.TransportCapabilities
	}{
		"standard": {[]runlane.QueueName{"mail", "audio"}, lane.TransportCapabilities{DurableDelivery: true, NativeDelay: true}},
		"FIFO":     {[]runlane.QueueName{"orders"}, lane.TransportCapabilities{DurableDelivery: true, MessageGrouping: true, OrderedDelivery: true}},
		"both":     {[]runlane.QueueName{"mail", "orders"}, lane.TransportCapabilities{DurableDelivery: true, MessageGrouping: true, NativeDelay: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			equal(t, "capabilities", open(t, newFakeSQS(), nil, tc.queues...).Capabilities(), tc.want)
		})
	}
	all := open(t, newFakeSQS(), nil)
	for queue, want := range map[runlane.QueueName]bool{"orders": true, "mail": false, "unbound": false} {
		equal(t, string(queue)+" is ordered", all.Ordered(queue), want)
	}
	equal(t, "queues", all.Queues(), []runlane.QueueName{"audio", "mail", "orders"})
}

func TestStart_QueuesThatExist_IsNil(t *testing.T) {
	t.Parallel()
	transport := open(t, newFakeSQS(), nil)
	if err := transport.Start(t.Context(), lane.StartOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := transport.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestStart_EachUnusableQueue_IsNamed(t *testing.T) {
	t.Parallel()
	client := newFakeSQS()
	client.onAttributes = func(in *sqs.GetQueueAttributesInput) (map[string]string, error) {
		switch *in.QueueUrl {
		case mailURL:
			return nil, &types.QueueDoesNotExist{}
		case audioURL:
			return nil, &smithy.GenericAPIError{Code: "AccessDenied", Fault: smithy.FaultClient}
		default:
			return map[string]string{}, nil
		}
	}
	err := open(t, client, nil).Start(t.Context(), lane.StartOptions{})
	if !errors.Is(err, runlane.ErrConfigurationInvalid) {
		t.Fatalf("error is %v", err)
	}
	for _, want := range []string{`no queue for "mail"`, "RUNLANE_QUEUES", `access to queue "audio" is denied`, "sqs:GetQueueAttributes"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
	if _, ok := errors.AsType[*types.QueueDoesNotExist](err); !ok {
		t.Error("the cause does not reach the service's error")
	}
}

// Credentials are those of all queues: that they are not accepted is said once, and is no fault of the wiring.
func TestStart_CallerIsNotLetIn_IsTransportUnavailable(t *testing.T) {
	t.Parallel()
	for code, says := range map[string]string{
		"ExpiredToken":                "the credentials for AWS have expired",
		"ExpiredTokenException":       "the credentials for AWS have expired",
		"UnrecognizedClientException": "AWS does not accept the credentials",
		"SignatureDoesNotMatch":       "AWS does not accept the credentials",
	} {
		client := newFakeSQS()
		client.onAttributes = func(*sqs.GetQueueAttributesInput) (map[string]string, error) {
			return nil, &smithy.GenericAPIError{Code: code, Fault: smithy.FaultClient}
		}
		err := open(t, client, nil).Start(t.Context(), lane.StartOptions{})
		e, ok := errors.AsType[*runlane.Error](err)
		if !ok || e.Code != runlane.ErrTransportUnavailable || !e.Retryable || e.Hint == "" || strings.Count(err.Error(), says) != 1 {
			t.Errorf("%s became %v", code, err)
		}
	}
}

// Access to one queue is a matter of a policy, not of the wiring: who starts may try again when it is corrected.
func TestStart_AccessToAQueueIsDenied_IsTransportUnavailable(t *testing.T) {
	t.Parallel()
	client := newFakeSQS()
	client.onAttributes = func(in *sqs.GetQueueAttributesInput) (map[string]string, error) {
		if *in.QueueUrl == audioURL {
			return nil, &smithy.GenericAPIError{Code: "AccessDenied", Fault: smithy.FaultClient}
		}
		return map[string]string{}, nil
	}
	err := open(t, client, nil).Start(t.Context(), lane.StartOptions{})
	e, ok := errors.AsType[*runlane.Error](err)
	if !ok || e.Code != runlane.ErrTransportUnavailable || !strings.Contains(e.Hint, "sqs:GetQueueAttributes") || !strings.Contains(e.Message, `"audio"`) {
		t.Errorf("error is %v", err)
	}
}

func TestStart_EndpointDoesNotAnswer_IsTransportUnavailable(t *testing.T) {
	t.Parallel()
	client := newFakeSQS()
	client.onAttributes = func(*sqs.GetQueueAttributesInput) (map[string]string, error) {
		return nil, errors.New("connection refused")
	}
	err := open(t, client, nil).Start(t.Context(), lane.StartOptions{})
	e, ok := errors.AsType[*runlane.Error](err)
	if !ok || e.Code != runlane.ErrTransportUnavailable || !e.Retryable || !strings.Contains(e.Hint, "AWS_ENDPOINT_URL") {
		t.Fatalf("error is %v", err)
	}
	equal(t, "times it is said", strings.Count(err.Error(), "does not answer"), 1)
	if errors.Is(err, runlane.ErrConfigurationInvalid) {
		t.Error("an outage is called a wrong configuration")
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	client := newFakeSQS()
	transport := open(t, client, nil)
	client.onAttributes = func(in *sqs.GetQueueAttributesInput) (map[string]string, error) {
		return map[string]string{"ApproximateNumberOfMessages": "101", "ApproximateNumberOfMessagesNotVisible": "7"}, nil
	}
	visible, inFlight, err := transport.Depth(t.Context(), "mail")
	equal(t, "depth", []any{visible, inFlight, err}, []any{101, 7, error(nil)})

	client.onAttributes = func(in *sqs.GetQueueAttributesInput) (map[string]string, error) { return nil, nil }
	if _, _, err := transport.Depth(t.Context(), "mail"); !errors.Is(err, runlane.ErrTransportUnavailable) {
		t.Errorf("error for an answer without numbers is %v", err)
	}
	client.onAttributes = func(in *sqs.GetQueueAttributesInput) (map[string]string, error) {
		return nil, &types.RequestThrottled{}
	}
	if _, _, err := transport.Depth(t.Context(), "mail"); !errors.Is(err, runlane.ErrTransportUnavailable) {
		t.Errorf("error when throttled is %v", err)
	}
	if _, _, err := transport.Depth(t.Context(), "none"); !errors.Is(err, runlane.ErrConfigurationInvalid) {
		t.Errorf("error for an unbound queue is %v", err)
	}
}

// The template's queues have the visibility of six invocations; one with less than three minutes was made for something else.
func TestInvocationTime_IsASixthOfTheVisibility(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[string]time.Duration{
		"5400": 15 * time.Minute, "360": time.Minute, "180": 30 * time.Second, "179": 0, "30": 0, "": 0, "what": 0,
	} {
		client := newFakeSQS()
		client.onAttributes = func(*sqs.GetQueueAttributesInput) (map[string]string, error) {
			return map[string]string{"VisibilityTimeout": seconds}, nil
		}
		got, err := open(t, client, nil).InvocationTime(t.Context(), "orders")
		if err != nil || got != want {
			t.Errorf("%q: %s, %v", seconds, got, err)
		}
	}
	client := newFakeSQS()
	client.onAttributes = func(*sqs.GetQueueAttributesInput) (map[string]string, error) { return nil, &types.RequestThrottled{} }
	if _, err := open(t, client, nil).InvocationTime(t.Context(), "orders"); !errors.Is(err, runlane.ErrTransportUnavailable) {
		t.Errorf("throttled: %v", err)
	}
	if _, err := open(t, client, nil).InvocationTime(t.Context(), "unbound"); !errors.Is(err, runlane.ErrConfigurationInvalid) {
		t.Errorf("unbound: %v", err)
	}
}
