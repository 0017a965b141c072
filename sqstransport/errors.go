package sqstransport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/runlane/runlane-go"
)

type fault int

const (
	faultUnreachable fault = iota // no answer, or a failure of the service
	faultMissing                  // no such queue
	faultDenied                   // no permission
	faultExpired                  // expired credentials
	faultUnknown                  // unknown credentials
	faultThrottled
	faultRefused // the request is wrong
)

// SQS error codes by fault. Many have two spellings, one for each protocol.
var (
	missingCodes = []string{
		"AWS.SimpleQueueService.NonExistentQueue", "AWS.SimpleQueueService.QueueDeletedRecently", "InvalidAddress",
		"QueueDeletedRecently", "QueueDoesNotExist",
	}
	deniedCodes  = []string{"AccessDenied", "AccessDeniedException", "InvalidSecurity", "OptInRequired"}
	expiredCodes = []string{"ExpiredToken", "ExpiredTokenException", "RequestExpired"}
	unknownCodes = []string{
		"IncompleteSignature", "IncompleteSignatureException", "InvalidAccessKeyId", "InvalidClientTokenId",
		"InvalidSignatureException",
		"MissingAuthenticationToken", "MissingAuthenticationTokenException", "SignatureDoesNotMatch",
		"UnrecognizedClientException",
	}
	throttledCodes = []string{
		"AWS.SimpleQueueService.OverLimit", "OverLimit", "RequestThrottled", "RequestThrottledException", "SlowDown",
		"Throttling",
		"ThrottledException", "ThrottlingException", "TooManyRequestsException",
	}
)

// faultOfCode classifies the code of a request or of one entry of a batch. An unusable KMS key is a fault of access or
// an outage, never of the message.
func faultOfCode(code string, callerAtFault bool) fault {
	switch {
	case slices.Contains(missingCodes, code):
		return faultMissing
	case slices.Contains(throttledCodes, code), strings.Contains(code, "Throttl"):
		return faultThrottled
	case slices.Contains(expiredCodes, code):
		return faultExpired
	case slices.Contains(unknownCodes, code):
		return faultUnknown
	case slices.Contains(deniedCodes, code), strings.HasPrefix(code, "Kms"), strings.HasPrefix(code, "KMS."):
		return faultDenied
	case callerAtFault:
		return faultRefused
	default:
		return faultUnreachable
	}
}

func faultOf(err error) fault {
	if _, ok := errors.AsType[*types.QueueDoesNotExist](err); ok {
		return faultMissing
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		answer, answered := errors.AsType[*awshttp.ResponseError](err)
		unmodeled := answered && api.ErrorFault() == smithy.FaultUnknown && answer.HTTPStatusCode() == http.StatusBadRequest
		return faultOfCode(api.ErrorCode(), unmodeled || api.ErrorFault() == smithy.FaultClient)
	}
	return faultUnreachable
}

// operationError reports a request that failed as a whole. It is always runlane.ErrTransportUnavailable: wakeups wait
// until an operator has repaired a missing queue or denied access, so no outage dead-letters them.
func operationError(ctx context.Context, b *binding, err error) *runlane.Error {
	if ctx.Err() != nil { // the caller's context, not the request's timeout
		return &runlane.Error{
			Code:    runlane.ErrOperationCancelled,
			Message: fmt.Sprintf("stopped before SQS answered for queue %q", b.name),
			Cause:   err,
		}
	}
	e := &runlane.Error{Code: runlane.ErrTransportUnavailable, Retryable: true, Meta: providerMeta(err), Cause: err}
	e.Message, e.Hint = describe(faultOf(err), b)
	return e
}

func describe(f fault, b *binding) (message, hint string) {
	switch f {
	case faultMissing:
		return fmt.Sprintf("SQS has no queue for %q", b.name),
			fmt.Sprintf("create the queue, or correct the URL of %q in RUNLANE_QUEUES", b.name)
	case faultDenied:
		return fmt.Sprintf("access to queue %q is denied", b.name),
			"check the permissions for this queue (and its key, where it is encrypted with one): the cause names the " +
				"action"
	case faultExpired:
		return fmt.Sprintf(
			"the credentials for AWS have expired: queue %q is out of reach",
			b.name,
		), "log in again, or renew them, then repeat"
	case faultUnknown:
		return fmt.Sprintf("AWS does not accept the credentials: queue %q is out of reach", b.name),
			"check the access key, its secret, the profile and this machine's clock, which is part of every signature"
	case faultThrottled:
		return fmt.Sprintf("SQS throttles requests to queue %q", b.name), ""
	case faultRefused:
		return fmt.Sprintf("SQS refused a request to queue %q", b.name), "the provider's code is in the meta"
	default:
		return fmt.Sprintf(
			"SQS does not answer for queue %q",
			b.name,
		), "check the region, AWS_ENDPOINT_URL and the network"
	}
}

// startError makes faults that a deployment has to repair runlane.ErrConfigurationInvalid. A missing permission stays
// runlane.ErrTransportUnavailable, as in later requests.
func startError(ctx context.Context, b *binding, err error) error {
	if err == nil {
		return nil
	}
	e := operationError(ctx, b, err)
	if e.Code != runlane.ErrTransportUnavailable {
		return e
	}
	switch faultOf(err) {
	case faultMissing, faultRefused:
		e.Hint = fmt.Sprintf("create the queue, or correct the URL of %q in RUNLANE_QUEUES", b.name)
		e.Code, e.Retryable = runlane.ErrConfigurationInvalid, false
	case faultDenied:
		e.Hint = "allow sqs:GetQueueAttributes on the queue"
	default: // an outage, or about all queues
	}
	return e
}

func (t *Transport) unboundError(queue runlane.QueueName) *runlane.Error {
	return configurationError(
		fmt.Sprintf("queue %q has no binding", queue),
		fmt.Sprintf(
			"add %s=<url> to RUNLANE_QUEUES, or bind %q to a standard queue, which carries all others",
			queue,
			runlane.DefaultQueue.Name,
		),
		nil,
	)
}

func providerMeta(err error) map[string]string {
	meta := map[string]string{}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		meta["provider_code"] = api.ErrorCode()
	}
	if response, ok := errors.AsType[*awshttp.ResponseError](err); ok && response.ServiceRequestID() != "" {
		meta["request_id"] = response.ServiceRequestID()
	}
	if len(meta) == 0 {
		return nil
	}
	return meta
}

func configurationError(message, hint string, meta map[string]string) *runlane.Error {
	return &runlane.Error{Code: runlane.ErrConfigurationInvalid, Message: message, Hint: hint, Meta: meta}
}
