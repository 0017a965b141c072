// Package streamimage converts items of a table's stream from Lambda's types to the SDK's.
package streamimage

import (
	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func Item(image map[string]events.DynamoDBAttributeValue) map[string]types.AttributeValue {
	item := make(map[string]types.AttributeValue, len(image))
	for name, value := range image {
		item[name] = attribute(value)
	}
	return item
}

func attribute(v events.DynamoDBAttributeValue) types.AttributeValue {
	if v.IsNull() {
		return &types.AttributeValueMemberNULL{Value: true}
	}
	switch v.DataType() {
	case events.DataTypeBinary:
		return &types.AttributeValueMemberB{Value: v.Binary()}
	case events.DataTypeBinarySet:
		return &types.AttributeValueMemberBS{Value: v.BinarySet()}
	case events.DataTypeBoolean:
		return &types.AttributeValueMemberBOOL{Value: v.Boolean()}
	case events.DataTypeList:
		list := make([]types.AttributeValue, len(v.List()))
		for i, element := range v.List() {
			list[i] = attribute(element)
		}
		return &types.AttributeValueMemberL{Value: list}
	case events.DataTypeMap:
		return &types.AttributeValueMemberM{Value: Item(v.Map())}
	case events.DataTypeNumber:
		return &types.AttributeValueMemberN{Value: v.Number()}
	case events.DataTypeNumberSet:
		return &types.AttributeValueMemberNS{Value: v.NumberSet()}
	case events.DataTypeString:
		return &types.AttributeValueMemberS{Value: v.String()}
	case events.DataTypeStringSet:
		return &types.AttributeValueMemberSS{Value: v.StringSet()}
	default: // events.DataTypeNull
		return &types.AttributeValueMemberNULL{Value: true}
	}
}
