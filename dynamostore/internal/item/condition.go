package item

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Condition is a condition on the stored item. Its text has #name for attributes and :name for values.
type Condition struct {
	Text   string
	Values Item
}

// Absent requires that the item does not exist.
var Absent = Condition{Text: "attribute_not_exists(#pk)"}

func Equal(name string, v types.AttributeValue) Condition {
	return Condition{Text: "#" + name + " = :is_" + name, Values: Item{":is_" + name: v}}
}

func (c Condition) And(others ...Condition) Condition {
	out := Condition{Text: c.Text, Values: Item{}}
	for name, v := range c.Values {
		out.Values[name] = v
	}
	for _, o := range others {
		out.Text += " AND " + o.Text
		for name, v := range o.Values {
			out.Values[name] = v
		}
	}
	return out
}

func (c Condition) expression() *string {
	if c.Text == "" {
		return nil
	}
	return &c.Text
}

// Fails reports that the condition certainly does not hold for the item. It knows only equality and absence, joined by
// AND.
func (c Condition) Fails(it Item) bool {
	if strings.Contains(c.Text, " OR ") {
		return false
	}
	for clause := range strings.SplitSeq(c.Text, " AND ") {
		if name, ok := strings.CutPrefix(clause, "attribute_not_exists(#"); ok {
			if _, there := it[strings.TrimSuffix(name, ")")]; there {
				return true
			}
			continue
		}
		name, value, ok := strings.Cut(clause, " = ")
		if !ok || strings.ContainsAny(name, ".[(") {
			continue
		}
		if is, there := it[strings.TrimPrefix(name, "#")]; !there || !SameValue(is, c.Values[value]) {
			return true
		}
	}
	return false
}
