package dynamostore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore/internal/item"
	"github.com/runlane/runlane-go/lane"
)

// scriptedClient stands at the SDK's seam. It keeps items, and answers each transaction as the script says.
type scriptedClient struct {
	API
	items  map[string]item.Item
	script []answer
	deaf   bool // reads of several items fail
	sent   []*dynamodb.TransactWriteItemsInput
}

// answer decides one sending: whether it is carried out, and what the caller hears. One beyond the script is carried out.
type answer struct {
	commit bool
	err    error
}

func newScripted(script ...answer) *scriptedClient {
	return &scriptedClient{items: map[string]item.Item{}, script: script}
}

func keyText(it item.Item) string { return item.TextOf(it[item.PK]) + " " + item.TextOf(it[item.SK]) }

func (c *scriptedClient) GetItem(_ context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return &dynamodb.GetItemOutput{Item: c.items[keyText(in.Key)]}, nil
}

func (c *scriptedClient) BatchGetItem(_ context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	if c.deaf {
		return nil, errServer
	}
	out := &dynamodb.BatchGetItemOutput{Responses: map[string][]map[string]types.AttributeValue{}}
	for table, asked := range in.RequestItems {
		for _, key := range asked.Keys {
			if it, ok := c.items[keyText(key)]; ok {
				out.Responses[table] = append(out.Responses[table], it)
			}
		}
	}
	return out, nil
}

func (c *scriptedClient) TransactWriteItems(_ context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	c.sent = append(c.sent, in)
	a := answer{commit: true}
	if len(c.script) > 0 {
		a, c.script = c.script[0], c.script[1:]
	}
	if a.commit {
		for _, w := range in.TransactItems {
			if w.Put != nil {
				c.items[keyText(w.Put.Item)] = w.Put.Item
			}
		}
	}
	return &dynamodb.TransactWriteItemsOutput{}, a.err
}

func cancelled(codes ...string) error {
	e := &types.TransactionCanceledException{}
	for _, code := range codes {
		e.CancellationReasons = append(e.CancellationReasons, types.CancellationReason{Code: aws.String(code)})
	}
	return e
}

var (
	errLostAnswer = errors.New("connection reset by peer")
	errThrottled  = &smithy.GenericAPIError{Code: "ThrottlingException", Fault: smithy.FaultClient}
	errInvalid    = &smithy.GenericAPIError{Code: "ValidationException", Fault: smithy.FaultClient}
	errServer     = &smithy.GenericAPIError{Code: "InternalServerError", Fault: smithy.FaultServer}
	errExpired    = &smithy.GenericAPIError{Code: "ExpiredTokenException", Fault: smithy.FaultClient}
	errDenied     = &smithy.GenericAPIError{Code: "AccessDeniedException", Fault: smithy.FaultClient}
	errMismatch   = &types.IdempotentParameterMismatchException{}
)

var testTime = time.Date(2026, 11, 2, 3, 4, 5, 678_000_000, time.UTC)

// creation is a simple trigger's command.
func creation(t *testing.T, id runlane.RunID) *lane.AppendCommand {
	t.Helper()
	event := func(body runlane.EventBody) runlane.Event {
		return runlane.Event{RunID: id, Environment: "test", OccurredAt: testTime, Actor: runlane.SystemActor, Body: body}
	}
	events := []runlane.Event{
		event(&runlane.RunCreated{TaskID: "a.task", Queue: "default", Payload: []byte(`{"a":1}`), Source: runlane.Source{Type: runlane.SourceTrigger}}),
		event(&runlane.RunDeliveryRequested{Delivery: runlane.Delivery{
			Environment: "test", RunID: id, Queue: "default", AvailableAt: testTime, RequestedAt: testTime,
		}}),
	}
	run, err := core.ProjectRunEvents(nil, 0, events...)
	if err != nil {
		t.Fatal(err)
	}
	return &lane.AppendCommand{
		Transition: lane.Transition{Events: events, Projected: run, Queue: runlane.DefaultQueue},
		Outbox:     lane.InitialOutbox{ClaimUntil: testTime.Add(runlane.DefaultOutboxClaim)},
	}
}

