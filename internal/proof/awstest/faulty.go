package awstest

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go/infra"
)

// Fault is what is wrong with an endpoint of [Faulty].
type Fault string

// The faults.
const (
	// Down: there is no listener.
	Down Fault = "down"
	// Silent: requests are taken and never answered.
	Silent Fault = "silent"
	// Expired: the session of the credentials is over.
	Expired Fault = "expired"
	// Unknown: no user has such credentials. The refusal quotes what was signed, the session's token included, as some
	// services do.
	Unknown Fault = "unknown"
	// Denied: the table can be looked at, nothing else may be done with it. Queues are open.
	Denied Fault = "denied"
	// DeniedQueues: queues may not be touched. The table can be looked at.
	DeniedQueues Fault = "denied-queues"
)

// Faulty is the address of an endpoint that answers requests to DynamoDB and SQS as AWS does with the fault. It needs
// no local AWS.
func Faulty(t testing.TB, fault Fault) (url string) {
	t.Helper()
	if fault == Down {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		return "http://" + listener.Addr().String()
	}
	ended := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // no client waits for an answer
		}
		service, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		if fault == Silent && service != "" {
			select {
			case <-r.Context().Done():
			case <-ended:
			}
			return
		}
		status, answer := fault.answer(service, action, string(body), r)
		text, _ := json.Marshal(answer) // maps of strings
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.Header().Set("X-Amzn-Requestid", "REQUEST")
		w.WriteHeader(status)
		_, _ = w.Write(text)
	}))
	server.Config.SetKeepAlivesEnabled(false) // no client keeps a connection, and with it goroutines
	server.Start()
	t.Cleanup(func() {
		close(ended)
		server.Close()
	})
	return server.URL
}

// answer is what AWS says to a request.
func (f Fault) answer(service, action, body string, r *http.Request) (status int, answer map[string]any) {
	dynamo := strings.HasPrefix(service, "DynamoDB")
	switch {
	case service == "": // a client wants to know the time
		return http.StatusOK, map[string]any{}
	case f == Expired && dynamo:
		return refusal(
			"com.amazon.coral.service#ExpiredTokenException",
			"The security token included in the request is expired",
		)
	case f == Expired:
		return refusal("com.amazon.coral.service#ExpiredToken", "The security token included in the request is expired")
	case f == Unknown:
		return refusal(
			"com.amazon.coral.service#InvalidSignatureException",
			"The request signature we calculated does not match. The Canonical String for this request should have "+
				"been 'POST / x-amz-security-token:"+
				r.Header.Get("X-Amz-Security-Token")+" '",
		)
	case action == "DescribeTable":
		return http.StatusOK, map[string]any{"Table": layout()}
	case action == "GetQueueAttributes" && f == Denied:
		return http.StatusOK, map[string]any{"Attributes": map[string]string{
			"QueueArn":                              "arn:aws:sqs:eu-west-1:123456789012:mail",
			"ApproximateNumberOfMessages":           "0",
			"ApproximateNumberOfMessagesNotVisible": "0",
		}}
	case action == "GetItem" && strings.Contains(body, `:config"`):
		return http.StatusOK, map[string]any{}
	case f == DeniedQueues && dynamo:
		return http.StatusOK, map[string]any{"Items": []string{}, "Count": 0}
	case dynamo:
		return refusal(
			"com.amazon.coral.service#AccessDeniedException",
			"User: arn:aws:iam::123456789012:user/ada is not authorized to perform: "+
				"dynamodb:"+action+" on resource: arn:aws:dynamodb:eu-west-1:123456789012:table/runs",
		)
	default:
		return refusal(
			"com.amazonaws.sqs#AccessDenied",
			"User: arn:aws:iam::123456789012:user/ada is not authorized to perform: "+
				"sqs:"+strings.ToLower(action)+" on resource: arn:aws:sqs:eu-west-1:123456789012:mail",
		)
	}
}

func refusal(kind, message string) (status int, answer map[string]any) {
	return http.StatusBadRequest, map[string]any{"__type": kind, "message": message}
}

// layout is what DynamoDB says of a table that infra describes.
func layout() map[string]any {
	keys := func(schema []types.KeySchemaElement) (all []map[string]string) {
		for _, key := range schema {
			all = append(all, map[string]string{
				"AttributeName": aws.ToString(key.AttributeName),
				"KeyType":       string(key.KeyType),
			})
		}
		return all
	}
	table := infra.TableInput("runs")
	var indexes []map[string]any
	for _, index := range table.GlobalSecondaryIndexes {
		indexes = append(indexes, map[string]any{
			"IndexName":   aws.ToString(index.IndexName),
			"IndexStatus": types.IndexStatusActive,
			"KeySchema":   keys(index.KeySchema),
			"Projection": map[string]any{
				"ProjectionType":   index.Projection.ProjectionType,
				"NonKeyAttributes": index.Projection.NonKeyAttributes,
			},
		})
	}
	return map[string]any{
		"TableStatus":            "ACTIVE",
		"KeySchema":              keys(table.KeySchema),
		"GlobalSecondaryIndexes": indexes,
	}
}
