package localstack_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// fakeAWS answers the few requests that creating table and queues takes, and keeps what was created. It stands for an endpoint
// that another user started.
type fakeAWS struct {
	*httptest.Server

	mu     sync.Mutex
	tables map[string]*types.TableDescription
	ttl    map[string]string
	queues map[string]map[string]string
}

func newFakeAWS(t *testing.T) *fakeAWS {
	t.Helper()
	f := &fakeAWS{tables: map[string]*types.TableDescription{}, ttl: map[string]string{}, queues: map[string]map[string]string{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fakeAWS) port() string { return f.URL[strings.LastIndex(f.URL, ":")+1:] }

func (f *fakeAWS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, operation, found := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if !found {
		return // a probe: 200
	}
	var in struct {
		dynamodb.CreateTableInput // DynamoDB's JSON has the SDK's field names
		TimeToLiveSpecification   types.TimeToLiveSpecification
		QueueName, QueueUrl       string
		Attributes                map[string]string
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out, fault := f.answer(operation, in.CreateTableInput, aws.ToString(in.TimeToLiveSpecification.AttributeName),
		in.QueueName+in.QueueUrl[strings.LastIndex(in.QueueUrl, "/")+1:], in.Attributes)
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if fault != "" {
		w.WriteHeader(http.StatusBadRequest)
		out = map[string]any{"__type": "com.amazonaws#" + fault, "message": fault}
	}
	_ = json.NewEncoder(w).Encode(out)
}

func (f *fakeAWS) answer(
	operation string, table dynamodb.CreateTableInput, ttl, queue string, attributes map[string]string,
) (out map[string]any, fault string) {
	name := aws.ToString(table.TableName)
	switch operation {
	case "CreateTable":
		if f.tables[name] != nil {
			return nil, "ResourceInUseException"
		}
		f.tables[name] = describe(table)
		return map[string]any{"TableDescription": f.tables[name]}, ""
	case "DescribeTable":
		if f.tables[name] == nil {
			return nil, "ResourceNotFoundException"
		}
		return map[string]any{"Table": f.tables[name]}, ""
	case "UpdateTimeToLive":
		f.ttl[name] = ttl
		return map[string]any{}, ""
	case "DescribeTimeToLive":
		status := map[bool]string{true: "ENABLED", false: "DISABLED"}[f.ttl[name] != ""]
		return map[string]any{"TimeToLiveDescription": map[string]string{"TimeToLiveStatus": status, "AttributeName": f.ttl[name]}}, ""
	case "CreateQueue":
		attributes["QueueArn"] = "arn:aws:sqs:us-east-1:000000000000:" + queue
		f.queues[queue] = attributes
		return map[string]any{"QueueUrl": f.URL + "/queue/" + queue}, ""
	case "SetQueueAttributes":
		maps.Copy(f.queues[queue], attributes)
		return map[string]any{}, ""
	case "GetQueueAttributes":
		return map[string]any{"Attributes": f.queues[queue]}, ""
	}
	return nil, "UnknownOperationException"
}

func describe(in dynamodb.CreateTableInput) *types.TableDescription {
	d := &types.TableDescription{
		TableName: in.TableName, TableStatus: types.TableStatusActive, KeySchema: in.KeySchema,
		AttributeDefinitions: in.AttributeDefinitions, StreamSpecification: in.StreamSpecification,
	}
	for _, index := range in.GlobalSecondaryIndexes {
		d.GlobalSecondaryIndexes = append(d.GlobalSecondaryIndexes, types.GlobalSecondaryIndexDescription{
			IndexName: index.IndexName, IndexStatus: types.IndexStatusActive, KeySchema: index.KeySchema, Projection: index.Projection,
		})
	}
	return d
}
