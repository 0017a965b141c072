package dynamostore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
)

// plainClient keeps one item, and answers each update as the script says; one beyond it is carried out.
type plainClient struct {
	API
	it     item.Item
	script []answer
	sent   int
	deaf   bool // reads fail
}

func (c *plainClient) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	a := answer{commit: true}
	if c.sent < len(c.script) {
		a = c.script[c.sent]
	}
	c.sent++
	if a.commit {
		c.it = item.Item{"by": in.ExpressionAttributeValues[":by"]}
	}
	return &dynamodb.UpdateItemOutput{Attributes: c.it}, a.err
}

func (c *plainClient) GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if c.deaf {
		return nil, errServer
	}
	return &dynamodb.GetItemOutput{Item: c.it}, nil
}

func TestPlainWrite_Answers(t *testing.T) {
	t.Parallel()
	met := answer{err: &types.TransactionConflictException{}}
	for name, c := range map[string]struct {
		script  []answer
		there   string // who has the item before
		deaf    bool
		ok      bool
		outcome string // of the error; "": none
		message string
	}{
		"conflicts are repeated":                                 {script: []answer{met, met}, ok: true},
		"conflicts go on while no caller has won":                {script: slices.Repeat([]answer{met}, 20), ok: true},
		"conflicts for good say so, and that nothing happened":   {script: slices.Repeat([]answer{met}, 24), outcome: "not committed", message: "put it: met transactions"},
		"conflicts for good, and another has it by now":          {script: slices.Repeat([]answer{met}, 8), there: "them"},
		"conflicts for good, and the winner is unknown":          {script: slices.Repeat([]answer{met}, 8), there: "them", deaf: true, outcome: "not committed", message: "met transactions"},
		"refused after a lost answer, and it is there":           {script: []answer{{true, errLostAnswer}, {false, errExpired}}, ok: true},
		"refused after a lost answer, and it is not":             {script: []answer{{false, errLostAnswer}, {false, errExpired}}, outcome: "unknown", message: "expired"},
		"refused after a lost answer, and reading fails as well": {script: []answer{{true, errLostAnswer}, {false, errExpired}}, deaf: true, outcome: "unknown", message: "expired"},
		"no answer for good, and it is there":                    {script: slices.Repeat([]answer{{true, errServer}}, 4), ok: true},
		"no answer for good, and it is not":                      {script: slices.Repeat([]answer{{false, errServer}}, 4), outcome: "unknown", message: "put it failed"},
		"conflicts after a lost answer, and it is there":         {script: slices.Concat([]answer{{true, errLostAnswer}}, slices.Repeat([]answer{met}, 8)), ok: true},
		"throttled for good":                                     {script: slices.Repeat([]answer{{false, errThrottled}}, 8), outcome: "not committed", message: "throttled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := &plainClient{script: c.script, deaf: c.deaf}
				if c.there != "" {
					client.it = item.Item{"by": item.Text(c.there)}
				}
				mine := item.Item{":by": item.Text("me")}
				_, ok, err := New(client, "table", nil).db.Update(t.Context(), "put it", &item.Update{
					Key: item.Key("a", "b"), Expression: "SET #by = :by", Values: mine, Condition: item.Condition{Text: "attribute_not_exists(#by)"},
					Wrote: func(now item.Item) bool { return item.TextOf(now["by"]) == "me" },
				})
				e, failed := errors.AsType[*runlane.Error](err)
				if ok != c.ok || failed != (c.outcome != "") {
					t.Fatalf("%t, %v", ok, err)
				}
				if failed && (e.Meta["outcome"] != c.outcome || !strings.Contains(e.Message, c.message) || !e.Retryable) {
					t.Errorf("%v %v", err, e.Meta)
				}
			})
		})
	}
}

// What is known of a condition without asking for it.
func TestCondition_Fails(t *testing.T) {
	t.Parallel()
	there := item.Item{item.PK: item.Text("a"), "sq": item.Num(3), "lt": item.Text("token")}
	for name, c := range map[string]struct {
		condition item.Condition
		it        item.Item
		fails     bool
	}{
		"absent, and it is":                {item.Absent, nil, false},
		"absent, and it is there":          {item.Absent, there, true},
		"equal":                            {item.Equal("sq", item.Num(3)), there, false},
		"another number":                   {item.Equal("sq", item.Num(4)), there, true},
		"another text":                     {item.Equal("sq", item.Num(3)).And(item.Equal("lt", item.Text("other"))), there, true},
		"no attribute":                     {item.Equal("un", item.Num(1)), there, true},
		"no item":                          {item.Equal("sq", item.Num(3)), nil, true},
		"without an attribute, and it has": {item.Equal("sq", item.Num(3)).And(item.Condition{Text: "attribute_not_exists(#lt)"}), there, true},
		"without an attribute":             {item.Equal("sq", item.Num(3)).And(item.Condition{Text: "attribute_not_exists(#un)"}), there, false},
		"either, of which nothing is said": {item.Condition{Text: "attribute_not_exists(#pk) OR #cu <= :at", Values: item.Item{":at": item.Num(1)}}, there, false},
		"a path, of which nothing is said": {item.Condition{Text: "#dl[0].#st = :dead", Values: item.Item{":dead": item.Text("dead")}}, there, false},
		"an order, of which nothing is":    {item.Condition{Text: "#sq <= :at", Values: item.Item{":at": item.Num(1)}}, there, false},
		"none":                             {item.Condition{}, there, false},
	} {
		if got := c.condition.Fails(c.it); got != c.fails {
			t.Errorf("%s: fails %t, want %t", name, got, c.fails)
		}
	}
}
