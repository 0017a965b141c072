package protection

import (
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Condition is one condition of one write.
type Condition struct {
	PK, SK string // the item
	Doing  string // put, delete, check, remove (a plain delete), or the expression of an update
	Clause string // one of those that AND joins
}

// Where conditions stand.

// Owner reports the owner of a key.
func (c Condition) Owner() bool { return c.SK == "owner" }

// Run reports a run item.
func (c Condition) Run() bool { return c.SK == "run" }

// Log reports a log item.
func (c Condition) Log() bool { return strings.HasPrefix(c.SK, "log:") }

// Slot reports a slot of a queue.
func (c Condition) Slot() bool { return strings.Contains(c.PK, ":slot:") }

// About reports a condition on the attribute.
func (c Condition) About(attribute string) bool {
	return strings.HasPrefix(c.Clause, "#"+attribute+" = ") ||
		strings.HasSuffix(strings.Split(c.Clause, " ")[0], ".#"+attribute)
}

// Absent reports the condition that there is no item.
func (c Condition) Absent() bool { return c.Clause == "attribute_not_exists(#pk)" }

// write is one write of a request: what a decorator may change of it. Fields are nil where a kind of write has none.
type write struct {
	pk, sk    string
	doing     string
	condition *string
	update    *string
}

func (w *write) weaken(removed func(Condition) bool) {
	if w.condition == nil {
		return
	}
	clauses := strings.Split(*w.condition, " AND ")
	for i, clause := range clauses {
		if removed(Condition{w.pk, w.sk, w.doing, clause}) {
			clauses[i] = "(" + clause + " OR (NOT " + clause + "))" // names and values stay in use
		}
	}
	w.condition = aws.String(strings.Join(clauses, " AND "))
}

// rewriting is an option of a client: change sees each write of each request, before anything is signed.
func rewriting(name string, change func(*write)) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions[:len(o.APIOptions):len(o.APIOptions)], func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc(name, func(
				ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
			) (middleware.InitializeOutput, middleware.Metadata, error) {
				in.Parameters = rewritten(in.Parameters, change)
				return next.HandleInitialize(ctx, in)
			}), middleware.Before)
		})
	}
}

// rewritingBodies is an option of a client: change sees the bytes of each request, before anything is signed.
func rewritingBodies(name string, change func([]byte) []byte) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions[:len(o.APIOptions):len(o.APIOptions)], func(stack *middleware.Stack) error {
			return stack.Build.Add(middleware.BuildMiddlewareFunc(name, func(
				ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler,
			) (out middleware.BuildOutput, metadata middleware.Metadata, err error) {
				request, ok := in.Request.(*smithyhttp.Request)
				if !ok || request.GetStream() == nil {
					return next.HandleBuild(ctx, in)
				}
				body, err := io.ReadAll(request.GetStream())
				if err != nil {
					return out, metadata, err
				}
				if in.Request, err = request.SetStream(bytes.NewReader(change(body))); err != nil {
					return out, metadata, err
				}
				return next.HandleBuild(ctx, in)
			}), middleware.Before)
		})
	}
}

// rewritten is a copy of the request with its writes changed, or the request itself if it has none.
func rewritten(parameters any, change func(*write)) any {
	switch in := parameters.(type) {
	case *dynamodb.TransactWriteItemsInput:
		out := *in
		out.TransactItems = nil
		for _, member := range in.TransactItems {
			out.TransactItems = append(out.TransactItems, rewrittenMember(member, change))
		}
		return &out
	case *dynamodb.UpdateItemInput:
		out := *in
		w := written(in.Key, aws.ToString(in.UpdateExpression), in.ConditionExpression, in.UpdateExpression)
		change(w)
		out.ConditionExpression, out.UpdateExpression = w.condition, w.update
		return &out
	case *dynamodb.DeleteItemInput:
		out := *in
		w := written(in.Key, "remove", in.ConditionExpression, nil)
		change(w)
		out.ConditionExpression = w.condition
		return &out
	default:
		return parameters
	}
}

func rewrittenMember(member types.TransactWriteItem, change func(*write)) types.TransactWriteItem {
	switch {
	case member.Put != nil:
		put := *member.Put
		w := written(put.Item, "put", put.ConditionExpression, nil)
		change(w)
		put.ConditionExpression = w.condition
		member.Put = &put
	case member.Update != nil:
		update := *member.Update
		w := written(update.Key, *update.UpdateExpression, update.ConditionExpression, update.UpdateExpression)
		change(w)
		update.ConditionExpression, update.UpdateExpression = w.condition, w.update
		member.Update = &update
	case member.Delete != nil:
		gone := *member.Delete
		w := written(gone.Key, "delete", gone.ConditionExpression, nil)
		change(w)
		gone.ConditionExpression = w.condition
		member.Delete = &gone
	case member.ConditionCheck != nil:
		check := *member.ConditionCheck
		w := written(check.Key, "check", check.ConditionExpression, nil)
		change(w)
		check.ConditionExpression = w.condition
		member.ConditionCheck = &check
	}
	return member
}

func written(key map[string]types.AttributeValue, doing string, condition, update *string) *write {
	return &write{pk: text(key["pk"]), sk: text(key["sk"]), doing: doing, condition: condition, update: update}
}

func text(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}
