package ddbfault

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go/dynamostore"
)

// backend counts what arrives.
type backend struct {
	dynamostore.API
	arrived int
	rows    []map[string]types.AttributeValue
	indexed string // the attribute without which an index has no entry
}

func (b *backend) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	b.arrived++
	return &dynamodb.UpdateItemOutput{}, nil
}

func (b *backend) DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	b.arrived++
	return &dynamodb.DeleteItemOutput{}, nil
}

func (b *backend) TransactWriteItems(
	context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	b.arrived++
	return &dynamodb.TransactWriteItemsOutput{}, nil
}

// GetItem finds an item as rows has it.
func (b *backend) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	out := &dynamodb.GetItemOutput{}
	for _, item := range b.rows {
		if keyOf(item) == keyOf(in.Key) {
			out.Item = item
		}
	}
	return out, nil
}

func (b *backend) Query(_ context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	rows := slices.DeleteFunc(slices.Clone(b.rows), func(item map[string]types.AttributeValue) bool {
		return b.indexed != "" && (item[b.indexed] == nil || text(item, b.indexed) > text(in.ExpressionAttributeValues, ":until"))
	})
	return &dynamodb.QueryOutput{Items: rows, Count: int32(len(rows))}, nil // few
}

func always(kind Kind) Plan { return Plan{Seed: 1, Rates: map[Kind]float64{kind: 1}} }

func key(pk string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}, "sk": &types.AttributeValueMemberS{Value: "run"}}
}

func TestClient_PlainWrites(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind    Kind
		arrived int
		as      func(error) bool
	}{
		{Conflict, 0, func(err error) bool { _, ok := errors.AsType[*types.TransactionConflictException](err); return ok }},
		{Throttle, 0, func(err error) bool {
			_, ok := errors.AsType[*types.ProvisionedThroughputExceededException](err)
			return ok
		}},
		{Outage, 0, func(err error) bool { return errors.Is(err, errLost) }},
		{LostAnswer, 1, func(err error) bool { return errors.Is(err, errLost) }},
		{Timeout, 1, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
		{StaleIndex, 1, func(err error) bool { return err == nil }},
	} {
		b := &backend{}
		_, err := New(t, b, always(c.kind)).UpdateItem(t.Context(), &dynamodb.UpdateItemInput{Key: key("a")})
		if b.arrived != c.arrived || !c.as(err) {
			t.Errorf("%s: %d requests arrived: %v", c.kind, b.arrived, err)
		}
	}
}

func TestClient_Transaction_MeetsAnotherOnOneItem(t *testing.T) {
	t.Parallel()
	b := &backend{}
	_, err := New(t, b, always(Conflict)).TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{Item: key("a")}}, {Update: &types.Update{Key: key("b")}}, {Delete: &types.Delete{Key: key("c")}},
	}})
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok || b.arrived != 0 || len(cancelled.CancellationReasons) != 3 {
		t.Fatalf("%d requests arrived: %v", b.arrived, err)
	}
	met := 0
	for _, r := range cancelled.CancellationReasons {
		if aws.ToString(r.Code) == "TransactionConflict" {
			met++
		}
	}
	if met != 1 {
		t.Errorf("%d members met another", met)
	}
}

// What was carried out counts as written: an index may show it late.
func TestClient_Timeout_IsAfterTheCommitAndNotTheCallersOwn(t *testing.T) {
	t.Parallel()
	b := &backend{}
	plan := Plan{Seed: 1, Rates: map[Kind]float64{Timeout: 1, StaleIndex: 1}}
	client := New(t, b, plan)
	_, err := client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Put: &types.Put{Item: key("a")}}}})
	if !errors.Is(err, context.DeadlineExceeded) || t.Context().Err() != nil || b.arrived != 1 || client.Happened(Timeout) != 1 {
		t.Errorf("%d requests arrived, %d timed out: %v", b.arrived, client.Happened(Timeout), err)
	}
	if late := client.late[keyOf(key("a"))]; late == nil || late.misses != missed {
		t.Error("the index knows what was written at once")
	}
	if _, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{Key: key("a")}); !errors.Is(err, context.DeadlineExceeded) || b.arrived != 2 {
		t.Errorf("%d requests arrived: %v", b.arrived, err)
	}
}

// The same seed brings the same faults to the same calls, whatever other operations do in between; another one brings others.
func TestClient_IsRepeatable(t *testing.T) {
	t.Parallel()
	pattern := func(seed uint64, others int) (hits []bool) {
		client := New(t, &backend{}, Plan{Seed: seed, Rates: map[Kind]float64{Timeout: 0.2}})
		for range 500 {
			for range others {
				_, _ = client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{Key: key("b")})
			}
			_, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{Key: key("a")})
			hits = append(hits, err != nil)
		}
		return hits
	}
	first, n := pattern(1, 0), 0
	for _, hit := range first {
		if hit {
			n++
		}
	}
	if n < 60 || n > 140 {
		t.Errorf("%d of 500 calls failed, want about 100", n)
	}
	if !slices.Equal(first, pattern(1, 2)) {
		t.Error("the same seed brought other faults")
	}
	if slices.Equal(first, pattern(2, 0)) {
		t.Error("another seed brought the same faults")
	}
}

