package dynamostore

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// MaxWrites is the greatest number of [Writes]: a transaction has at most 100 items and 4 MB, of which the run takes at
// most 20 items and 400 KB.
const MaxWrites = 80

// Writes are the application's own writes in the transaction that creates a run, to any tables of the account and Region
// but the store's: set them as runlane.TriggerOptions.Writes. The run exists if and only if they were made. The store
// sends them again with the same token while an outcome is unknown, and after conflicts with other transactions, for
// example for the run's keys and slots; so they must not depend on values that the caller reads meanwhile without a
// condition.
//
// A refused write is runlane.ErrStorageConflict with runlane.ConflictWrites, of which errors.As finds the SDK's
// *types.TransactionCanceledException, with one reason for each of the writes, in their order. More than [MaxWrites], or
// one to the store's table, is runlane.ErrValidationFailed. The caller's credentials need the rights for the writes.
//
// A trigger that returns an existing run makes no writes, and its TriggerResult.Outcome says so. The run of an
// idempotency key has those of its own creation, if every trigger with the key has them; the run of a singleton key, with
// ReturnActive, may have others.
type Writes []types.TransactWriteItem

// Kind implements runlane.Writes.
func (Writes) Kind() string { return "dynamostore.Writes" }

// checkWrites returns the writes of a creation.
func (s *Store) checkWrites(c *lane.AppendCommand) (Writes, error) {
	if c.Writes == nil {
		return nil, nil
	}
	writes, ok := c.Writes.(Writes)
	if !ok {
		return nil, badWrites("use dynamostore.Writes", "TriggerOptions.Writes is %s", c.Writes.Kind())
	}
	if len(writes) > MaxWrites {
		return nil, badWrites("leave some to the task, which executes at least once",
			"a trigger takes at most %d writes, not %d", MaxWrites, len(writes))
	}
	for i := range writes {
		if tableName(tableOf(&writes[i])) == tableName(s.db.Name) {
			return nil, badWrites("keep your own items in tables of your own", "write %d is to the table of the runs", i)
		}
	}
	return writes, nil
}

func badWrites(hint, format string, args ...any) error {
	return &runlane.Error{Code: runlane.ErrValidationFailed, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// tableName is the name of a table that is given by its name or its ARN.
func tableName(given string) string {
	return given[strings.LastIndexByte(given, '/')+1:]
}

func tableOf(w *types.TransactWriteItem) string {
	switch {
	case w.Put != nil:
		return aws.ToString(w.Put.TableName)
	case w.Update != nil:
		return aws.ToString(w.Update.TableName)
	case w.Delete != nil:
		return aws.ToString(w.Delete.TableName)
	case w.ConditionCheck != nil:
		return aws.ToString(w.ConditionCheck.TableName)
	}
	return ""
}
