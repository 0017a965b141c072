package dynamostore

import (
	"context"
	"runtime"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/runlane/runlane-go/dynamostore/internal/ddb"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
)

// recorder is a client that remembers what one call of a store sends, and what the table held before. The recording can be sent
// again by a bare client once the table is rewound: same inputs, same options, one after the other where the store waited and at
// once where it did not.
type recorder struct {
	API

	table  string
	caller string // the goroutine of the call

	mutex  sync.Mutex
	steps  []step
	before map[[2]string]types.WriteRequest // what puts each written item back, by its key
}

// sending sends a recorded request once more.
type sending func(ctx context.Context, client API) error

// step is what a call waits for before it goes on: one own request, or what its goroutines send, a chain each. Groups of
// goroutines without a request of the caller in between count as one, which only favors the bare side.
type step struct {
	parallel bool
	chains   [][]sending
	by       []string // the goroutine of each chain
}

// newRecorder records what the present goroutine and those it starts send.
func newRecorder(client API, table string) *recorder {
	return &recorder{API: client, table: table, caller: goroutine(), before: map[[2]string]types.WriteRequest{}}
}

// goroutine is the number of the present goroutine: requests of one come one after the other.
func goroutine() string {
	var trace [64]byte
	n := runtime.Stack(trace[:], false)
	number, _, _ := strings.Cut(strings.TrimPrefix(string(trace[:n]), "goroutine "), " ")
	return number
}

func (r *recorder) add(again sending) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	by := goroutine()
	parallel := by != r.caller
	if last := len(r.steps) - 1; !parallel || last < 0 || !r.steps[last].parallel {
		r.steps = append(r.steps, step{parallel: parallel, chains: [][]sending{{again}}, by: []string{by}})
		return
	}
	s := &r.steps[len(r.steps)-1]
	for i := range s.by {
		if s.by[i] == by {
			s.chains[i] = append(s.chains[i], again)
			return
		}
	}
	s.chains, s.by = append(s.chains, []sending{again}), append(s.by, by)
}

// requests counts what was recorded.
func (r *recorder) requests() (n int64) {
	for _, s := range r.steps {
		for _, chain := range s.chains {
			n += int64(len(chain))
		}
	}
	return n
}

// replay sends the recording through a client, as parallel as it was.
func (r *recorder) replay(ctx context.Context, client API) error {
	for _, s := range r.steps {
		if len(s.chains) == 1 {
			if err := sendAll(ctx, client, s.chains[0]); err != nil {
				return err
			}
			continue
		}
		group, groupCtx := errgroup.WithContext(ctx)
		group.SetLimit(ddb.MaxParallel)
		for _, chain := range s.chains {
			group.Go(func() error { return sendAll(groupCtx, client, chain) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

func sendAll(ctx context.Context, client API, chain []sending) error {
	for _, again := range chain {
		if err := again(ctx, client); err != nil {
			return err
		}
	}
	return nil
}

// rewind puts the table back to where the recording began.
func (r *recorder) rewind(ctx context.Context, client *dynamodb.Client) error {
	var writes []types.WriteRequest
	for _, write := range r.before {
		writes = append(writes, write)
	}
	for len(writes) > 0 {
		n := min(len(writes), batchWrites)
		if err := writeBatch(ctx, client, r.table, writes[:n]); err != nil {
			return err
		}
		writes = writes[n:]
	}
	return nil
}

// keep remembers an item that is about to be written, as it is before the first time.
func (r *recorder) keep(ctx context.Context, key item.Item) error {
	out, err := r.API.GetItem(ctx, &dynamodb.GetItemInput{TableName: &r.table, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	name := [2]string{item.TextOf(key[item.PK]), item.TextOf(key[item.SK])}
	if _, known := r.before[name]; known {
		return nil
	}
	if r.before[name] = (types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: key}}); len(out.Item) > 0 {
		r.before[name] = types.WriteRequest{PutRequest: &types.PutRequest{Item: out.Item}}
	}
	return nil
}

// send records a request and sends it.
func send[In, Out any](
	ctx context.Context, r *recorder, in *In, o []func(*dynamodb.Options),
	method func(API, context.Context, *In, ...func(*dynamodb.Options)) (*Out, error),
) (*Out, error) {
	sent := *in // paging changes the original
	r.add(func(ctx context.Context, client API) error {
		again := sent
		if transaction, ok := any(&again).(*dynamodb.TransactWriteItemsInput); ok {
			transaction.ClientRequestToken = nil                // the client makes one: under the recorded one nothing would be written again
			_, err := method(client, ctx, &again, ddb.SentOnce) // without the option that sends the recorded bytes again, token included
			return err
		}
		_, err := method(client, ctx, &again, o...)
		return err
	})
	return method(r.API, ctx, in, o...)
}

func (r *recorder) BatchGetItem(
	ctx context.Context, in *dynamodb.BatchGetItemInput, o ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	return send(ctx, r, in, o, API.BatchGetItem)
}

func (r *recorder) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	if err := r.keep(ctx, in.Key); err != nil {
		return nil, err
	}
	return send(ctx, r, in, o, API.DeleteItem)
}

func (r *recorder) DescribeTable(
	ctx context.Context, in *dynamodb.DescribeTableInput, o ...func(*dynamodb.Options),
) (*dynamodb.DescribeTableOutput, error) {
	return send(ctx, r, in, o, API.DescribeTable)
}

func (r *recorder) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return send(ctx, r, in, o, API.GetItem)
}

func (r *recorder) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return send(ctx, r, in, o, API.Query)
}

func (r *recorder) Scan(ctx context.Context, in *dynamodb.ScanInput, o ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return send(ctx, r, in, o, API.Scan)
}

func (r *recorder) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	for _, member := range in.TransactItems {
		var key item.Item
		switch {
		case member.Put != nil:
			key = item.KeyOf(member.Put.Item)
		case member.Update != nil:
			key = member.Update.Key
		default:
			key = member.Delete.Key
		}
		if err := r.keep(ctx, key); err != nil {
			return nil, err
		}
	}
	return send(ctx, r, in, o, API.TransactWriteItems)
}

func (r *recorder) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if err := r.keep(ctx, in.Key); err != nil {
		return nil, err
	}
	return send(ctx, r, in, o, API.UpdateItem)
}
