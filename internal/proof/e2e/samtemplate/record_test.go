package samtemplate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// recorder stands between a function and local AWS and notes what would have to be allowed: "action resource".
type recorder struct {
	url       string
	resources map[string]string // names of tables and URLs of queues: what the template calls them

	mu       sync.Mutex
	seen     map[string]bool
	requests map[string]int // by operation
	failures []string       // requests that it did not understand
}

func record(t *testing.T, endpoint string, resources map[string]string) *recorder {
	t.Helper()
	target, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{resources: resources, seen: map[string]bool{}, requests: map[string]int{}}
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return
		}
		request.Body = io.NopCloser(bytes.NewReader(body))
		r.note(request.Header.Get("X-Amz-Target"), body)
		proxy.ServeHTTP(w, request)
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *recorder) note(target string, body []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests[target]++
	var needed []string
	var err error
	service, operation, _ := strings.Cut(target, ".")
	switch {
	case strings.HasPrefix(service, "DynamoDB_"):
		needed, err = r.dynamodb(operation, body)
	case service == "AmazonSQS":
		needed, err = r.sqs(operation, body)
	default:
		err = fmt.Errorf("no known service")
	}
	if err != nil {
		r.failures = append(r.failures, fmt.Sprintf("%s %s: %v", target, body, err))
	}
	for _, permission := range needed {
		r.seen[permission] = true
	}
}

// dynamodb names the actions of a request. A transaction has no own one: its members are what is authorized.
func (r *recorder) dynamodb(operation string, body []byte) ([]string, error) {
	var in struct {
		TableName     string
		IndexName     string
		RequestItems  map[string]json.RawMessage
		TransactItems []map[string]struct{ TableName string }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	names := map[string]string{"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}
	var needed []string
	add := func(action, table, index string) error {
		resource, ok := r.resources[table]
		if !ok || action == "" {
			return fmt.Errorf("%s of table %q", action, table)
		}
		if index != "" {
			resource += "/index/" + index
		}
		needed = append(needed, "dynamodb:"+action+" "+resource)
		return nil
	}
	if in.TableName != "" {
		err := add(operation, in.TableName, in.IndexName)
		return needed, err
	}
	for table := range in.RequestItems {
		if err := add(operation, table, ""); err != nil {
			return nil, err
		}
	}
	for _, member := range in.TransactItems {
		for kind, of := range member {
			if err := add(names[kind], of.TableName, ""); err != nil {
				return nil, err
			}
		}
	}
	if len(needed) == 0 {
		return nil, fmt.Errorf("it names no table")
	}
	return needed, nil
}

// sqs names the action of a request: a batch is authorized as the single call.
func (r *recorder) sqs(operation string, body []byte) ([]string, error) {
	var in struct {
		QueueURL string `json:"QueueUrl"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	resource, ok := r.resources[in.QueueURL]
	if !ok {
		return nil, fmt.Errorf("queue %q", in.QueueURL)
	}
	return []string{"sqs:" + strings.TrimSuffix(operation, "Batch") + " " + resource}, nil
}

// permissions returns what was seen, sorted.
func (r *recorder) permissions(t *testing.T) []string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, failure := range r.failures {
		t.Errorf("not understood: %s", failure)
	}
	return slices.Sorted(maps.Keys(r.seen))
}

// operations returns the operations that were seen, whichever service has them.
func (r *recorder) operations() (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for target := range r.requests {
		_, operation, _ := strings.Cut(target, ".")
		list = append(list, operation)
	}
	return list
}

// count returns how many requests were made since the last call.
func (r *recorder) count() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.requests
	r.requests = map[string]int{}
	return out
}
