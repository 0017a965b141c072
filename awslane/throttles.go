package awslane

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
)

// countThrottles is added inside the retries, so that it sees every attempt.
func countThrottles(throttled func()) func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
		return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("CountThrottles", func(
			ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
		) (middleware.FinalizeOutput, middleware.Metadata, error) {
			out, metadata, err := next.HandleFinalize(ctx, in)
			if err != nil && isThrottled(err) {
				throttled()
			}
			return out, metadata, err
		}), "Retry", middleware.After)
	}
}

// isThrottled reports the throttle of a request or of a member of a transaction.
func isThrottled(err error) bool {
	if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		for _, reason := range cancelled.CancellationReasons {
			if code := aws.ToString(reason.Code); code == "ThrottlingError" ||
				strings.HasPrefix(code, "ProvisionedThroughput") {
				return true
			}
		}
		return false
	}
	if _, ok := errors.AsType[*types.TransactionInProgressException](err); ok {
		return false // a request that overtook itself; the SDK repeats it like a throttle
	}
	return retry.ThrottleErrorCode{Codes: retry.DefaultThrottleErrorCodes}.IsErrorThrottle(err).Bool()
}
