package main

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// What can be asked is asked on a copy; what cannot goes through as it is.
func TestAsking_ChangesACopyOfWhatCanBeAsked(t *testing.T) {
	t.Parallel()
	table := "runs"
	get := &dynamodb.GetItemInput{TableName: &table}
	asked, ok := asking(get).(*dynamodb.GetItemInput)
	if !ok || asked.ReturnConsumedCapacity != types.ReturnConsumedCapacityIndexes || asked.TableName != &table || get.ReturnConsumedCapacity != "" {
		t.Errorf("%+v became %+v", get, asked)
	}
	commit, ok := asking(&dynamodb.TransactWriteItemsInput{}).(*dynamodb.TransactWriteItemsInput)
	if !ok || commit.ReturnConsumedCapacity != types.ReturnConsumedCapacityIndexes {
		t.Errorf("a commit became %+v", commit)
	}
	for _, other := range []any{&dynamodb.DescribeTableInput{}, &sqs.SendMessageInput{}, "text", nil} {
		if got := asking(other); got != other {
			t.Errorf("%T became %T", other, got)
		}
	}
}