func TestTransaction_Answers(t *testing.T) {
	t.Parallel()
	repeat := func(n int, a answer) []answer { return slices.Repeat([]answer{a}, n) }
	conflict := answer{err: cancelled("TransactionConflict", "None")}
	for name, row := range map[string]struct {
		script  []answer
		sent    int
		code    runlane.ErrorCode // "": committed
		outcome string
	}{
		"a conflict is repeated in place":                                 {[]answer{conflict}, 2, "", ""},
		"seven conflicts are repeated":                                    {repeat(7, conflict), 8, "", ""},
		"the eighth is, while no caller has won":                          {repeat(23, conflict), 24, "", ""},
		"the twenty-fourth conflict ends it, known not committed":         {repeat(24, conflict), 24, runlane.ErrStorageUnavailable, "not committed"},
		"a lost answer is settled by sending again":                       {[]answer{{true, errLostAnswer}}, 2, "", ""},
		"a server error is settled by sending again":                      {[]answer{{false, errServer}}, 2, "", ""},
		"an answer lost for good is settled by the log item":              {repeat(4, answer{true, errLostAnswer}), 4, "", ""},
		"an outage is unknown and reported so":                            {repeat(4, answer{false, errLostAnswer}), 4, runlane.ErrStorageUnavailable, "unknown"},
		"server errors for good are as unknown":                           {repeat(4, answer{false, errServer}), 4, runlane.ErrStorageUnavailable, "unknown"},
		"expired credentials after a lost answer do not tell it":          {[]answer{{true, errLostAnswer}, {false, errExpired}}, 2, "", ""},
		"nor does a denial":                                               {[]answer{{true, errServer}, {false, errDenied}}, 2, "", ""},
		"nor does a mismatch of parameters":                               {[]answer{{true, errLostAnswer}, {false, errMismatch}}, 2, "", ""},
		"nor does a refused request":                                      {[]answer{{true, errLostAnswer}, {false, errInvalid}}, 2, "", ""},
		"nor does a refused member":                                       {[]answer{{true, errLostAnswer}, {false, cancelled("ValidationError", "None")}}, 2, "", ""},
		"nor do throttles for good":                                       {slices.Concat(repeat(1, answer{true, errLostAnswer}), repeat(8, answer{false, errThrottled})), 9, "", ""},
		"expired credentials after an outage leave it unknown":            {[]answer{{false, errLostAnswer}, {false, errExpired}}, 2, runlane.ErrStorageUnavailable, "unknown"},
		"a refused request after an outage leaves it unknown":             {[]answer{{false, errServer}, {false, errInvalid}}, 2, runlane.ErrContractViolation, "unknown"},
		"throttles for good are known not committed":                      {repeat(8, answer{false, errThrottled}), 8, runlane.ErrStorageUnavailable, "not committed"},
		"throttled members for good are known not committed":              {repeat(8, answer{false, cancelled("ThrottlingError", "None")}), 8, runlane.ErrStorageUnavailable, "not committed"},
		"conflicts after a lost answer are settled by the log item":       {slices.Concat(repeat(1, answer{true, errLostAnswer}), repeat(2, conflict)), 3, "", ""},
		"conflicts after an outage do not tell the outcome of the commit": {slices.Concat(repeat(1, answer{false, errLostAnswer}), repeat(24, conflict)), 25, runlane.ErrStorageUnavailable, "unknown"},
		"a throttle backs off":                                            {[]answer{{false, errThrottled}}, 2, "", ""},
		"a throttled member backs off":                                    {[]answer{{false, cancelled("ThrottlingError", "None")}}, 2, "", ""},
		"a throttle beside a conflict backs off":                          {[]answer{{false, cancelled("ThrottlingError", "TransactionConflict")}}, 2, "", ""},
		"a refused request is a contract violation":                       {[]answer{{false, errInvalid}}, 1, runlane.ErrContractViolation, ""},
		"a refused member is a contract violation":                        {[]answer{{false, cancelled("ValidationError", "None")}}, 1, runlane.ErrContractViolation, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := newScripted(row.script...)
				store := New(client, "table", nil)
				commit, err := store.AppendRunEvents(t.Context(), creation(t, "run_1"))
				if got := runlane.CodeOf(err); got != row.code {
					t.Fatalf("code %q, want %q: %v", got, row.code, err)
				}
				if len(client.sent) != row.sent {
					t.Errorf("sent %d times, want %d", len(client.sent), row.sent)
				}
				if e, ok := errors.AsType[*runlane.Error](err); ok && row.outcome != "" && e.Meta["outcome"] != row.outcome {
					t.Errorf("outcome %q, want %q", e.Meta["outcome"], row.outcome)
				}
				if row.code == "" && len(commit.Events) != 2 {
					t.Errorf("commit has %d events", len(commit.Events))
				}
				for _, in := range client.sent[1:] {
					if in != client.sent[0] {
						t.Error("the request was changed between sendings")
					}
				}
			})
		})
	}
}

