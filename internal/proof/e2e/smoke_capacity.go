package main

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/runlane/runlane-go/dynamostore"
)

// consumption makes the clients ask DynamoDB what each request consumed, and adds that up. DynamoDB says nothing of a
// request that it refused, though it charges for it.
type consumption struct {
	mutex sync.Mutex
	usage dynamostore.Usage
}

func (c *consumption) total() dynamostore.Usage {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.usage
}

// register is one of aws.Config's APIOptions.
func (c *consumption) register(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("ConsumedCapacity", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		in.Parameters = asking(in.Parameters)
		out, metadata, err := next.HandleInitialize(ctx, in)
		if err == nil {
			c.add(out.Result)
			if _, commit := out.Result.(*dynamodb.TransactWriteItemsOutput); commit {
				noteCommit(ctx)
			}
		}
		return out, metadata, err
	}), middleware.Before)
}

// asking is a copy of the request that asks what it consumes, where it can be asked. The caller's may be sent again.
func asking(request any) any {
	original := reflect.ValueOf(request)
	if original.Kind() != reflect.Pointer || original.Elem().Kind() != reflect.Struct {
		return request
	}
	changed := reflect.New(original.Elem().Type())
	changed.Elem().Set(original.Elem())
	question := changed.Elem().FieldByName("ReturnConsumedCapacity")
	if !question.IsValid() || question.Type() != reflect.TypeFor[types.ReturnConsumedCapacity]() {
		return request
	}
	question.SetString(string(types.ReturnConsumedCapacityIndexes))
	return changed.Interface()
}

func (c *consumption) add(response any) {
	var reads, writes []types.ConsumedCapacity
	one := func(of *types.ConsumedCapacity) []types.ConsumedCapacity {
		if of == nil {
			return nil
		}
		return []types.ConsumedCapacity{*of}
	}
	switch r := response.(type) {
	case *dynamodb.GetItemOutput:
		reads = one(r.ConsumedCapacity)
	case *dynamodb.BatchGetItemOutput:
		reads = r.ConsumedCapacity
	case *dynamodb.QueryOutput:
		reads = one(r.ConsumedCapacity)
	case *dynamodb.UpdateItemOutput:
		writes = one(r.ConsumedCapacity)
	case *dynamodb.DeleteItemOutput:
		writes = one(r.ConsumedCapacity)
	case *dynamodb.TransactWriteItemsOutput:
		writes = r.ConsumedCapacity
	default:
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.usage.Requests++
	for i := range reads {
		c.usage.ReadUnits += aws.ToFloat64(reads[i].CapacityUnits)
	}
	for i := range writes {
		c.usage.WriteUnits += aws.ToFloat64(writes[i].CapacityUnits)
	}
}

// commitKey finds in a context where the moment of its first commit is kept.
type commitKey struct{}

// withCommit keeps the moment at which DynamoDB has answered the first transaction under the context in at.
func withCommit(ctx context.Context, at *time.Time) context.Context {
	return context.WithValue(ctx, commitKey{}, at)
}

func noteCommit(ctx context.Context) {
	if at, ok := ctx.Value(commitKey{}).(*time.Time); ok && at.IsZero() {
		*at = time.Now()
	}
}
