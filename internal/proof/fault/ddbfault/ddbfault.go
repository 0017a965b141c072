// Package ddbfault puts faults between a dynamostore.Store and its DynamoDB client: transactions that meet others,
// throttles, answers that get lost, or do not come in time, after the request was carried out, requests that never
// arrive, indexes that are behind. Emulators show none of them. What a [Client] decides depends on its seed, the
// operation and the number of the call, not on the clock.
package ddbfault

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go/dynamostore"
)

// Kind is what goes wrong.
type Kind string

const (
	// Conflict is when a write meets another transaction and is not carried out.
	Conflict Kind = "conflict"
	// Throttle is when a write is refused for its rate and not carried out.
	Throttle Kind = "throttle"
	// Outage is when a write never arrives; the caller cannot tell that from LostAnswer.
	Outage Kind = "outage"
	// LostAnswer is when a write is carried out, and the caller hears nothing.
	LostAnswer Kind = "lost answer"
	// Timeout is when a write is carried out, and its answer does not come within the request's time. The context of
	// the caller goes on living.
	Timeout Kind = "timeout after commit"
	// StaleIndex is when a query on an index shows what was written last as it was before: new entries are missing, and
	// old ones are there.
	StaleIndex Kind = "stale index"
)

// errLost stands for a reset connection, and errLate for a request whose time was over.
var (
	errLost = errors.New("ddbfault: connection reset by peer")
	errLate = fmt.Errorf("ddbfault: no answer: %w", context.DeadlineExceeded)
)

// burst is how many faults one request meets at most, however often it is sent: a suite that passes does not do so by
// luck, nor does one fail by bad luck.
const burst = 3

// Plan says how often what happens, as parts of 1. Of one call, only the first kind that applies happens, in the order
// of the constants.
type Plan struct {
	// Seed makes a plan repeatable; 0 chooses one. Tests of different names get different faults from the same seed.
	Seed uint64
	// Rates by kind. What is not named never happens.
	Rates map[Kind]float64
	// Operations that go wrong, as TransactWriteItems; nil means every write, and queries on indexes.
	Operations []string
}

// Client is a dynamostore.API with faults. Safe for concurrent use.
type Client struct {
	dynamostore.API

	plan Plan
	test string

	mu       sync.Mutex
	calls    map[string]int        // by kind and operation
	happened map[Kind]int          // faults so far
	met      map[any]int           // faults by request
	late     map[itemKey]*lateItem // what indexes may show of items that were written lately
}

type itemKey struct{ pk, sk string }

var _ dynamostore.API = (*Client)(nil)

// New decorates a client for a test. The seed is logged when the test fails.
func New(t testing.TB, client dynamostore.API, plan Plan) *Client {
	t.Helper()
	for plan.Seed == 0 {
		plan.Seed = rand.Uint64() // a choice of faults
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("ddbfault seed %d", plan.Seed)
		}
	})
	return &Client{
		API:      client,
		plan:     plan,
		test:     t.Name(),
		calls:    map[string]int{},
		happened: map[Kind]int{},
		met:      map[any]int{},
		late:     map[itemKey]*lateItem{},
	}
}

// Happened counts the faults of a kind so far.
func (c *Client) Happened(kind Kind) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.happened[kind]
}

// strikes decides about the next call of an operation, and returns a number that belongs to that decision. request is
// what is sent: the same pointer when it is sent again.
func (c *Client) strikes(kind Kind, operation string, request any) (bool, uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rate := c.plan.Rates[kind]
	if rate == 0 || c.met[request] == burst ||
		c.plan.Operations != nil && !slices.Contains(c.plan.Operations, operation) {
		return false, 0
	}
	name := string(kind) + " " + operation
	c.calls[name]++
	hash := fnv.New64a()
	hash.Write([]byte(c.test + " " + name + " " + strconv.Itoa(c.calls[name]))) // never fails
	source := rand.New(rand.NewPCG(c.plan.Seed, hash.Sum64()))                  // repeatable
	if source.Float64() >= rate {
		return false, 0
	}
	c.happened[kind]++
	c.met[request]++
	return true, source.Uint64()
}

// write carries one write out, or not, and lets its answer through, or not.
func write[T any](
	ctx context.Context, c *Client, operation string, request any, members int, table *string, keys []itemKey,
	send func(context.Context) (*T, error),
) (*T, error) {
	if hit, n := c.strikes(Conflict, operation, request); hit {
		return nil, conflict(members, n)
	}
	if hit, _ := c.strikes(Throttle, operation, request); hit {
		return nil, &types.ProvisionedThroughputExceededException{Message: aws.String("ddbfault")}
	}
	if hit, _ := c.strikes(Outage, operation, request); hit {
		return nil, errLost
	}
	lost, _ := c.strikes(LostAnswer, operation, request)
	late := false
	if !lost {
		late, _ = c.strikes(Timeout, operation, request)
	}
	c.writing(ctx, table, request, keys)
	out, err := send(ctx)
	switch {
	case lost:
		return nil, errLost
	case late:
		return nil, errLate
	default:
		return out, err
	}
}

// conflict is what meeting another transaction looks like; members is 0 for a plain write.
func conflict(members int, n uint64) error {
	if members == 0 {
		return &types.TransactionConflictException{Message: aws.String("ddbfault")}
	}
	reasons := make([]types.CancellationReason, members)
	for i := range reasons {
		reasons[i].Code = aws.String("None")
	}
	reasons[n%uint64(members)].Code = aws.String("TransactionConflict")
	return &types.TransactionCanceledException{Message: aws.String("ddbfault"), CancellationReasons: reasons}
}

// TransactWriteItems implements dynamostore.API.
func (c *Client) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	var table *string
	var keys []itemKey
	for _, w := range in.TransactItems {
		switch {
		case w.Put != nil:
			table, keys = w.Put.TableName, append(keys, keyOf(w.Put.Item))
		case w.Update != nil:
			table, keys = w.Update.TableName, append(keys, keyOf(w.Update.Key))
		case w.Delete != nil:
			table, keys = w.Delete.TableName, append(keys, keyOf(w.Delete.Key))
		}
	}
	return write(
		ctx,
		c,
		"TransactWriteItems",
		in,
		len(in.TransactItems),
		table,
		keys,
		func(ctx context.Context) (*dynamodb.TransactWriteItemsOutput, error) {
			return c.API.TransactWriteItems(ctx, in, o...)
		},
	)
}

// UpdateItem implements dynamostore.API.
func (c *Client) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	keys := []itemKey{keyOf(in.Key)}
	return write(
		ctx,
		c,
		"UpdateItem",
		in,
		0,
		in.TableName,
		keys,
		func(ctx context.Context) (*dynamodb.UpdateItemOutput, error) {
			return c.API.UpdateItem(ctx, in, o...)
		},
	)
}

// DeleteItem implements dynamostore.API.
func (c *Client) DeleteItem(
	ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options),
) (*dynamodb.DeleteItemOutput, error) {
	keys := []itemKey{keyOf(in.Key)}
	return write(
		ctx,
		c,
		"DeleteItem",
		in,
		0,
		in.TableName,
		keys,
		func(ctx context.Context) (*dynamodb.DeleteItemOutput, error) {
			return c.API.DeleteItem(ctx, in, o...)
		},
	)
}
