package front_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go/internal/proof/ddbfault/front"
)

// emulator answers everything at once, except transactions while a gate is closed.
type emulator struct {
	gate    chan struct{}
	arrived chan string // operations, as they come

	mu    sync.Mutex
	count map[string]int
}

const layout = `{"Table": {"TableName": "t", "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}], ` +
	`"AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}]}}`

func (e *emulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	e.mu.Lock()
	e.count[operation]++
	e.mu.Unlock()
	if operation == "TransactWriteItems" {
		e.arrived <- operation
		<-e.gate
	}
	text := `{}`
	if operation == "DescribeTable" {
		text = layout
	}
	_, _ = w.Write([]byte(text))
}

// behind is a front before an emulator whose gate is closed, and a client that sends each request once.
func behind(t *testing.T, options *front.Options) (*emulator, *front.Front, *dynamodb.Client) {
	t.Helper()
	e := &emulator{gate: make(chan struct{}), arrived: make(chan string, 100), count: map[string]int{}}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	f, err := front.Start(server.URL, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return e, f, dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(f.URL()), Region: "us-east-1", RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
}

func key(pk string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: pk}}
}

// transaction puts items.
func transaction(token string, keys ...string) *dynamodb.TransactWriteItemsInput {
	in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: aws.String(token)}
	for _, k := range keys {
		in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Put: &types.Put{TableName: aws.String("t"), Item: key(k)}})
	}
	return in
}

// under starts a transaction and returns once it is under way.
func under(t *testing.T, e *emulator, client *dynamodb.Client, in *dynamodb.TransactWriteItemsInput) (end func() error) {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := client.TransactWriteItems(context.WithoutCancel(t.Context()), in)
		ended <- err
	}()
	<-e.arrived
	return func() error { return <-ended }
}

func codes(t *testing.T, err error) string {
	t.Helper()
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		t.Fatalf("error is %v", err)
	}
	var out []string
	for _, r := range cancelled.CancellationReasons {
		out = append(out, aws.ToString(r.Code))
	}
	return strings.Join(out, " ")
}

func TestFront_ATransactionThatMeetsAnother_IsCancelledInTheItemsPositions(t *testing.T) {
	t.Parallel()
	e, f, client := behind(t, &front.Options{Lost: -1})
	end := under(t, e, client, transaction("first", "a", "b"))

	_, err := client.TransactWriteItems(t.Context(), transaction("second", "c", "b", "d", "a"))
	if got := codes(t, err); got != "None TransactionConflict None TransactionConflict" {
		t.Errorf("reasons are %s", got)
	}
	_, err = client.TransactGetItems(t.Context(), &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{
		{Get: &types.Get{TableName: aws.String("t"), Key: key("c")}}, {Get: &types.Get{TableName: aws.String("t"), Key: key("a")}},
	}})
	if got := codes(t, err); got != "None TransactionConflict" {
		t.Errorf("reasons of a read are %s", got)
	}
	if f.Stats().Conflicts != 2 || e.count["TransactWriteItems"] != 1 {
		t.Errorf("%v, and %d transactions arrived", f.Stats(), e.count["TransactWriteItems"])
	}

	close(e.gate)
	if err := end(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.TransactWriteItems(t.Context(), transaction("second", "c", "b", "d", "a")); err != nil {
		t.Errorf("the first one has ended: %v", err)
	}
}

func TestFront_APlainWriteThatMeetsATransaction_IsRefused(t *testing.T) {
	t.Parallel()
	e, f, client := behind(t, &front.Options{Lost: -1})
	end := under(t, e, client, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{ConditionCheck: &types.ConditionCheck{TableName: aws.String("t"), Key: key("a"), ConditionExpression: aws.String("attribute_exists(pk)")}},
	}})
	_, put := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("t"), Item: key("a")})
	_, update := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String("t"), Key: key("a")})
	_, remove := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("t"), Key: key("a")})
	for _, err := range []error{put, update, remove} {
		if _, ok := errors.AsType[*types.TransactionConflictException](err); !ok {
			t.Errorf("error is %v", err)
		}
	}
	if f.Stats().Refused != 3 {
		t.Errorf("%v", f.Stats())
	}
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("t"), Item: key("b")}); err != nil {
		t.Errorf("a write of another item: %v", err)
	}
	read := &dynamodb.GetItemInput{TableName: aws.String("t"), Key: key("a"), ConsistentRead: aws.Bool(true)}
	if _, err := client.GetItem(t.Context(), read); err != nil {
		t.Errorf("a read of the item: %v", err)
	}
	close(e.gate)
	if err := end(); err != nil {
		t.Error(err)
	}
}

// A caller that gave up waiting sends the same once more, while the first sending is still under way.
func TestFront_ATransactionSentAgainWhileItIsUnderWay_IsInProgress(t *testing.T) {
	t.Parallel()
	e, f, client := behind(t, &front.Options{Lost: -1})
	end := under(t, e, client, transaction("first", "a"))
	_, err := client.TransactWriteItems(t.Context(), transaction("first", "a"))
	if _, ok := errors.AsType[*types.TransactionInProgressException](err); !ok || f.Stats().InProgress != 1 {
		t.Errorf("error is %v", err)
	}
	close(e.gate)
	if err := end(); err != nil {
		t.Error(err)
	}
}

// The items are held for a while after the transaction was carried out, though its caller does not know.
func TestFront_ItemsAreHeldUntilTheCommitHasEnded(t *testing.T) {
	t.Parallel()
	e, _, client := behind(t, &front.Options{Lost: -1, Commit: front.Span{Least: time.Hour, Most: time.Hour}})
	close(e.gate)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _, _ = client.TransactWriteItems(ctx, transaction("first", "a")) }()
	<-e.arrived
	_, err := client.TransactWriteItems(t.Context(), transaction("second", "a"))
	if got := codes(t, err); got != "TransactionConflict" {
		t.Errorf("reasons are %s", got)
	}
}

func TestFront_LosesAnswersOfWhatWasCarriedOut_AndNoMoreThanTwoInSuccession(t *testing.T) {
	t.Parallel()
	e, f, client := behind(t, &front.Options{Lost: 1})
	for n := range 3 {
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("t"), Item: key("a")})
		if heard := err == nil; heard != (n == 2) {
			t.Errorf("sending %d: %v", n, err)
		}
	}
	if e.count["PutItem"] != 3 || f.Stats().Lost != 2 {
		t.Errorf("%d requests were carried out: %v", e.count["PutItem"], f.Stats())
	}
}

// The same seed loses the answers to the same requests.
func TestFront_ASeedIsRepeatable(t *testing.T) {
	t.Parallel()
	pattern := func(seed uint64) (lost string) {
		_, f, client := behind(t, &front.Options{Lost: 0.3, Seed: seed})
		if f.Seed() != seed {
			t.Errorf("seed is %d", f.Seed())
		}
		for i := range 60 {
			_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("t"), Item: key(strings.Repeat("a", i+1))})
			lost += map[bool]string{true: ".", false: "x"}[err == nil]
		}
		return lost
	}
	first := pattern(1)
	if n := strings.Count(first, "x"); n == 0 || n == 60 {
		t.Errorf("lost %s", first)
	}
	if again := pattern(1); again != first {
		t.Errorf("lost %s, then %s", first, again)
	}
	if pattern(2) == first {
		t.Error("another seed loses the same answers")
	}
}
