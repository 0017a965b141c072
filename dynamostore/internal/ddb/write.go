package ddb

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go/dynamostore/internal/item"
)

// Update writes one item. It returns the item after the write, or with ok false the item that failed the condition; nil
// if unknown. It repeats the request after a conflict, a throttle, or an unknown outcome. If the condition fails after
// an unknown outcome, u.Wrote decides whether the write was carried out.
func (t *Table) Update(ctx context.Context, operation string, u *item.Update) (after item.Item, ok bool, err error) {
	all := item.Item{}
	for _, from := range []item.Item{u.Condition.Values, u.Values} {
		for name, v := range from {
			all[name] = v
		}
	}
	in := &dynamodb.UpdateItemInput{
		TableName:                 &t.Name,
		Key:                       u.Key,
		UpdateExpression:          &u.Expression,
		ExpressionAttributeNames:  item.Names(u.Expression, u.Condition.Text),
		ExpressionAttributeValues: item.OrNil(all),
		ReturnValues:              types.ReturnValueAllNew,
	}
	if u.Condition.Text != "" {
		in.ConditionExpression = &u.Condition.Text
		in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	}
	err = t.plainWrite(ctx, operation, u.Key, u.Condition, func(ctx context.Context) error {
		out, err := t.Client.UpdateItem(ctx, in, SentOnce)
		if err == nil {
			after, ok = out.Attributes, true
		}
		return err
	}, func(now item.Item, unknown bool) bool {
		after, ok = now, unknown && u.Wrote != nil && u.Wrote(now)
		return ok
	})
	if ok {
		t.Meter.Used(ctx, operation, writeUsage(t.Indexes, u.Before, after))
	}
	return after, ok, err
}

type Removal int

// The outcomes of deleting an item.
const (
	Removed Removal = iota
	Missing         // it was already gone
	Kept            // the condition failed: it is not the item that was read
)

// Delete deletes an item if seen holds. It is repeated in doubt: deleting twice does no harm.
func (t *Table) Delete(ctx context.Context, operation string, it item.Item, seen item.Condition) (Removal, error) {
	in := &dynamodb.DeleteItemInput{TableName: &t.Name, Key: item.KeyOf(it)}
	if seen.Text != "" {
		in.ConditionExpression, in.ExpressionAttributeNames = &seen.Text, item.Names(seen.Text)
		in.ExpressionAttributeValues = seen.Values
		in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	}
	result := Missing
	err := t.plainWrite(ctx, operation, in.Key, seen, func(ctx context.Context) error {
		_, err := t.Client.DeleteItem(ctx, in, SentOnce)
		if err == nil {
			result = Removed
			t.Meter.Used(ctx, operation, writeUsage(t.Indexes, it, nil))
		}
		return err
	}, func(now item.Item, unknown bool) bool {
		switch {
		case len(now) > 0:
			result = Kept
		case unknown:
			result = Removed // by an earlier sending
		}
		return result == Removed
	})
	return result, err
}

// plainWrite sends one conditional write until its outcome is known. If the condition fails, settle gets the current
// item and whether an earlier sending may have written it; it returns whether it did.
func (t *Table) plainWrite(
	ctx context.Context,
	operation string,
	key item.Item,
	c item.Condition,
	request func(context.Context) error,
	settle func(now item.Item, unknown bool) bool,
) error {
	var unknown error
	lost, rounds := 0, 1
	for try := 1; ; try++ {
		err := t.write(ctx, request)
		if err == nil {
			return nil
		}
		if now, failed := isConditionFailure(err); failed {
			t.Meter.Used(ctx, operation, Usage{Requests: 1, WriteUnits: 1})
			settle(now, unknown != nil)
			return nil
		}
		t.Meter.Used(ctx, operation, Usage{Requests: 1})
		pause := 5*time.Millisecond + jitter(conflictBackoff)
		switch {
		case isTransactionConflict(err):
			t.Meter.Conflict()
			if try == maxConflictTries && rounds < maxConflictRounds && t.stillHolds(ctx, operation, key, c) {
				try = 0
				rounds++
			}
		case isThrottle(err):
			pause = throttlePause(try - 1)
		case refused(err):
			return t.settlePlain(ctx, operation, key, c, unknown != nil, err, settle)
		default:
			unknown = err
			lost++
			pause = throttleBackoff/4<<lost + jitter(throttleBackoff/4)
		}
		if try == maxConflictTries || lost == MaxUnknownTries || Sleep(ctx, pause) != nil {
			return t.settlePlain(ctx, operation, key, c, unknown != nil, err, settle)
		}
	}
}

// stillHolds reads whether the condition still holds after conflicts with transactions, so that another round makes
// sense.
func (t *Table) stillHolds(ctx context.Context, operation string, key item.Item, c item.Condition) bool {
	now, err := t.Get(ctx, operation, item.TextOf(key[item.PK]), item.TextOf(key[item.SK]))
	return err == nil && !c.Fails(now)
}

// settlePlain ends a write that is not sent again. The item decides whether an unanswered sending was carried out, or
// whether the condition fails after conflicts.
func (t *Table) settlePlain(
	ctx context.Context,
	operation string,
	key item.Item,
	c item.Condition,
	unanswered bool,
	cause error,
	settle func(now item.Item, unknown bool) bool,
) error {
	err := t.Failure(ctx, operation, cause)
	if !unanswered && !isTransactionConflict(cause) {
		return withOutcome(err, "not committed")
	}
	if ctx.Err() == nil {
		now, readErr := t.Get(ctx, operation, item.TextOf(key[item.PK]), item.TextOf(key[item.SK]))
		switch {
		case readErr != nil:
		case unanswered && settle(now, true):
			return nil
		case !unanswered && c.Fails(now):
			settle(now, false)
			return nil
		}
	}
	if unanswered {
		return withUnknownOutcome(err)
	}
	return withOutcome(err, "not committed")
}
