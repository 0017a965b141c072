package ddb

import (
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
)

// judgeBeside splits the reasons of the application's writes: those that another try may end, which are conflicts with
// other transactions and throttles, and the error of the others, nil if there are none.
func (sent *attempt) judgeBeside(
	cancelled *types.TransactionCanceledException,
) (passing []types.CancellationReason, refusal error) {
	if len(sent.Beside) == 0 || len(cancelled.CancellationReasons) < len(sent.in.TransactItems) {
		return nil, nil
	}
	reasons := cancelled.CancellationReasons[len(sent.Writes):]
	for i, r := range reasons {
		switch code := aws.ToString(r.Code); {
		case code == "" || code == "None":
		case code == "TransactionConflict" || isThrottleReason(code):
			passing = append(passing, r)
		case refusal == nil:
			refusal = &runlane.Error{
				Code:     runlane.ErrStorageConflict,
				Conflict: runlane.ConflictWrites,
				Message:  fmt.Sprintf("write %d of the application was refused (%s), so there is no run", i, code),
				Hint:     "read the reasons of the cause, a *types.TransactionCanceledException: one for each of the writes",
				Cause:    &types.TransactionCanceledException{Message: cancelled.Message, CancellationReasons: reasons},
			}
		}
	}
	return passing, refusal
}

// besideAtFault explains a request that DynamoDB refused as a whole, where only the application's writes can be the
// reason: the run's are known to be sound, and are sent to a table that exists.
func (sent *attempt) besideAtFault(err error) error {
	if len(sent.Beside) == 0 {
		return err
	}
	known := []string{"ValidationException", "SerializationException", "ResourceNotFoundException"}
	if slices.Contains(known, apiCode(err)) || isTooLarge(err) || isUnsent(err) {
		return &runlane.Error{
			Code:    runlane.ErrValidationFailed,
			Message: sent.Operation + ": DynamoDB refused the writes of the application, so there is no run",
			Hint: fmt.Sprintf("the cause says why: a table, a key or an expression of TriggerOptions.Writes, of which "+
				"the first is its TransactItems[%d]", len(sent.Writes)),
			Cause: err,
		}
	}
	return err
}
