package dynamostore

import (
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// condition is a condition on the item as it is. Its text uses #name for attributes and :name for values.
type condition struct {
	text   string
	values item
}

var absent = condition{text: "attribute_not_exists(#pk)"}

func equal(name string, v types.AttributeValue) condition {
	return condition{text: "#" + name + " = :is_" + name, values: item{":is_" + name: v}}
}

// and joins conditions on different attributes.
func (c condition) and(others ...condition) condition {
	out := condition{text: c.text, values: item{}}
	for name, v := range c.values {
		out.values[name] = v
	}
	for _, o := range others {
		out.text += " AND " + o.text
		for name, v := range o.values {
			out.values[name] = v
		}
	}
	return out
}

// fails reports that the condition is known not to hold for the item. Of clauses other than plain equality and absence, and of those that
// OR joins, nothing is known here.
func (c condition) fails(it item) bool {
	if strings.Contains(c.text, " OR ") {
		return false
	}
	for clause := range strings.SplitSeq(c.text, " AND ") {
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
		if is, there := it[strings.TrimPrefix(name, "#")]; !there || !sameValue(is, c.values[value]) {
			return true
		}
	}
	return false
}

// names maps every #name of the expressions to name: reserved words never surprise.
func names(expressions ...string) map[string]string {
	out := map[string]string{}
	for _, e := range expressions {
		for i := strings.IndexByte(e, '#'); i >= 0; i = strings.IndexByte(e, '#') {
			e = e[i+1:]
			end := strings.IndexFunc(e, func(r rune) bool { return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') })
			if end < 0 {
				end = len(e)
			}
			out["#"+e[:end]] = e[:end]
		}
	}
	return out
}

func sameValue(a, b types.AttributeValue) bool {
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		b, ok := b.(*types.AttributeValueMemberS)
		return ok && a.Value == b.Value
	case *types.AttributeValueMemberN:
		b, ok := b.(*types.AttributeValueMemberN)
		return ok && a.Value == b.Value
	case *types.AttributeValueMemberB:
		b, ok := b.(*types.AttributeValueMemberB)
		return ok && slices.Equal(a.Value, b.Value)
	case *types.AttributeValueMemberM:
		b, ok := b.(*types.AttributeValueMemberM)
		if !ok || len(a.Value) != len(b.Value) {
			return false
		}
		for name, v := range a.Value {
			if w, has := b.Value[name]; !has || !sameValue(v, w) {
				return false
			}
		}
		return true
	default: // types that only a newer program writes: what did not change is not written again
		return reflect.DeepEqual(a, b)
	}
}