// A condition that fails beside a conflict may be resolved by the other's end, so it is tried again; a run that exists already
// is final.
func TestTransaction_ConditionBesideConflict(t *testing.T) {
	t.Parallel()
	mixed := func(old item.Item) error {
		return &types.TransactionCanceledException{CancellationReasons: []types.CancellationReason{
			{Code: aws.String("ConditionalCheckFailed"), Item: old}, {Code: aws.String("TransactionConflict")},
		}}
	}
	t.Run("without an item it is repeated", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			client := newScripted(answer{err: mixed(nil)})
			if _, err := New(client, "table", nil).AppendRunEvents(t.Context(), creation(t, "run_1")); err != nil || len(client.sent) != 2 {
				t.Fatalf("sent %d times: %v", len(client.sent), err)
			}
		})
	})
	t.Run("a higher sequence is final", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			client := newScripted(answer{err: mixed(item.Item{"sq": item.Num(7)})})
			_, err := New(client, "table", nil).AppendRunEvents(t.Context(), creation(t, "run_1"))
			if !errors.Is(err, runlane.ConflictEventSequence) || len(client.sent) != 1 {
				t.Fatalf("sent %d times: %v", len(client.sent), err)
			}
		})
	})
}

// The answer to a commit is lost, the request token is forgotten, and the repetition fails on its conditions: the log item of
// that sequence tells that the commit was ours.
func TestTransaction_OwnEarlierCommit_IsSuccess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := newScripted(answer{true, errLostAnswer}, answer{})
		failing := &ownCommit{scriptedClient: client}
		commit, err := New(failing, "table", nil).AppendRunEvents(t.Context(), creation(t, "run_1"))
		if err != nil || commit.Run.EventSequence != 2 {
			t.Fatalf("%v %v", commit, err)
		}
	})
}

// ownCommit answers every sending but the first with failed conditions and the images that are there.
type ownCommit struct{ *scriptedClient }

func (c *ownCommit) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	if len(c.sent) == 0 {
		return c.scriptedClient.TransactWriteItems(ctx, in, o...)
	}
	e := &types.TransactionCanceledException{}
	for _, w := range in.TransactItems {
		e.CancellationReasons = append(e.CancellationReasons, types.CancellationReason{
			Code: aws.String("ConditionalCheckFailed"), Item: maps.Clone(c.items[keyText(w.Put.Item)]),
		})
	}
	return nil, e
}

func TestTransaction_CancelledContext_IsOperationCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	client := newScripted(answer{true, context.Canceled})
	cancel()
	_, err := New(client, "table", nil).AppendRunEvents(ctx, creation(t, "run_1"))
	e, ok := errors.AsType[*runlane.Error](err)
	if !ok || e.Code != runlane.ErrOperationCancelled || e.Meta["outcome"] != "unknown" || !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
}

func TestUnreachableEndpoint_IsStorageUnavailable(t *testing.T) {
	t.Parallel()
	client := dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String("http://127.0.0.1:1"), Region: "us-east-1", RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
		}),
	})
	err := New(client, "table", nil).Start(t.Context())
	e, ok := errors.AsType[*runlane.Error](err)
	if !ok || e.Code != runlane.ErrStorageUnavailable || !e.Retryable || e.Hint == "" || e.Cause == nil {
		t.Fatalf("%v", err)
	}
}
