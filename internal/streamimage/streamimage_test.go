package streamimage_test

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/runlane/runlane-go/internal/streamimage"
)

func TestItem_EveryType_AsLambdaSendsIt(t *testing.T) {
	t.Parallel()
	const image = `{
		"b": {"B": "AAEC"}, "bs": {"BS": ["AA==", "AQ=="]}, "bool": {"BOOL": true}, "n": {"N": "1.50"}, "ns": {"NS": ["1", "2"]},
		"s": {"S": ""}, "ss": {"SS": ["a", "b"]}, "null": {"NULL": true}, "l": {"L": [{"N": "1"}, {"L": []}, {"NULL": true}]},
		"m": {"M": {"inner": {"M": {}}, "text": {"S": "x"}}}
	}`
	var item map[string]events.DynamoDBAttributeValue
	if err := json.Unmarshal([]byte(image), &item); err != nil {
		t.Fatal(err)
	}
	item["zero"] = events.DynamoDBAttributeValue{} // never sent, and no reason to panic
	want := map[string]types.AttributeValue{
		"b":    &types.AttributeValueMemberB{Value: []byte{0, 1, 2}},
		"bs":   &types.AttributeValueMemberBS{Value: [][]byte{{0}, {1}}},
		"bool": &types.AttributeValueMemberBOOL{Value: true},
		"n":    &types.AttributeValueMemberN{Value: "1.50"},
		"ns":   &types.AttributeValueMemberNS{Value: []string{"1", "2"}},
		"s":    &types.AttributeValueMemberS{Value: ""},
		"ss":   &types.AttributeValueMemberSS{Value: []string{"a", "b"}},
		"null": &types.AttributeValueMemberNULL{Value: true},
		"zero": &types.AttributeValueMemberNULL{Value: true},
		"l": &types.AttributeValueMemberL{Value: []types.AttributeValue{
			&types.AttributeValueMemberN{Value: "1"}, &types.AttributeValueMemberL{Value: []types.AttributeValue{}},
			&types.AttributeValueMemberNULL{Value: true},
		}},
		"m": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
			"inner": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{}},
			"text":  &types.AttributeValueMemberS{Value: "x"},
		}},
	}
	ignore := cmpopts.IgnoreUnexported(
		types.AttributeValueMemberB{}, types.AttributeValueMemberBS{}, types.AttributeValueMemberBOOL{}, types.AttributeValueMemberN{},
		types.AttributeValueMemberNS{}, types.AttributeValueMemberS{}, types.AttributeValueMemberSS{}, types.AttributeValueMemberNULL{},
		types.AttributeValueMemberL{}, types.AttributeValueMemberM{},
	)
	if diff := cmp.Diff(want, streamimage.Item(item), ignore); diff != "" {
		t.Error(diff)
	}
}
