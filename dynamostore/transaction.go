package dynamostore

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
)

// Bounds of repeating one transaction.
const (
	maxConflictTries = 8
	maxUnknownTries  = 4
	conflictBackoff  = 80 * time.Millisecond
	throttleBackoff  = 250 * time.Millisecond
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

// usage is what the member costs in a transaction: twice the item, once the index entries.
func (m *member) usage() float64 {
	size := max(itemSize(m.before), itemSize(m.after))
	return float64(2*max(units(size), 1) + indexUnits(m.before, m.after))
}

// Every transaction begins with the run and the commit's log item.
const (
	runMember = 0
	logMember = 1
)

// lost is a member whose condition failed, with the item that made it fail.
type lost struct {
	index int
	old   item // nil: there is no item
	slot  bool // the member is about a slot
}

// transact commits all members or none. It re-sends the same request while its outcome is unknown, and repeats it in place while
// it only meets other transactions. Conditions that fail are returned, to be judged by the caller; won tells whether an earlier
// sending of this very request did commit, judged by the old image of the log member or by reading it.
func (s *Store) transact(
	ctx context.Context, operation, token string, members []member, won func(ctx context.Context, old item) (bool, error),
) ([]lost, error) {
	in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: &token}
	usage, entries := Usage{Requests: 1}, 0.0
	for i := range members {
		in.TransactItems = append(in.TransactItems, members[i].write(&s.table))
		usage.WriteUnits += members[i].usage()
		entries += float64(indexUnits(members[i].before, members[i].after))
	}
	conflicts, unknown := 0, 0
	var unheard error // of the last sending whose outcome is unknown
	for {
		err := s.send(ctx, func(ctx context.Context) error {
			_, err := s.client.TransactWriteItems(ctx, in)
			return err
		})
		spent := usage
		cancelled, wasCancelled := errors.AsType[*types.TransactionCanceledException](err)
		if wasCancelled {
			spent.WriteUnits -= entries // it put none
		}
		s.used(ctx, operation, spent)
		if err == nil {
			return nil, nil
		}
		var pause time.Duration
		if wasCancelled {
			reasons := cancelled.CancellationReasons
			if unheard == nil {
				reasons = yielding(members, reasons)
			}
			failed, met, other := judgeReasons(reasons)
			switch {
			case other != "":
				if !isRate(other) {
					return nil, &runlane.Error{Code: runlane.ErrContractViolation, Message: operation + ": DynamoDB refused a member: " + other, Cause: err}
				}
				pause = throttled(conflicts)
			case len(failed) > 0 && (!met || final(members, failed)):
				if log := oldOf(failed, logMember); log != nil {
					if ours, err := won(ctx, log); err != nil || ours {
						return nil, err
					}
				}
				return failed, nil
			default: // met another transaction, or one reports a condition that the other's end may resolve
				s.meter.conflict()
				pause = 5*time.Millisecond + jitter(conflictBackoff-5*time.Millisecond)
			}
			if conflicts++; conflicts >= maxConflictTries {
				if unheard != nil { // what was refused later does not tell what became of that one
					return nil, s.settle(ctx, operation, unheard, won)
				}
				return nil, &runlane.Error{
					Code: runlane.ErrStorageUnavailable, Message: operation + ": met other transactions on the same items too often", Retryable: true,
					Hint: "try again", Meta: map[string]string{"outcome": "not committed"}, Cause: err,
				}
			}
		} else {
			if refused(err) && !isThrottle(err) {
				return nil, s.failure(ctx, operation, err)
			}
			if unknown++; !refused(err) {
				unheard = err
			}
			if ctx.Err() != nil || unknown >= maxUnknownTries {
				return nil, s.settle(ctx, operation, err, won)
			}
			pause = throttleBackoff/4<<unknown + jitter(throttleBackoff/4)
		}
		if sleep(ctx, pause) != nil {
			return nil, s.settle(ctx, operation, err, won)
		}
	}
}

// settle ends a commit whose outcome is unknown: the log item of its sequence tells who made that commit, however late we ask.
func (s *Store) settle(ctx context.Context, operation string, cause error, won func(context.Context, item) (bool, error)) error {
	if ctx.Err() == nil {
		if ours, err := won(ctx, nil); err == nil && ours {
			return nil
		}
	}
	return s.failure(ctx, operation, cause)
}

// send bounds one request.
func (s *Store) send(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return request(ctx)
}

// yielding are the reasons of a cancelled transaction, those of members that yield as failed conditions: where no other member was
// refused for its rate or met another transaction, there is nothing to wait for.
func yielding(members []member, reasons []types.CancellationReason) []types.CancellationReason {
	out := slices.Clone(reasons)
	for i := range out {
		switch code := aws.ToString(out[i].Code); {
		case code == "" || code == "None" || code == "ConditionalCheckFailed":
		case i >= len(members) || !members[i].yields || code != "TransactionConflict" && !isRate(code):
			return reasons
		default:
			out[i] = types.CancellationReason{Code: aws.String("ConditionalCheckFailed")}
		}
	}
	return out
}

// isRate reports a member's refusal for its rate.
func isRate(code string) bool {
	return strings.Contains(code, "Throttling") || strings.Contains(code, "Throughput")
}

// judgeReasons sorts the positional reasons of a cancelled transaction.
func judgeReasons(reasons []types.CancellationReason) (failed []lost, met bool, other string) {
	for i, r := range reasons {
		switch code := aws.ToString(r.Code); code {
		case "", "None":
		case "ConditionalCheckFailed":
			failed = append(failed, lost{index: i, old: r.Item})
		case "TransactionConflict":
			met = true
		default:
			other = code
		}
	}
	return failed, met, other
}

// final reports a run that is already at a higher sequence: no retry can help, even beside a conflict on another member.
func final(members []member, failed []lost) bool {
	for _, f := range failed {
		if f.index != runMember || f.old == nil {
			continue
		}
		if members[runMember].before == nil {
			return true // the run exists
		}
		return number(f.old["sq"]) > number(members[runMember].before["sq"])
	}
	return false
}

func oldOf(failed []lost, index int) item {
	for _, f := range failed {
		if f.index == index {
			return f.old
		}
	}
	return nil
}

func keyOf(it item) item { return item{attrPK: it[attrPK], attrSK: it[attrSK]} }

func itemKey(pk, sk string) item {
	return item{attrPK: &types.AttributeValueMemberS{Value: pk}, attrSK: &types.AttributeValueMemberS{Value: sk}}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func number(v types.AttributeValue) int64 {
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

func textOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
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

func valuesOrNil(values item) item {
	if len(values) == 0 {
		return nil
	}
	return values
}

func sortedKeys(it item) []string {
	keys := make([]string, 0, len(it))
	for name := range it {
		keys = append(keys, name)
	}
	slices.Sort(keys)
	return keys
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
