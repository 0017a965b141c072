package dynamostore

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// member is one item of a transaction: a put of a new item, an update that changes what differs, or without after a delete. A check
// writes nothing, nor does an update without a difference: its condition has to hold all the same.
type member struct {
	before, after item
	condition     condition
	check         bool
	yields        bool // what refuses this member alone counts as its condition
}

func (m *member) write(table *string) types.TransactWriteItem {
	if m.check {
		return m.onlyCheck(table)
	}
	if m.before == nil {
		return types.TransactWriteItem{Put: &types.Put{
			TableName: table, Item: m.after, ConditionExpression: &m.condition.text, ExpressionAttributeNames: names(m.condition.text),
			ExpressionAttributeValues: valuesOrNil(m.condition.values), ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}}
	}
	if m.after == nil {
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName: table, Key: keyOf(m.before), ConditionExpression: &m.condition.text, ExpressionAttributeNames: names(m.condition.text),
			ExpressionAttributeValues: valuesOrNil(m.condition.values), ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}}
	}
	text, values := m.change()
	if text == "" {
		return m.onlyCheck(table)
	}
	return types.TransactWriteItem{Update: &types.Update{
		TableName: table, Key: keyOf(m.before), UpdateExpression: &text, ConditionExpression: &m.condition.text,
		ExpressionAttributeNames: names(text, m.condition.text), ExpressionAttributeValues: valuesOrNil(values),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

func (m *member) onlyCheck(table *string) types.TransactWriteItem {
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: table, Key: keyOf(m.before), ConditionExpression: &m.condition.text, ExpressionAttributeNames: names(m.condition.text),
		ExpressionAttributeValues: valuesOrNil(m.condition.values), ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// change is the update expression from before to after: only what differs is named.
func (m *member) change() (text string, values item) {
	var set, remove []string
	values = item{}
	for name, v := range m.condition.values {
		values[name] = v
	}
	for _, name := range sortedKeys(m.after) {
		if old, had := m.before[name]; !had || !sameValue(old, m.after[name]) {
			set = append(set, "#"+name+" = :to_"+name)
			values[":to_"+name] = m.after[name]
		}
	}
	for _, name := range sortedKeys(m.before) {
		if _, has := m.after[name]; !has {
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

// key is the member's item.
func (m *member) key() item {
	if m.before != nil {
		return keyOf(m.before)
	}
	return keyOf(m.after)
}

// update is a plain write of one item: an expression of #name and :name, as conditions are.
type update struct {
	key        item
	expression string
	values     item
	condition  condition // none: always
	before     item      // as far as it is known; what it takes in units may be less than billed otherwise
	// wrote tells by the item as it is now whether this write is there, should its answer get lost. nil: nothing tells.
	wrote func(now item) bool
}

// lost is a write whose condition failed, with the item that made it fail.
type lost struct {
	index int
	old   item // nil: there is no item
}

// proof is an item by which a transaction is known to have been carried out, whatever became of the answer: it has these values. Nil
// stands for an attribute that is absent. The zero proof says that nothing tells.
type proof struct {
	operation string // of reading it
	pk, sk    string
	values    item
}

func (p *proof) holds(it item) bool {
	for name, want := range p.values {
		is, there := it[name]
		if there != (want != nil) || there && !sameValue(is, want) {
			return false
		}
	}
	return it != nil
}

func oldOf(failed []lost, index int) item {
	for _, f := range failed {
		if f.index == index {
			return f.old
		}
	}
	return nil
}
