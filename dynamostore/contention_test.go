package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/dynamostore/internal/rows"
	"github.com/runlane/runlane-go/lane"
)

// arbiter is a table whose transactions take time, and of which two that touch one item do not overlap, as on AWS: the second is
// cancelled with TransactionConflict, also when the first is about to fail on its conditions. Emulators run them one after the other.
type arbiter struct {
	API
	mu    sync.Mutex
	items map[string]item.Item
	busy  map[string]bool
	deaf  bool // reads of several items fail
	met   int
}

const transactionTakes = 10 * time.Millisecond

func (a *arbiter) TransactWriteItems(
	_ context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	reasons := make([]types.CancellationReason, len(in.TransactItems))
	cancel := func() error { return &types.TransactionCanceledException{CancellationReasons: reasons} }
	a.mu.Lock()
	met := false
	for i, w := range in.TransactItems {
		reasons[i].Code = aws.String("None")
		if a.busy[keyText(w.Put.Item)] {
			reasons[i].Code, met = aws.String("TransactionConflict"), true
		}
	}
	if met {
		a.met++
		a.mu.Unlock()
		return nil, cancel()
	}
	for _, w := range in.TransactItems {
		a.busy[keyText(w.Put.Item)] = true
	}
	a.mu.Unlock()
	<-time.After(transactionTakes)
	a.mu.Lock()
	defer a.mu.Unlock()
	failed := false
	for i, w := range in.TransactItems {
		key := keyText(w.Put.Item)
		delete(a.busy, key)
		if old := a.items[key]; !a.holds(w.Put, old) {
			reasons[i], failed = types.CancellationReason{Code: aws.String("ConditionalCheckFailed"), Item: old}, true
		}
	}
	if failed {
		return nil, cancel()
	}
	for _, w := range in.TransactItems {
		a.items[keyText(w.Put.Item)] = w.Put.Item
	}
	return &dynamodb.TransactWriteItemsOutput{}, nil
}

// holds knows the conditions of creations: there is no item, or it is the owner of a commit.
func (a *arbiter) holds(put *types.Put, old item.Item) bool {
	if aws.ToString(put.ConditionExpression) == "attribute_not_exists(#pk)" {
		return old == nil
	}
	if aws.ToString(put.ConditionExpression) != "#ci = :is_ci" {
		panic(aws.ToString(put.ConditionExpression))
	}
	return item.TextOf(old["ci"]) == item.TextOf(put.ExpressionAttributeValues[":is_ci"])
}

func (a *arbiter) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &dynamodb.GetItemOutput{Item: a.items[keyText(in.Key)]}, nil
}

func (a *arbiter) BatchGetItem(_ context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.deaf {
		return nil, errServer
	}
	out := &dynamodb.BatchGetItemOutput{Responses: map[string][]map[string]types.AttributeValue{}}
	for table, asked := range in.RequestItems {
		for _, key := range asked.Keys {
			if it := a.items[keyText(key)]; it != nil {
				out.Responses[table] = append(out.Responses[table], it)
			}
		}
	}
	return out, nil
}

// keyedCreation is a creation whose run has the keys.
func keyedCreation(t *testing.T, id runlane.RunID, idempotency, singleton string) *lane.AppendCommand {
	t.Helper()
	c := creation(t, id)
	created := c.Events[0].Body.(*runlane.RunCreated)
	created.IdempotencyKey, created.SingletonKey, created.Retention = idempotency, singleton, runlane.KeyRetention{WhileActive: true}
	if idempotency == "" {
		created.Retention = runlane.KeyRetention{}
	}
	var err error
	if c.Projected, err = core.ProjectRunEvents(nil, 0, c.Events...); err != nil {
		t.Fatal(err)
	}
	return c
}

// burst lets callers create at once, each in a separate process, and returns who won and what the others were told.
func (a *arbiter) burst(t *testing.T, callers int, command func(i int) *lane.AppendCommand) (won []runlane.RunID, lost []error) {
	t.Helper()
	var guard sync.Mutex
	var group sync.WaitGroup
	for i := range callers {
		c := command(i)
		group.Go(func() {
			commit, err := New(a, "table", nil).AppendRunEvents(t.Context(), c)
			guard.Lock()
			defer guard.Unlock()
			if err != nil {
				lost = append(lost, err)
			} else {
				won = append(won, commit.Run.ID)
			}
		})
	}
	group.Wait()
	return won, lost
}

