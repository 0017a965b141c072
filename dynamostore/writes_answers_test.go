package dynamostore

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
)

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
