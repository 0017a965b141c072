package chaos_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/runlane/runlane-go/internal/proof/chaos"
)

// proxied is a client whose requests go through a proxy to something that counts them.
func proxied(t *testing.T, faults *chaos.Faults) (client *dynamodb.Client, arrived *atomic.Int64, behind *chaos.Backend) {
	t.Helper()
	arrived, behind = &atomic.Int64{}, &chaos.Backend{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived.Add(1)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = w.Write([]byte(`{}`))
	}))
	t.Cleanup(server.Close)
	behind.Listens(server.URL)
	proxy, err := chaos.NewProxy(behind, faults)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(proxy.URL()), Region: "us-east-1", Credentials: aws.AnonymousCredentials{}, RetryMaxAttempts: 1,
		HTTPClient: &http.Client{Transport: transport}, DisableValidateResponseChecksum: true,
	}), arrived, behind
}

const requests = 600

func near(t *testing.T, what string, got int, rate float64) {
	t.Helper()
	if want := rate * requests; float64(got) < want*0.6 || float64(got) > want*1.4 {
		t.Errorf("%d of %d: %s, want about %.0f", got, requests, what, want)
	}
}

// What the SDK makes of the answers is what it makes of DynamoDB's: the members of a transaction are all there, and one met another.
func TestProxy_Writes_AreRefusedOrLoseTheirAnswers(t *testing.T) {
	t.Parallel()
	faults := chaos.NewFaults(3)
	faults.Switch(true)
	client, arrived, _ := proxied(t, faults)
	conflicts, throttles, lost := 0, 0, 0
	for range requests {
		_, err := client.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: make([]types.TransactWriteItem, 3)})
		cancelled, isCancelled := errors.AsType[*types.TransactionCanceledException](err)
		refused, isRefused := errors.AsType[smithy.APIError](err)
		switch {
		case isCancelled:
			met := 0
			for _, r := range cancelled.CancellationReasons {
				if aws.ToString(r.Code) == "TransactionConflict" {
					met++
				}
			}
			if len(cancelled.CancellationReasons) != 3 || met != 1 {
				t.Fatalf("%d members, of which %d met another", len(cancelled.CancellationReasons), met)
			}
			conflicts++
		case isRefused && (refused.ErrorCode() == "ThrottlingException" || refused.ErrorCode() == "ProvisionedThroughputExceededException"):
			throttles++
		case isRefused:
			t.Fatal(err)
		case err != nil:
			lost++
		}
	}
	near(t, "conflicts", conflicts, chaos.RefusedRate/2)
	near(t, "throttles", throttles, chaos.RefusedRate/2)
	near(t, "lost answers", lost, chaos.LostRate)
	if got := int(arrived.Load()); got != requests-conflicts-throttles {
		t.Errorf("%d requests arrived, and %d were not refused", got, requests-conflicts-throttles)
	}
	happened := faults.Happened()
	if happened[chaos.Conflict] != conflicts || happened[chaos.Throttle] != throttles || happened[chaos.LostResponse] != lost {
		t.Errorf("%v were counted", happened)
	}
}

func TestProxy_PlainWritesAndReads_MeetWhatTheyCanMeet(t *testing.T) {
	t.Parallel()
	faults := chaos.NewFaults(5)
	faults.Switch(true)
	client, _, _ := proxied(t, faults)
	conflicts, throttled := 0, 0
	for range requests {
		_, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("t"), Key: map[string]types.AttributeValue{}})
		if _, ok := errors.AsType[*types.TransactionConflictException](err); ok {
			conflicts++
		}
		_, err = client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("t"), Key: map[string]types.AttributeValue{}})
		if _, ok := errors.AsType[*types.TransactionConflictException](err); ok {
			t.Fatal("a read met a transaction")
		}
		if _, ok := errors.AsType[smithy.APIError](err); ok {
			throttled++
		}
	}
	near(t, "conflicts of plain writes", conflicts, chaos.RefusedRate/2)
	near(t, "throttled reads", throttled, chaos.RefusedRate)
}

func TestProxy_BackendThatDies_WorksOnWithoutAnswering(t *testing.T) {
	t.Parallel()
	client, arrived, behind := proxied(t, nil)
	ask := func() error {
		_, err := client.ListTables(t.Context(), &dynamodb.ListTablesInput{})
		return err
	}
	url := behind.URL()
	behind.Dies()
	if err := ask(); err == nil || arrived.Load() != 1 {
		t.Errorf("%d requests arrived at the dying one: %v", arrived.Load(), err)
	}
	behind.Gone()
	if err := ask(); err == nil || arrived.Load() != 1 {
		t.Errorf("%d requests arrived at one that is gone: %v", arrived.Load(), err)
	}
	behind.Listens(url)
	for range 50 { // without faults, none strikes
		if err := ask(); err != nil {
			t.Fatal(err)
		}
	}
	if got := arrived.Load(); got != 51 {
		t.Errorf("%d requests arrived", got)
	}
}
