// Package item has the types that packages rows and ddb share: items, conditions, and writes.
package item

import (
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Every sort key is between these two.
const (
	BeforeKeys = "\x01"
	BeyondKeys = "\U0010FFFF"
)

type Item = map[string]types.AttributeValue

// Size is the billed size: names and values, without the 100 bytes that only storage counts.
func Size(it Item) int {
	size := 0
	for name, v := range it {
		size += len(name) + valueSize(v)
	}
	return size
}

func valueSize(v types.AttributeValue) int {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return numberSize(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberM:
		size := 3
		for name, e := range v.Value {
			size += 1 + len(name) + valueSize(e)
		}
		return size
	case *types.AttributeValueMemberL:
		size := 3
		for _, e := range v.Value {
			size += 1 + valueSize(e)
		}
		return size
	default:
		return 1
	}
}

// numberSize is one byte for two significant digits, one more for the number, and one for a sign. Leading and trailing
// zeros do not count.
func numberSize(n string) int {
	size := 1
	if strings.HasPrefix(n, "-") {
		size++
	}
	digits := strings.Trim(strings.ReplaceAll(strings.TrimPrefix(n, "-"), ".", ""), "0")
	return size + (len(digits)+1)/2
}

func KeyOf(it Item) Item { return Item{PK: it[PK], SK: it[SK]} }

func Key(pk, sk string) Item {
	return Item{PK: &types.AttributeValueMemberS{Value: pk}, SK: &types.AttributeValueMemberS{Value: sk}}
}

func Text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func Num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// Number is the integer of a value; 0 for other values.
func Number(v types.AttributeValue) int64 {
	n, ok := v.(*types.AttributeValueMemberN)
	if !ok {
		return 0
	}
	out, err := strconv.ParseInt(n.Value, 10, 64)
	if err != nil {
		return 0
	}
	return out
}

// TextOf is the string of a value; "" for other values.
func TextOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

const (
	PK = "pk"
	SK = "sk"
)

// Units is the number of 1 KB write units of a size.
func Units(size int) int { return (size + 1023) / 1024 }
