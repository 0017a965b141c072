package sqstransport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/runlane/runlane-go"
)

// fault classifies an error of the service or of the connection to it.
type fault int

const (
	faultUnreachable fault = iota // no answer, or the service's own failure
	faultMissing                  // no such queue
	faultDenied                   // not allowed
	faultExpired                  // with expired credentials
	faultUnknown                  // with credentials that do not exist
	faultThrottled                // too fast
	faultRefused                  // the request is at fault
)

// The codes of the service by fault. SQS has two spellings of many, one of each protocol it speaks.
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

// faultOfCode classifies a code of the service, of a request or of one entry of a batch. Unusable keys (KMS) are a
// fault of access or an outage, never of the message.
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
		return faultOfCode(api.ErrorCode(), api.ErrorFault() == smithy.FaultClient)
	}
	return faultUnreachable
}

// operationError is for a request that failed as a whole. It is runlane.ErrTransportUnavailable whatever the fault,
// also for a missing queue or a refused access. When an operator has repaired them, every wakeup still waits, so no
// outage dead-letters anything.
func operationError(ctx context.Context, b *binding, err error) *runlane.Error {
	if ctx.Err() != nil { // the caller's context, not this request's own timeout
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

// startError turns faults that a deployment has to repair into runlane.ErrConfigurationInvalid. A missing permission is
// no such fault: it is runlane.ErrTransportUnavailable, as it is later.
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
	default: // an outage, or it is about all queues
	}
	return e
}

func (t *Transport) unbound(queue runlane.QueueName) *runlane.Error {
	return invalid(
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

func invalid(message, hint string, meta map[string]string) *runlane.Error {
	return &runlane.Error{Code: runlane.ErrConfigurationInvalid, Message: message, Hint: hint, Meta: meta}
}
