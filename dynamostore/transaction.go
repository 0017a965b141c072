package dynamostore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
)

// Bounds of repeating one transaction.
const (
	maxConflictTries  = 8
	triesBeforeLook   = 2 // of these: then the members are read
	maxConflictRounds = 3 // of so many tries, while reading tells that nobody has won
	maxUnknownTries   = 4
	conflictBackoff   = 80 * time.Millisecond
	throttleBackoff   = 250 * time.Millisecond
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

// transaction is one TransactWriteItems on its way: the same bytes, however often they are sent.
type transaction struct {
	operation string
	members   []member
	// own tells whether the transaction was carried out, judged by the old image of the log member, or by reading where that is nil.
	own func(ctx context.Context, old item) (bool, error)

	in      *dynamodb.TransactWriteItemsInput
	encoded encodedOnce
	usage   Usage
	entries float64 // units for index entries, which a cancelled transaction does not put

	tries, rounds, unknown int
	unheard                error // of the last sending whose outcome is unknown
}

// transact commits all members or none. It sends the same request again while its outcome is unknown, and repeats it in place while
// it only meets other transactions. Conditions that fail are returned, to be judged by the caller.
func (s *Store) transact(
	ctx context.Context, operation, token string, members []member, own func(ctx context.Context, old item) (bool, error),
) ([]lost, error) {
	t := &transaction{operation: operation, members: members, own: own, usage: Usage{Requests: 1}}
	t.in = &dynamodb.TransactWriteItemsInput{ClientRequestToken: &token}
	for i := range members {
		t.in.TransactItems = append(t.in.TransactItems, members[i].write(&s.table))
		t.usage.WriteUnits += members[i].usage()
		t.entries += float64(indexUnits(members[i].before, members[i].after))
	}
	for {
		err := s.send(ctx, func(ctx context.Context) error {
			_, err := s.client.TransactWriteItems(ctx, t.in, sentOnce, t.encoded.option)
			return err
		})
		cancelled, wasCancelled := errors.AsType[*types.TransactionCanceledException](err)
		spent := t.usage
		if wasCancelled {
			spent.WriteUnits -= t.entries
		}
		s.used(ctx, operation, spent)
		var pause time.Duration
		var failed []lost
		over := false
		switch {
		case err == nil:
			return nil, nil
		case wasCancelled:
			pause, failed, over, err = s.cancelled(ctx, t, cancelled)
		case isThrottle(err):
			pause = throttled(t.tries)
			t.tries++
			over = t.tries == maxConflictTries
		case refused(err):
			over = true
		default:
			t.unheard = err
			t.unknown++
			over = t.unknown == maxUnknownTries
			pause = throttleBackoff/4<<t.unknown + jitter(throttleBackoff/4)
		}
		if failed != nil {
			return s.lostTo(ctx, t, failed)
		}
		if over || ctx.Err() != nil || sleep(ctx, pause) != nil {
			return s.settle(ctx, t, err)
		}
	}
}

// cancelled judges a cancelled transaction: conditions that failed, or a pause before it is tried again, or that it is over with err.
func (s *Store) cancelled(
	ctx context.Context, t *transaction, cancelled *types.TransactionCanceledException,
) (pause time.Duration, failed []lost, over bool, err error) {
	reasons := cancelled.CancellationReasons
	if t.unheard == nil {
		reasons = yielding(t.members, reasons)
	}
	failed, met, other := judgeReasons(reasons)
	t.tries++
	switch {
	case other != "" && !isRate(other):
		return 0, nil, true, &runlane.Error{
			Code: runlane.ErrContractViolation, Message: t.operation + ": DynamoDB refused a member: " + other, Cause: cancelled,
		}
	case other != "":
		return throttled(t.tries - 1), nil, t.tries == maxConflictTries, &runlane.Error{
			Code: runlane.ErrStorageUnavailable, Message: t.operation + ": throttled", Retryable: true,
			Hint: "raise the table's throughput, or try again later", Cause: cancelled,
		}
	case len(failed) > 0 && (!met || final(t.members, failed)):
		return 0, failed, false, nil
	}
	// It met another transaction, or one reports a condition that the other's end may resolve.
	s.meter.conflict()
	if t.tries%triesBeforeLook == 0 {
		now, readErr := s.failing(ctx, t.members)
		if len(now) > 0 {
			return 0, now, false, nil
		}
		if t.tries == maxConflictTries && readErr == nil && t.rounds < maxConflictRounds-1 { // nobody has won yet
			t.tries = 0
			t.rounds++
		}
	}
	pause = 5*time.Millisecond + jitter(conflictBackoff-5*time.Millisecond)
	return pause, nil, t.tries == maxConflictTries, &runlane.Error{
		Code: runlane.ErrStorageUnavailable, Message: t.operation + ": met other transactions on the same items too often", Retryable: true,
		Hint: "try again", Cause: cancelled,
	}
}

// failing reads the members strongly and returns those whose condition does not hold by now: while transactions only meet each other, no
// answer says who has won. What else stands under the run's key is left out: the run's condition tells the same.
func (s *Store) failing(ctx context.Context, members []member) ([]lost, error) {
	run := textOf(members[runMember].key()[attrPK])
	apart := func(i int) bool { return i == runMember || textOf(members[i].key()[attrPK]) != run }
	keys := make([]item, 0, len(members))
	for i := range members {
		if apart(i) {
			keys = append(keys, members[i].key())
		}
	}
	found := map[string]item{}
	err := s.batchGet(ctx, "settle conflict", keys, func(it item) error {
		found[textOf(it[attrPK])+" "+textOf(it[attrSK])] = it
		return nil
	})
	if err != nil {
		return nil, err
	}
	var failed []lost
	for i := range members {
		key := members[i].key()
		old := found[textOf(key[attrPK])+" "+textOf(key[attrSK])]
		if apart(i) && members[i].condition.fails(old) {
			failed = append(failed, lost{index: i, old: old})
		}
	}
	return failed, nil
}

// lostTo returns the conditions that failed, unless they did on what an earlier sending of this very transaction wrote.
func (s *Store) lostTo(ctx context.Context, t *transaction, failed []lost) ([]lost, error) {
	log := oldOf(failed, logMember)
	if log == nil && t.unheard == nil {
		return failed, nil
	}
	switch own, err := t.own(ctx, log); {
	case err != nil:
		return nil, unsettled(err)
	case own:
		return nil, nil
	}
	return failed, nil
}

// settle ends a transaction that is not tried again. If a sending was not heard, the log item of its sequence tells who made that
// commit, however late we ask; nothing that was refused later does.
func (s *Store) settle(ctx context.Context, t *transaction, cause error) ([]lost, error) {
	if ctx.Err() != nil {
		cause = ctx.Err()
	}
	err := s.failure(ctx, t.operation, cause)
	if t.unheard == nil {
		return nil, withOutcome(err, "not committed")
	}
	if ctx.Err() == nil {
		own, readErr := t.own(ctx, nil)
		if readErr == nil && own {
			return nil, nil
		}
		if failed, readErr := s.failing(ctx, t.members); readErr == nil && len(failed) > 0 && failed[0].index == runMember {
			return s.lostTo(ctx, t, failed) // the run is further on, so what was not heard cannot be carried out any more
		}
	}
	return nil, unsettled(err)
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
