package dynamostore

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// update writes one item: a plain write, conditional unless the condition is empty. ok is false when the condition failed. It
// returns the item afterwards.
func (s *Store) update(ctx context.Context, operation string, key item, text string, c condition, values item) (after item, ok bool, err error) {
	return s.updateOwn(ctx, operation, key, text, c, values, func(item) bool { return false })
}

// updateOwn is update for a caller that knows its own write again. What meets a transaction or is throttled is repeated, and the
// same request is sent again while its outcome is unknown. If its condition fails after that, wrote judges from the item as it is
// now whether the write is there.
func (s *Store) updateOwn(
	ctx context.Context, operation string, key item, text string, c condition, values item, wrote func(now item) bool,
) (after item, ok bool, err error) {
	all := item{}
	for _, from := range []item{c.values, values} {
		for name, v := range from {
			all[name] = v
		}
	}
	in := &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: key, UpdateExpression: &text, ExpressionAttributeNames: names(text, c.text),
		ExpressionAttributeValues: valuesOrNil(all), ReturnValues: types.ReturnValueAllNew,
	}
	if c.text != "" {
		in.ConditionExpression = &c.text
		in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	}
	err = s.plainWrite(ctx, operation, key, c, func(ctx context.Context) error {
		out, err := s.client.UpdateItem(ctx, in, sentOnce)
		if err == nil {
			after, ok = out.Attributes, true
		}
		return err
	}, func(now item, unknown bool) bool {
		if unknown && wrote(now) {
			after, ok = now, true
		}
		return ok
	})
	return after, ok, err
}

// sentOnce leaves repeating a plain write to the store: behind the SDK's own retries nobody knows whether a condition fails on
// what an earlier sending wrote.
func sentOnce(o *dynamodb.Options) { o.RetryMaxAttempts = 1 }

// plainWrite sends one write of an item, with a condition, until its answer is known. A condition that fails is no error: settle is told
// the item as it is now, and whether an earlier sending, whose outcome is unknown, may have made it so; it tells whether one did.
func (s *Store) plainWrite(
	ctx context.Context, operation string, key item, c condition, request func(context.Context) error, settle func(now item, unknown bool) bool,
) error {
	var unknown error
	lost, rounds := 0, 1
	for try := 1; ; try++ {
		err := s.send(ctx, request)
		if err == nil {
			return nil
		}
		if now, failed := isConditionFailure(err); failed {
			s.used(ctx, operation, Usage{Requests: 1, WriteUnits: 1})
			settle(now, unknown != nil)
			return nil
		}
		s.used(ctx, operation, Usage{Requests: 1})
		pause := 5*time.Millisecond + jitter(conflictBackoff)
		switch {
		case isTransactionConflict(err):
			s.meter.conflict()
			if try == maxConflictTries && rounds < maxConflictRounds && s.stillHolds(ctx, operation, key, c) {
				try = 0
				rounds++
			}
		case isThrottle(err):
			pause = throttled(try - 1)
		case refused(err):
			return s.settlePlain(ctx, operation, key, c, unknown != nil, err, settle)
		default:
			unknown = err
			lost++
			pause = throttleBackoff/4<<lost + jitter(throttleBackoff/4)
		}
		if try == maxConflictTries || lost == maxUnknownTries || sleep(ctx, pause) != nil {
			return s.settlePlain(ctx, operation, key, c, unknown != nil, err, settle)
		}
	}
}

// stillHolds reads whether the condition of a write that only met transactions holds by now: another round of tries is worth it then.
func (s *Store) stillHolds(ctx context.Context, operation string, key item, c condition) bool {
	now, err := s.getItem(ctx, operation, textOf(key[attrPK]), textOf(key[attrSK]))
	return err == nil && !c.fails(now)
}

// settlePlain ends a write that is not sent again. The item tells whether an unheard sending was carried out, and, where the write only
// met transactions, whether its condition fails by now.
func (s *Store) settlePlain(
	ctx context.Context, operation string, key item, c condition, unheard bool, cause error, settle func(now item, unknown bool) bool,
) error {
	err := s.failure(ctx, operation, cause)
	if !unheard && !isTransactionConflict(cause) {
		return withOutcome(err, "not committed")
	}
	if ctx.Err() == nil {
		now, readErr := s.getItem(ctx, operation, textOf(key[attrPK]), textOf(key[attrSK]))
		switch {
		case readErr != nil:
		case unheard && settle(now, true):
			return nil
		case !unheard && c.fails(now):
			settle(now, false)
			return nil
		}
	}
	if unheard {
		return unsettled(err)
	}
	return withOutcome(err, "not committed")
}
