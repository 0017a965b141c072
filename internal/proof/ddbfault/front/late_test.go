package front_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/ddbfault/front"
)

// late is a table of two items, a and b, and a client of it behind a front that comes after them.
func late(t *testing.T, span front.Span) (table string, client *dynamodb.Client) {
	t.Helper()
	direct := awstest.DynamoDB(t)
	table = awstest.Table(t, direct)
	put(t, direct, table, "a", "1")
	put(t, direct, table, "b", "2")
	_, client = awstest.Front(t, &front.Options{Lost: -1, Late: span})
	shown(t, client, table) // makes it known
	return table, client
}

// put makes an item with an entry in the index; without one where due is empty.
func put(t *testing.T, client *dynamodb.Client, table, name, due string) {
	t.Helper()
	item := row(name)
	if due != "" {
		item["dp"], item["da"] = &types.AttributeValueMemberS{Value: "due"}, &types.AttributeValueMemberS{Value: due}
	}
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table), Item: item}); err != nil {
		t.Fatal(err)
	}
}

func row(name string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: name}, "sk": &types.AttributeValueMemberS{Value: "run"},
	}
}

func value(v types.AttributeValue) string {
	s, _ := v.(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}

// shown is what the index shows.
func shown(t *testing.T, client *dynamodb.Client, table string) string {
	t.Helper()
	out, err := client.Query(t.Context(), &dynamodb.QueryInput{
		TableName: aws.String(table), IndexName: aws.String("due"), KeyConditionExpression: aws.String("dp = :p"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":p": &types.AttributeValueMemberS{Value: "due"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, item := range out.Items {
		rows = append(rows, value(item["pk"])+value(item["da"]))
	}
	slices.Sort(rows)
	return strings.Join(rows, " ")
}

// read is an item's place in the index as a read of the table shows it; "-" where there is no item.
func read(t *testing.T, client *dynamodb.Client, table, name string, strong bool) string {
	t.Helper()
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(table), Key: row(name), ConsistentRead: aws.Bool(strong)})
	if err != nil {
		t.Fatal(err)
	}
	if out.Item == nil {
		return "-"
	}
	return value(out.Item["da"])
}

func TestFront_AnIndexHidesNewEntriesAndKeepsOldOnes(t *testing.T) {
	t.Parallel()
	table, client := late(t, front.Span{Least: time.Hour, Most: time.Hour})
	_, err := client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Update: &types.Update{
			TableName: aws.String(table), Key: row("a"), UpdateExpression: aws.String("SET da = :to"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":to": &types.AttributeValueMemberS{Value: "9"}},
		}},
		{Delete: &types.Delete{TableName: aws.String(table), Key: row("b")}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	put(t, client, table, "c", "3")
	if got := shown(t, client, table); got != "a1 b2" {
		t.Errorf("the index shows %q", got)
	}
	for name, want := range map[string][2]string{"a": {"9", "1"}, "b": {"-", "2"}, "c": {"3", "-"}} {
		if strong, eventual := read(t, client, table, name, true), read(t, client, table, name, false); strong != want[0] || eventual != want[1] {
			t.Errorf("item %s: a strong read shows %q, another %q", name, strong, eventual)
		}
	}
}

func TestFront_WhatIsLateComes_TheLastWriteOfAnItemLast(t *testing.T) {
	t.Parallel()
	table, client := late(t, front.Span{Least: time.Millisecond, Most: 40 * time.Millisecond})
	for n := range 30 {
		put(t, client, table, "a", fmt.Sprintf("%02d", n))
		if n%3 == 0 {
			put(t, client, table, "b", "")
		}
	}
	deadline := time.Now().Add(time.Minute)
	for shown(t, client, table) != "a29" {
		if time.Now().After(deadline) {
			t.Fatalf("the index shows %q", shown(t, client, table))
		}
	}
	if got := read(t, client, table, "a", false); got != "29" {
		t.Errorf("a late read shows %q", got)
	}
}

// Errors have the check sum that the SDK validates, and a table that does not exist is an error of the emulator.
func TestFront_WhatTheEmulatorRefuses_IsRefused(t *testing.T) {
	t.Parallel()
	table, client := late(t, front.Span{})
	_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(table + "-not"), Item: row("a")})
	if err == nil || !strings.Contains(err.Error(), "ResourceNotFoundException") {
		t.Errorf("error is %v", err)
	}
	_, err = client.PutItem(t.Context(), &dynamodb.PutItemInput{
		TableName: aws.String(table), Item: row("a"), ConditionExpression: aws.String("attribute_not_exists(pk)"),
	})
	if err == nil || !strings.Contains(err.Error(), "ConditionalCheckFailedException") {
		t.Errorf("error is %v", err)
	}
}
