package dynamostore

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
)

func TestFormat_ItemsWithoutANumberAreOfTheFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		v     types.AttributeValue
		newer bool
	}{
		"none":          {nil, false},
		"the first":     {num(1), false},
		"ours":          {num(format), false},
		"the next":      {num(format + 1), true},
		"zero":          {num(0), true},
		"no number":     {text("1"), true},
		"beyond int64":  {&types.AttributeValueMemberN{Value: "1e30"}, true},
		"not a whole":   {&types.AttributeValueMemberN{Value: "1.5"}, true},
		"below nothing": {num(-1), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			it := itemKey("test:run:run_1", skRun)
			if c.v != nil {
				it[attrFormat] = c.v
			}
			if got := newer(it); got != c.newer {
				t.Fatalf("newer: %t", got)
			}
			var r runItem
			err := unmarshalItem(it, &r)
			refused, ok := errors.AsType[*runlane.Error](err)
			switch {
			case !c.newer && err != nil:
				t.Error(err)
			case c.newer && (!ok || !errors.Is(err, errNewer) || refused.RunID != "run_1" || refused.Retryable || refused.Hint == ""):
				t.Errorf("%+v", err)
			}
		})
	}
}

// No struct that describes an item has a field of the number's name: it would be lost on the way.
func TestFormat_TheNumbersNameIsFree(t *testing.T) {
	t.Parallel()
	if _, taken := runAttributes()[attrFormat]; taken {
		t.Error("a run item has it")
	}
	for _, name := range scheduleAttributes {
		if name == attrFormat {
			t.Error("a schedule's put would remove it")
		}
	}
}

// What a newer program added is not named in an update that leaves it as it is: the value in hand may be older than the one stored.
func TestChange_NamesNothingThatIsTheSame(t *testing.T) {
	t.Parallel()
	values := map[string]func() types.AttributeValue{
		"text":    func() types.AttributeValue { return text("x") },
		"number":  func() types.AttributeValue { return num(1) },
		"bytes":   func() types.AttributeValue { return &types.AttributeValueMemberB{Value: []byte("x")} },
		"flag":    func() types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: true} },
		"nothing": func() types.AttributeValue { return &types.AttributeValueMemberNULL{Value: true} },
		"list": func() types.AttributeValue {
			return &types.AttributeValueMemberL{Value: []types.AttributeValue{num(1)}}
		},
		"map":   func() types.AttributeValue { return &types.AttributeValueMemberM{Value: item{"a": num(1)}} },
		"texts": func() types.AttributeValue { return &types.AttributeValueMemberSS{Value: []string{"x"}} },
	}
	for name, value := range values {
		m := member{before: item{"zz": value(), "sq": num(1)}, after: item{"zz": value(), "sq": num(2)}}
		if expression, _ := m.change(); expression != "SET #sq = :to_sq" {
			t.Errorf("%s: %s", name, expression)
		}
		for other, different := range values {
			if other != name && sameValue(value(), different()) {
				t.Errorf("%s and %s are the same", name, other)
			}
		}
	}
}
