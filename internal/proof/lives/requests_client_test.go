package lives

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go/dynamostore"
)

// errLost stands for a reset connection, and errLate for a request whose time was over.
var (
	errLost = errors.New("lives: connection reset by peer")
	errLate = fmt.Errorf("lives: no answer: %w", context.DeadlineExceeded)
)

// faultsOfOne is how many faults one request meets at most, however often it is sent.
const faultsOfOne = 3

// faultyClient is a client with faults. Safe for concurrent use.
type faultyClient struct {
	dynamostore.API

	seed  uint64
	rates map[fault]float64 // as parts of 1; of one call only the first that applies happens

	mu       sync.Mutex
	calls    map[string]int        // by fault and operation
	happened map[fault]int         // faults so far
	met      map[any]int           // faults by request
	late     map[itemKey]*lateItem // what indexes may show of items that were written lately
}

func newFaultyClient(client dynamostore.API, seed uint64, rates map[fault]float64) *faultyClient {
	return &faultyClient{
		API: client, seed: seed, rates: rates,
		calls: map[string]int{}, happened: map[fault]int{}, met: map[any]int{}, late: map[itemKey]*lateItem{},
	}
}

// count adds what happened to a tally.
func (c *faultyClient) count(to *tally) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for kind, n := range c.happened {
		to.add("fault", string(kind), n)
	}
}

// strikes decides about the next call of an operation, and returns a number that belongs to that decision. request is
// what is sent: the same pointer when it is sent again.
func (c *faultyClient) strikes(kind fault, operation string, request any) (bool, uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rate := c.rates[kind]
	if rate == 0 || c.met[request] == faultsOfOne {
		return false, 0
	}
	name := string(kind) + " " + operation
	c.calls[name]++
	hash := fnv.New64a()
	hash.Write([]byte(name + " " + strconv.Itoa(c.calls[name]))) // never fails
	source := rand.New(rand.NewPCG(c.seed, hash.Sum64()))        // repeatable
	if source.Float64() >= rate {
		return false, 0
	}
	c.happened[kind]++
	c.met[request]++
	return true, source.Uint64()
}

// write carries one write out, or not, and lets its answer through, or not.
func write[T any](
	ctx context.Context, c *faultyClient, operation string, request any, members int, table *string, keys []itemKey,
	send func(context.Context) (*T, error),
) (*T, error) {
	if hit, n := c.strikes(conflict, operation, request); hit {
		return nil, conflictOf(members, n)
	}
	if hit, _ := c.strikes(throttle, operation, request); hit {
		return nil, &types.ProvisionedThroughputExceededException{Message: aws.String("lives")}
	}
	if hit, _ := c.strikes(outage, operation, request); hit {
		return nil, errLost
	}
	lost, _ := c.strikes(lostAnswer, operation, request)
	late := false
	if !lost {
		late, _ = c.strikes(lateAnswer, operation, request)
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

// conflictOf is what meeting another transaction looks like; members is 0 for a plain write.
func conflictOf(members int, n uint64) error {
	if members == 0 {
		return &types.TransactionConflictException{Message: aws.String("lives")}
	}
	reasons := make([]types.CancellationReason, members)
	for i := range reasons {
		reasons[i].Code = aws.String("None")
	}
	reasons[n%uint64(members)].Code = aws.String("TransactionConflict")
	return &types.TransactionCanceledException{Message: aws.String("lives"), CancellationReasons: reasons}
}

// TransactWriteItems implements dynamostore.API.
func (c *faultyClient) TransactWriteItems(
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
	return write(ctx, c, "TransactWriteItems", in, len(in.TransactItems), table, keys,
		func(ctx context.Context) (*dynamodb.TransactWriteItemsOutput, error) {
			return c.API.TransactWriteItems(ctx, in, o...)
		})
}

// UpdateItem implements dynamostore.API.
func (c *faultyClient) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	return write(ctx, c, "UpdateItem", in, 0, in.TableName, []itemKey{keyOf(in.Key)},
		func(ctx context.Context) (*dynamodb.UpdateItemOutput, error) { return c.API.UpdateItem(ctx, in, o...) })
}

// DeleteItem implements dynamostore.API.
func (c *faultyClient) DeleteItem(
	ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options),
) (*dynamodb.DeleteItemOutput, error) {
	return write(ctx, c, "DeleteItem", in, 0, in.TableName, []itemKey{keyOf(in.Key)},
		func(ctx context.Context) (*dynamodb.DeleteItemOutput, error) { return c.API.DeleteItem(ctx, in, o...) })
}
