package dynamostore

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// seam is a client whose requests go through one function, which sends them or answers itself.
type seam struct {
	API
	pass func(in any, send func() (any, error)) (any, error)
}

func through[I, O any](
	ctx context.Context, s *seam, in I, call func(context.Context, I, ...func(*dynamodb.Options)) (O, error), o []func(*dynamodb.Options),
) (O, error) {
	out, err := s.pass(in, func() (any, error) { return call(ctx, in, o...) })
	if err != nil {
		var none O
		return none, err
	}
	return out.(O), nil
}

func (s *seam) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return through(ctx, s, in, s.API.BatchGetItem, o)
}

func (s *seam) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return through(ctx, s, in, s.API.DeleteItem, o)
}

func (s *seam) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return through(ctx, s, in, s.API.GetItem, o)
}

func (s *seam) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return through(ctx, s, in, s.API.Query, o)
}

func (s *seam) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	return through(ctx, s, in, s.API.TransactWriteItems, o)
}

func (s *seam) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return through(ctx, s, in, s.API.UpdateItem, o)
}

// writing is a client whose writes ask first how they are answered.
func writing(api API, ask func(in any) answer) *seam {
	return &seam{api, func(in any, send func() (any, error)) (any, error) {
		switch in.(type) {
		case *dynamodb.UpdateItemInput, *dynamodb.TransactWriteItemsInput, *dynamodb.DeleteItemInput:
		default:
			return send()
		}
		return ask(in).to(send)
	}}
}

// to sends a request or not, and answers it.
func (a answer) to(send func() (any, error)) (out any, err error) {
	if a.commit {
		out, err = send()
	}
	if a.err != nil {
		err = a.err
	}
	return out, err
}

// answering is a client whose writes are answered as the script says; one beyond it is carried out.
func answering(api API, script ...answer) *seam {
	return writing(api, func(any) answer {
		a := answer{commit: true}
		if len(script) > 0 {
			a, script = script[0], script[1:]
		}
		return a
	})
}

// interrupted lets another process act between a read and the write that follows it.
func interrupted(api API, act func()) *seam {
	return writing(api, func(any) answer {
		if first := act; first != nil {
			act = nil
			first()
		}
		return answer{commit: true}
	})
}

// beforeSecondCommit acts between what a caller learned from its first commit and its second, and counts them.
func (w *world) beforeSecondCommit(act func()) *int {
	commits := 0
	w.store.db.Client = writing(w.store.db.Client, func(in any) answer {
		if _, ok := in.(*dynamodb.TransactWriteItemsInput); ok {
			if commits++; commits == 2 {
				act()
			}
		}
		return answer{commit: true}
	})
	return &commits
}
