package item

import (
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Write is one item of a transaction: a put without Before, a delete without After, else an update of the differences.
// A check, or an update without a difference, only requires its condition.
type Write struct {
	Before, After Item
	Condition     Condition
	Check         bool
	Yields        bool // a throttle or conflict of this member alone counts as its failed condition
}

func (m *Write) Part(table *string) types.TransactWriteItem {
	if m.Check {
		return m.asCheck(table)
	}
	if m.Before == nil {
		return types.TransactWriteItem{Put: &types.Put{
			TableName:                           table,
			Item:                                m.After,
			ConditionExpression:                 m.Condition.expression(),
			ExpressionAttributeNames:            Names(m.Condition.Text),
			ExpressionAttributeValues:           OrNil(m.Condition.Values),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}}
	}
	if m.After == nil {
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName:                           table,
			Key:                                 KeyOf(m.Before),
			ConditionExpression:                 m.Condition.expression(),
			ExpressionAttributeNames:            Names(m.Condition.Text),
			ExpressionAttributeValues:           OrNil(m.Condition.Values),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}}
	}
	text, values := m.Change()
	if text == "" {
		return m.asCheck(table)
	}
	return types.TransactWriteItem{Update: &types.Update{
		TableName:                           table,
		Key:                                 KeyOf(m.Before),
		UpdateExpression:                    &text,
		ConditionExpression:                 &m.Condition.Text,
		ExpressionAttributeNames:            Names(text, m.Condition.Text),
		ExpressionAttributeValues:           OrNil(values),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

func (m *Write) asCheck(table *string) types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName:                           table,
		Key:                                 KeyOf(m.Before),
		ConditionExpression:                 &m.Condition.Text,
		ExpressionAttributeNames:            Names(m.Condition.Text),
		ExpressionAttributeValues:           OrNil(m.Condition.Values),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// Change is the update expression from Before to After, of the attributes that differ.
func (m *Write) Change() (text string, values Item) {
	var set, remove []string
	values = Item{}
	for name, v := range m.Condition.Values {
		values[name] = v
	}
	for _, name := range SortedKeys(m.After) {
		if old, had := m.Before[name]; !had || !SameValue(old, m.After[name]) {
			set = append(set, "#"+name+" = :to_"+name)
			values[":to_"+name] = m.After[name]
		}
	}
	for _, name := range SortedKeys(m.Before) {
		if _, has := m.After[name]; !has {
			remove = append(remove, "#"+name)
		}
	}
	if len(set) > 0 {
		text = "SET " + strings.Join(set, ", ")
	}
	if len(remove) > 0 {
		text = strings.TrimSpace(text + " REMOVE " + strings.Join(remove, ", "))
	}
	return text, values
}

func SameValue(a, b types.AttributeValue) bool {
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
			if w, has := b.Value[name]; !has || !SameValue(v, w) {
				return false
			}
		}
		return true
	default: // a type of newer programs only
		return reflect.DeepEqual(a, b)
	}
}

func SortedKeys(it Item) []string {
	keys := make([]string, 0, len(it))
	for name := range it {
		keys = append(keys, name)
	}
	slices.Sort(keys)
	return keys
}

func (m *Write) Key() Item {
	if m.Before != nil {
		return KeyOf(m.Before)
	}
	return KeyOf(m.After)
}

// Update is a plain write of one item. Expression has #name and :name like a condition.
type Update struct {
	Key        Item
	Expression string
	Values     Item
	Condition  Condition // empty: always
	Before     Item      // if known; otherwise the counted units may be lower than the billed ones
	// Wrote decides from the current item whether a write without an answer was carried out. nil: the item does not
	// show it.
	Wrote func(now Item) bool
}

type Lost struct {
	Index int
	Old   Item // nil: no item
}

// Proof has the values of an item that show that a transaction was carried out. Nil is an absent attribute. The zero
// proof shows nothing.
type Proof struct {
	Operation string // of the read
	Pk, Sk    string
	Values    Item
	// Shared: another transaction may write the same values. It proves nothing if every sending was answered.
	Shared bool
}

// Holds reports whether the item has the proof's values; false if there is no item.
func (p *Proof) Holds(it Item) bool {
	for name, want := range p.Values {
		is, there := it[name]
		if there != (want != nil) || there && !SameValue(is, want) {
			return false
		}
	}
	return it != nil
}

// OldOf is the item that a write found; nil if its condition held or there is none.
func OldOf(failed []Lost, index int) Item {
	for _, f := range failed {
		if f.Index == index {
			return f.Old
		}
	}
	return nil
}

// Names maps every #name of the expressions to name, so that reserved words need no special treatment. It is nil for
// none: DynamoDB refuses an empty map.
func Names(expressions ...string) (out map[string]string) {
	for _, e := range expressions {
		for i := strings.IndexByte(e, '#'); i >= 0; i = strings.IndexByte(e, '#') {
			e = e[i+1:]
			end := strings.IndexFunc(e, func(r rune) bool {
				return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
			})
			if end < 0 {
				end = len(e)
			}
			if out == nil {
				out = map[string]string{}
			}
			out["#"+e[:end]] = e[:end]
		}
	}
	return out
}

// OrNil returns nil for no values: DynamoDB refuses an empty map.
func OrNil(values Item) Item {
	if len(values) == 0 {
		return nil
	}
	return values
}
