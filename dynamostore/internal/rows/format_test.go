package rows

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
)

func TestFormat_ItemsWithoutANumberAreOfTheFirst(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		v     types.AttributeValue
		newer bool
	}{
		"none":          {nil, false},
		"the first":     {item.Num(1), false},
		"ours":          {item.Num(Format), false},
		"the next":      {item.Num(Format + 1), true},
		"zero":          {item.Num(0), true},
		"no number":     {item.Text("1"), true},
		"beyond int64":  {&types.AttributeValueMemberN{Value: "1e30"}, true},
		"not a whole":   {&types.AttributeValueMemberN{Value: "1.5"}, true},
		"below nothing": {item.Num(-1), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			it := item.Key("test:run:run_1", RunSK)
			if c.v != nil {
				it[AttrFormat] = c.v
			}
			if got := Newer(it); got != c.newer {
				t.Fatalf("newer: %t", got)
			}
			var r Run
			err := Unmarshal(it, &r)
			refused, ok := errors.AsType[*runlane.Error](err)
			switch {
			case !c.newer && err != nil:
				t.Error(err)
			case c.newer && (!ok || !errors.Is(err, ErrNewer) || refused.RunID != "run_1" || refused.Retryable || refused.Hint == ""):
				t.Errorf("%+v", err)
			}
		})
	}
}

// No struct that describes an item has a field of the number's name: it would be lost on the way.
func TestFormat_TheNumbersNameIsFree(t *testing.T) {
	t.Parallel()
	if _, taken := runAttributes()[AttrFormat]; taken {
		t.Error("a run item has it")
	}
	for _, name := range scheduleAttributes {
		if name == AttrFormat {
			t.Error("a schedule's put would remove it")
		}
	}
}

// What a newer program added is not named in an update that leaves it as it is: the value in hand may be older than the one stored.
func TestChange_NamesNothingThatIsTheSame(t *testing.T) {
	t.Parallel()
	values := map[string]func() types.AttributeValue{
		"text":    func() types.AttributeValue { return item.Text("x") },
		"number":  func() types.AttributeValue { return item.Num(1) },
		"bytes":   func() types.AttributeValue { return &types.AttributeValueMemberB{Value: []byte("x")} },
		"flag":    func() types.AttributeValue { return &types.AttributeValueMemberBOOL{Value: true} },
		"nothing": func() types.AttributeValue { return &types.AttributeValueMemberNULL{Value: true} },
		"list": func() types.AttributeValue {
			return &types.AttributeValueMemberL{Value: []types.AttributeValue{item.Num(1)}}
		},
		"map":   func() types.AttributeValue { return &types.AttributeValueMemberM{Value: item.Item{"a": item.Num(1)}} },
		"texts": func() types.AttributeValue { return &types.AttributeValueMemberSS{Value: []string{"x"}} },
	}
	for name, value := range values {
		m := item.Write{Before: item.Item{"zz": value(), "sq": item.Num(1)}, After: item.Item{"zz": value(), "sq": item.Num(2)}}
		if expression, _ := m.Change(); expression != "SET #sq = :to_sq" {
			t.Errorf("%s: %s", name, expression)
		}
		for other, different := range values {
			if other != name && item.SameValue(value(), different()) {
				t.Errorf("%s and %s are the same", name, other)
			}
		}
	}
}