func newArbiter() *arbiter { return &arbiter{items: map[string]item.Item{}, busy: map[string]bool{}} }

// Of a burst of simultaneous creations one wins, and every other learns that it lost, and to whom.
func TestHazard48_BurstOfConflicts_EveryLoserLearnsWhoWon(t *testing.T) {
	t.Parallel()
	numbered := func(i int) runlane.RunID { return runlane.RunID(fmt.Sprintf("run_%d", i)) }
	for name, c := range map[string]struct {
		command func(t *testing.T, i int) *lane.AppendCommand
		kind    runlane.ConflictKind
	}{
		"one idempotency key": {func(t *testing.T, i int) *lane.AppendCommand {
			t.Helper()
			return keyedCreation(t, numbered(i), "key", "")
		}, runlane.ConflictIdempotencyKey},
		"one singleton key": {func(t *testing.T, i int) *lane.AppendCommand {
			t.Helper()
			return keyedCreation(t, numbered(i), "", "key")
		}, runlane.ConflictSingletonKey},
		"both keys": {func(t *testing.T, i int) *lane.AppendCommand {
			t.Helper()
			return keyedCreation(t, numbered(i), "key", "key")
		}, runlane.ConflictIdempotencyKey},
		"one id": {func(t *testing.T, _ int) *lane.AppendCommand {
			t.Helper()
			return keyedCreation(t, "run_1", "key", "key")
		}, runlane.ConflictEventSequence},
	} {
		for _, callers := range []int{32, 64, 256} {
			t.Run(fmt.Sprintf("%s, %d callers", name, callers), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					a := newArbiter()
					won, lost := a.burst(t, callers, func(i int) *lane.AppendCommand { return c.command(t, i) })
					if len(won) != 1 {
						t.Fatalf("%d creations won", len(won))
					}
					told := map[string]int{}
					for _, err := range lost {
						if e, ok := errors.AsType[*runlane.Error](err); !ok || !errors.Is(err, c.kind) || e.RunID != won[0] {
							told[err.Error()]++
						}
					}
					if len(told) > 0 {
						t.Errorf("of %d losers were not told that %s won: %v", len(lost), won[0], told)
					}
					if a.met < callers/2 {
						t.Errorf("only %d transactions met others", a.met)
					}
				})
			})
		}
	}
}

// A dead owner is replaced by one of a burst, and the others learn by which.
func TestHazard48_BurstForADeadOwner_EveryLoserLearnsWhoWon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newArbiter()
		dead := keyedCreation(t, "run_dead", "", "key")
		if _, err := New(a, "table", nil).AppendRunEvents(t.Context(), dead); err != nil {
			t.Fatal(err)
		}
		delete(a.items, keyText(item.Key(rows.RunPK(dead.Key()), rows.RunSK)))
		won, lost := a.burst(t, 64, func(i int) *lane.AppendCommand {
			return keyedCreation(t, runlane.RunID(fmt.Sprintf("run_%d", i)), "", "key")
		})
		if len(won) != 1 {
			t.Fatalf("%d creations won", len(won))
		}
		for _, err := range lost {
			if e, ok := errors.AsType[*runlane.Error](err); !ok || !errors.Is(err, runlane.ConflictSingletonKey) || e.RunID != won[0] {
				t.Errorf("%v", err)
			}
		}
	})
}

// Only when reading fails too is a loser left with an error that says to try again.
func TestHazard48_BurstWithoutReads_IsRetryable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newArbiter()
		a.deaf = true
		won, lost := a.burst(t, 128, func(i int) *lane.AppendCommand {
			return keyedCreation(t, runlane.RunID(fmt.Sprintf("run_%d", i)), "key", "")
		})
		if len(won) != 1 {
			t.Fatalf("%d creations won", len(won))
		}
		unavailable := 0
		for _, err := range lost {
			switch e, ok := errors.AsType[*runlane.Error](err); {
			case ok && errors.Is(err, runlane.ConflictIdempotencyKey) && e.RunID == won[0]:
			case ok && e.Code == runlane.ErrStorageUnavailable && e.Retryable && e.Meta["outcome"] == "not committed":
				unavailable++
			default:
				t.Errorf("%v", err)
			}
		}
		if unavailable == 0 {
			t.Error("no caller ran out of tries: the case shows nothing")
		}
	})
}