func TestClient_ARequestMeetsAtMostThreeFaults(t *testing.T) {
	t.Parallel()
	client := New(t, &backend{}, always(Throttle))
	in := &dynamodb.UpdateItemInput{Key: key("a")}
	failed := 0
	for range 10 {
		if _, err := client.UpdateItem(t.Context(), in); err != nil {
			failed++
		}
	}
	if failed != burst || client.Happened(Throttle) != burst {
		t.Errorf("failed %d times", failed)
	}
}

func TestClient_OtherOperationsAreLeftAlone(t *testing.T) {
	t.Parallel()
	plan := always(Throttle)
	plan.Operations = []string{"TransactWriteItems"}
	if _, err := New(t, &backend{}, plan).UpdateItem(t.Context(), &dynamodb.UpdateItemInput{Key: key("a")}); err != nil {
		t.Error(err)
	}
}

// entry is an item with an entry in the index.
func entry(pk, due string) map[string]types.AttributeValue {
	item := key(pk)
	item["dp"], item["da"] = &types.AttributeValueMemberS{Value: "p"}, &types.AttributeValueMemberS{Value: due}
	return item
}

// shown asks for the entries of a partition up to a place, by an index or the table itself.
func shown(t *testing.T, client *Client, index *string, until string, limit int32) string {
	t.Helper()
	in := &dynamodb.QueryInput{
		IndexName: index, KeyConditionExpression: aws.String("#dp = :p AND #da BETWEEN :from AND :until"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":p": &types.AttributeValueMemberS{Value: "p"}, ":from": &types.AttributeValueMemberS{Value: "0"}, ":until": &types.AttributeValueMemberS{Value: until},
		},
	}
	if limit > 0 {
		in.Limit = aws.Int32(limit)
	}
	out, err := client.Query(t.Context(), in)
	if err != nil || int(out.Count) != len(out.Items) {
		t.Fatalf("%+v %v", out, err)
	}
	var rows []string
	for _, item := range out.Items {
		rows = append(rows, text(item, "pk")+text(item, "da"))
	}
	if out.LastEvaluatedKey != nil {
		rows = append(rows, "more")
	}
	return strings.Join(rows, " ")
}

func write1(t *testing.T, client *Client, pk string) {
	t.Helper()
	if _, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{Key: key(pk)}); err != nil {
		t.Fatal(err)
	}
}

var due = aws.String("due")

func TestClient_StaleIndex_HidesNewEntriesForAWhile(t *testing.T) {
	t.Parallel()
	b := &backend{rows: []map[string]types.AttributeValue{entry("a", "1")}}
	client := New(t, b, always(StaleIndex))
	write1(t, client, "b")
	b.rows = append(b.rows, entry("b", "2"))
	if got := shown(t, client, nil, "9", 0); got != "a1 b2" {
		t.Errorf("the table itself shows %q", got)
	}
	for range missed {
		if got := shown(t, client, due, "9", 0); got != "a1" {
			t.Errorf("the index shows %q", got)
		}
	}
	if got := shown(t, client, due, "9", 0); got != "a1 b2" {
		t.Errorf("the index never catches up: %q", got)
	}
}

// A run that is finished, or waits for something else by now, is still found where it was.
func TestClient_StaleIndex_KeepsOldEntriesForAWhile(t *testing.T) {
	t.Parallel()
	for name, after := range map[string][]map[string]types.AttributeValue{
		"moved":             {entry("a", "1"), entry("c", "3"), entry("b", "7")},
		"taken out":         {entry("a", "1"), key("b"), entry("c", "3")},
		"the item is gone":  {entry("a", "1"), entry("c", "3")},
		"moved out of page": {entry("a", "1"), entry("c", "3"), entry("b", "99")},
	} {
		b := &backend{rows: []map[string]types.AttributeValue{entry("a", "1"), entry("b", "2"), entry("c", "3")}}
		client := New(t, b, always(StaleIndex))
		write1(t, client, "b")
		b.rows = after
		b.indexed = "da"
		for range missed {
			if got := shown(t, client, due, "9", 0); got != "a1 b2 c3" {
				t.Errorf("%s: the index shows %q", name, got)
			}
		}
		if got, want := shown(t, client, due, "9", 0), shown(t, New(t, b, Plan{}), due, "9", 0); got != want {
			t.Errorf("%s: the index never catches up: %q, want %q", name, got, want)
		}
	}
}

func TestClient_StaleIndex_ShowsNoMoreThanWasAskedFor(t *testing.T) {
	t.Parallel()
	b := &backend{rows: []map[string]types.AttributeValue{entry("a", "1"), entry("b", "2"), entry("c", "3")}}
	client := New(t, b, always(StaleIndex))
	write1(t, client, "b")
	b.rows = []map[string]types.AttributeValue{entry("a", "1"), entry("c", "3")}
	if got := shown(t, client, due, "9", 2); got != "a1 b2 more" {
		t.Errorf("the index shows %q", got)
	}
}

// A write that leaves an entry where it was is none to the index.
func TestClient_StaleIndex_ShowsWhatDidNotMove(t *testing.T) {
	t.Parallel()
	b := &backend{rows: []map[string]types.AttributeValue{entry("a", "1")}}
	client := New(t, b, always(StaleIndex))
	write1(t, client, "a")
	if got := shown(t, client, due, "9", 0); got != "a1" {
		t.Errorf("the index shows %q", got)
	}
}
