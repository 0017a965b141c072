package ddb

import (
	"context"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// encodedOnce makes a request that is sent again carry the bytes of its first sending: the SDK encodes maps in Go's random order, and
// DynamoDB knows a transaction again by its token only if its parameters are the same.
type encodedOnce struct{ body body }

// body is what the SDK's encoder leaves: all of it in memory, read at any place without moving the others that read it.
type body interface {
	io.ReaderAt
	Size() int64
}

// option is for one call of a client.
func (e *encodedOnce) option(o *dynamodb.Options) { o.APIOptions = append(o.APIOptions, e.register) }

func (e *encodedOnce) register(stack *middleware.Stack) error {
	return stack.Serialize.Add(e, middleware.After)
}

// ID implements middleware.SerializeMiddleware.
func (*encodedOnce) ID() string { return "runlane:encodedOnce" }

// HandleSerialize implements middleware.SerializeMiddleware, behind the encoder.
func (e *encodedOnce) HandleSerialize(
	ctx context.Context, in middleware.SerializeInput, next middleware.SerializeHandler,
) (middleware.SerializeOutput, middleware.Metadata, error) {
	request, ok := in.Request.(*smithyhttp.Request)
	if !ok {
		return next.HandleSerialize(ctx, in)
	}
	if e.body == nil {
		if e.body, ok = request.GetStream().(body); !ok {
			return middleware.SerializeOutput{}, middleware.Metadata{}, fmt.Errorf("the SDK encodes a request as %T", request.GetStream())
		}
		return next.HandleSerialize(ctx, in)
	}
	same, err := request.SetStream(io.NewSectionReader(e.body, 0, e.body.Size()))
	if err != nil {
		return middleware.SerializeOutput{}, middleware.Metadata{}, err
	}
	in.Request = same
	return next.HandleSerialize(ctx, in)
}
