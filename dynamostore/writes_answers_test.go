package dynamostore

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/runlane/runlane-go"
)

// errLarge is an answer without a code.
var errLarge = &smithyhttp.ResponseError{
	Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusRequestEntityTooLarge}}, Err: errors.New("no JSON"),
}

// A creation has two items of its own before the application's.
func TestWrites_Answers(t *testing.T) {
	t.Parallel()
	code := func(text string) types.CancellationReason { return types.CancellationReason{Code: &text} }
	seat := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "1"}, "sk": &types.AttributeValueMemberS{Value: "1"}}
	failed := code("ConditionalCheckFailed")
	failed.Item = seat
	exists := &types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{failed, code("None"), code("ValidationError")}}
	for name, row := range map[string]struct {
		script []answer
		sent   int
		want   error // nil: committed
	}{
		"a conflict is repeated":            {[]answer{{err: cancelled("None", "None", "TransactionConflict")}}, 2, nil},
		"a throttled write is repeated":     {[]answer{{err: cancelled("None", "None", "ThrottlingError")}}, 2, nil},
		"a lost answer is settled":          {[]answer{{commit: true, err: errLostAnswer}}, 2, nil},
		"a failed condition is final":       {[]answer{{err: cancelled("None", "None", "ConditionalCheckFailed")}}, 1, runlane.ConflictWrites},
		"so is a bad member":                {[]answer{{err: cancelled("None", "None", "ValidationError")}}, 1, runlane.ConflictWrites},
		"the run's condition comes first":   {[]answer{{err: exists}}, 1, runlane.ConflictEventSequence},
		"a refused request is the caller's": {[]answer{{err: errInvalid}}, 1, runlane.ErrValidationFailed},
		"so is one that the SDK refuses":    {[]answer{{err: smithy.InvalidParamsError{}}}, 1, runlane.ErrValidationFailed},
		"or cannot encode":                  {[]answer{{err: &smithy.SerializationError{}}}, 1, runlane.ErrValidationFailed},
		"or DynamoDB cannot decode":         {[]answer{{err: &smithy.GenericAPIError{Code: "SerializationException", Fault: smithy.FaultClient}}}, 1, runlane.ErrValidationFailed},
		"so is one of more than 16 MB":      {[]answer{{err: errLarge}}, 1, runlane.ErrValidationFailed},
		"a condition that failed because the lost sending succeeded is none": {
			[]answer{{commit: true, err: errLostAnswer}, {err: cancelled("ConditionalCheckFailed", "None", "ConditionalCheckFailed")}}, 2, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := newScripted(row.script...)
				command := creation(t, "run_1")
				command.Writes = Writes{{Put: &types.Put{TableName: aws.String("seats"), Item: seat}}}
				_, err := New(client, "table", nil).AppendRunEvents(t.Context(), command)
				if row.want == nil && err != nil || row.want != nil && !errors.Is(err, row.want) {
					t.Errorf("error is %v, not %v", err, row.want)
				}
				if len(client.sent) != row.sent {
					t.Errorf("sent %d times, not %d", len(client.sent), row.sent)
				}
			})
		})
	}
}

func TestWrites_ThrottledForGood_NameTheirTables(t *testing.T) {
	t.Parallel()
	for name, reasons := range map[string][]string{
		"try again": {"ThrottlingError", "None", "ThrottlingError"}, "TriggerOptions.Writes": {"None", "None", "ProvisionedThroughputExceeded"},
	} {
		synctest.Test(t, func(t *testing.T) {
			command := creation(t, "run_1")
			command.Writes = Writes{{Delete: &types.Delete{TableName: aws.String("seats")}}}
			_, err := New(newScripted(slices.Repeat([]answer{{err: cancelled(reasons...)}}, 8)...), "table", nil).AppendRunEvents(t.Context(), command)
			if e, ok := errors.AsType[*runlane.Error](err); !ok || e.Code != runlane.ErrStorageUnavailable || !strings.Contains(e.Hint, name) ||
				e.Meta["outcome"] != "not committed" || strings.Contains(e.Hint, "Writes") != (name != "try again") {
				t.Errorf("%q: %+v", name, err)
			}
		})
	}
}

// The name or the ARN of the table, on both sides.
func TestWrites_ToTheTableOfTheRuns_AreRefused(t *testing.T) {
	t.Parallel()
	const arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/"
	for _, own := range []string{"runs", arn + "runs"} {
		for theirs, refused := range map[string]bool{"runs": true, arn + "runs": true, "old-runs": false, arn + "seats": false} {
			client := newScripted()
			command := creation(t, "run_1")
			command.Writes = Writes{{Update: &types.Update{TableName: &theirs}}}
			_, err := New(client, own, nil).AppendRunEvents(t.Context(), command)
			if errors.Is(err, runlane.ErrValidationFailed) != refused || (len(client.sent) == 0) != refused {
				t.Errorf("%s, beside %s: %v", theirs, own, err)
			}
		}
	}
}
