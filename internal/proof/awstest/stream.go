package awstest

import (
	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// StreamImage turns an item of a table into the image of a stream's record, as functions get it.
func StreamImage(item map[string]types.AttributeValue) map[string]events.DynamoDBAttributeValue {
	out := map[string]events.DynamoDBAttributeValue{}
	for name, value := range item {
		out[name] = streamValue(value)
	}
	return out
}

func streamValue(v types.AttributeValue) events.DynamoDBAttributeValue {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return events.NewStringAttribute(v.Value)
	case *types.AttributeValueMemberN:
		return events.NewNumberAttribute(v.Value)
	case *types.AttributeValueMemberB:
		return events.NewBinaryAttribute(v.Value)
	case *types.AttributeValueMemberBOOL:
		return events.NewBooleanAttribute(v.Value)
	case *types.AttributeValueMemberM:
		return events.NewMapAttribute(StreamImage(v.Value))
	case *types.AttributeValueMemberL:
		var list []events.DynamoDBAttributeValue
		for _, element := range v.Value {
			list = append(list, streamValue(element))
		}
		return events.NewListAttribute(list)
	default:
		return events.NewNullAttribute()
	}
}
