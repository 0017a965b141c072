package ddb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
)

// AWS error codes about credentials and permissions.
var (
	expiredCodes = []string{"ExpiredToken", "ExpiredTokenException", "RequestExpired"}
	unknownCodes = []string{
		"IncompleteSignature", "IncompleteSignatureException", "InvalidAccessKeyId", "InvalidClientTokenId",
		"InvalidSignatureException",
		"MissingAuthenticationToken", "MissingAuthenticationTokenException", "SignatureDoesNotMatch",
		"UnrecognizedClientException",
	}
	deniedCodes = []string{"AccessDenied", "AccessDeniedException", "OptInRequired"}
)

// TimeLimit is the cause of a context with a deadline of its own, earlier than the caller's.
type TimeLimit struct{ Message, Hint string }

func (l *TimeLimit) Error() string { return l.Message }

// failure converts an error of the SDK to *runlane.Error, unless it already is one. No other function does.
func failure(ctx context.Context, table, doing string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*runlane.Error](err); ok {
		return err
	}
	if limit, ok := errors.AsType[*TimeLimit](context.Cause(ctx)); ok {
		return &runlane.Error{
			Code:      runlane.ErrStorageUnavailable,
			Message:   doing + ": " + limit.Message,
			Hint:      limit.Hint,
			Retryable: true,
			Meta:      map[string]string{"outcome": "unknown"},
			Cause:     err,
		}
	}
	if ctx.Err() != nil {
		return &runlane.Error{
			Code:      runlane.ErrOperationCancelled,
			Message:   doing + ": the caller's context ended",
			Retryable: true,
			Meta:      map[string]string{"outcome": "unknown"},
			Cause:     errors.Join(context.Cause(ctx), err),
		}
	}
	e := &runlane.Error{Code: runlane.ErrStorageUnavailable, Message: doing + " failed", Retryable: true, Cause: err}
	switch code := apiCode(err); {
	case code == "ResourceNotFoundException":
		e.Code, e.Retryable = runlane.ErrConfigurationInvalid, false
		e.Message = fmt.Sprintf("%s: table %q does not exist", doing, table)
		e.Hint = "create the table (make local-up does locally, the template in an account), or set RUNLANE_TABLE"
	case code == "ValidationException":
		e.Code, e.Retryable = runlane.ErrContractViolation, false
		e.Message = doing + ": DynamoDB refused the request"
		e.Hint = "the table may not have the layout of this version"
	case slices.Contains(expiredCodes, code):
		e.Message = doing + ": the credentials for AWS have expired"
		e.Hint = "log in again, or renew them, then repeat"
	case slices.Contains(unknownCodes, code):
		e.Message = doing + ": AWS does not accept the credentials"
		e.Hint = "check the access key, its secret, the profile and this machine's clock, which is part of every " +
			"signature"
	case slices.Contains(deniedCodes, code):
		e.Message = doing + ": access denied"
		e.Hint = "let the policy allow the action that the cause names, on the table and its indexes"
	case isThrottle(err):
		e.Message = doing + ": throttled"
		e.Hint = "raise the table's throughput, or try again later"
	case isTransactionConflict(err):
		e.Message = doing + ": met transactions on the same item too often"
		e.Hint = "try again"
	case code == "":
		e.Message = doing + ": DynamoDB is not reachable"
		e.Hint = "check AWS_ENDPOINT_URL and the network"
	}
	if !refused(err) {
		e.Meta = map[string]string{"outcome": "unknown"}
	}
	return e
}

// withUnknownOutcome marks the error of a write that may have been carried out by an earlier sending.
func withUnknownOutcome(err error) error { return withOutcome(err, "unknown") }

// withOutcome adds to an error whether the failed request was carried out. It replaces an outcome set before.
func withOutcome(err error, outcome string) error {
	e, ok := errors.AsType[*runlane.Error](err)
	if !ok {
		return err
	}
	out := *e
	out.Meta = map[string]string{}
	maps.Copy(out.Meta, e.Meta)
	out.Meta["outcome"] = outcome
	return &out
}

func apiCode(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

func isThrottle(err error) bool {
	return slices.Contains([]string{
		"ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded", "Throttling",
	}, apiCode(err))
}

// refused reports an answer that rules out that the request was carried out. The SDK gives errors outside DynamoDB's
// model no fault (ValidationException, AccessDeniedException, ExpiredTokenException): for those the status decides.
func refused(err error) bool {
	if isThrottle(err) || isTooLarge(err) || isUnsent(err) {
		return true
	}
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok || api.ErrorCode() == "TransactionInProgressException" {
		return false
	}
	if api.ErrorFault() != smithy.FaultUnknown {
		return api.ErrorFault() == smithy.FaultClient
	}
	answer, ok := errors.AsType[*smithyhttp.ResponseError](err)
	return ok && answer.HTTPStatusCode() == http.StatusBadRequest
}

// isTooLarge reports a request beyond the 16 MB that DynamoDB reads. Its answer may have no code.
func isTooLarge(err error) bool {
	answer, ok := errors.AsType[*smithyhttp.ResponseError](err)
	return ok && answer.HTTPStatusCode() == http.StatusRequestEntityTooLarge
}

// isUnsent reports a request that the SDK itself refused: it lacks a field, or cannot be encoded.
func isUnsent(err error) bool {
	_, incomplete := errors.AsType[smithy.InvalidParamsError](err)
	_, foreign := errors.AsType[*smithy.SerializationError](err)
	return incomplete || foreign
}

func isConditionFailure(err error) (old item.Item, ok bool) {
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return failed.Item, true
	}
	return nil, false
}

func isTransactionConflict(err error) bool {
	_, ok := errors.AsType[*types.TransactionConflictException](err)
	return ok
}
