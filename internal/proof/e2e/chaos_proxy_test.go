package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Proxy stands before DynamoDB Local, so that it can be somewhere else after each start, and in front of programs whose
// requests go wrong. While there is no listener behind it, connections break. End it with Close.
type Proxy struct {
	faults *Faults // nil: requests go through as they are
	behind *Backend
	client *http.Client
	server *http.Server
	served sync.WaitGroup
	url    string
}

// Backend is what a [Proxy] stands before. The zero value is nowhere.
type Backend struct {
	url   atomic.Pointer[string]
	dying atomic.Bool
}

// Listens says where it is now.
func (b *Backend) Listens(url string) {
	b.dying.Store(false)
	b.url.Store(&url)
}

// URL is where it is, "" when it is nowhere.
func (b *Backend) URL() string {
	if url := b.url.Load(); url != nil {
		return *url
	}
	return ""
}

// Dies lets requests through and keeps the answers: the clients cannot know their outcomes.
func (b *Backend) Dies() { b.dying.Store(true) }

// Gone says that there is no listener any more.
func (b *Backend) Gone() { b.url.Store(nil) }

// NewProxy listens on loopback.
func NewProxy(behind *Backend, faults *Faults) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		faults: faults, behind: behind, url: "http://" + listener.Addr().String(),
		client: &http.Client{Transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}},
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	p.served.Go(func() { _ = p.server.Serve(listener) }) // ends with Close
	return p, nil
}

// URL is the proxy's endpoint.
func (p *Proxy) URL() string { return p.url }

// Close ends the proxy and its connections.
func (p *Proxy) Close() error {
	err := p.server.Close()
	p.served.Wait()
	p.client.CloseIdleConnections()
	return err
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // no client waits for an answer
	}
	if p.faults != nil && p.refuse(w, r, body) {
		return
	}
	status, header, answer, err := p.forward(r, body)
	if err != nil || p.behind.dying.Load() || p.faults != nil && p.faults.Strikes(LostResponse, LostRate) {
		panic(http.ErrAbortHandler) // the connection breaks
	}
	for name, values := range header {
		w.Header()[name] = values
	}
	w.WriteHeader(status)
	_, _ = w.Write(answer)
}

var errNowhere = errors.New("chaos: there is no listener behind the proxy")

func (p *Proxy) forward(r *http.Request, body []byte) (status int, header http.Header, answer []byte, err error) {
	target := p.behind.URL()
	if target == "" {
		return 0, nil, nil, errNowhere
	}
	request, err := http.NewRequestWithContext(r.Context(), r.Method, target+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	request.Header = r.Header.Clone()
	response, err := p.client.Do(request)
	if err != nil {
		return 0, nil, nil, err
	}
	defer response.Body.Close()
	if answer, err = io.ReadAll(response.Body); err != nil {
		return 0, nil, nil, err
	}
	header = response.Header.Clone()
	header.Set("Content-Length", strconv.Itoa(len(answer)))
	return response.StatusCode, header, answer, nil
}

const (
	dynamoErrors = "com.amazonaws.dynamodb.v20120810#"
	transactor   = "TransactWriteItems"
)

// writes are the operations that can meet a transaction.
var writes = []string{transactor, "UpdateItem", "PutItem", "DeleteItem"}

// refuse answers in place of DynamoDB, or not. Streams are left alone: the mapping reads them, which is none of the
// functions.
func (p *Proxy) refuse(w http.ResponseWriter, r *http.Request, body []byte) bool {
	service, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if !strings.HasPrefix(service, "DynamoDB_") {
		return false
	}
	throttles := RefusedRate
	if slices.Contains(writes, operation) {
		if p.faults.Strikes(Conflict, RefusedRate/2) {
			p.conflict(w, operation, body)
			return true
		}
		throttles = RefusedRate / 2 / (1 - RefusedRate/2) // of what is left
	}
	if !p.faults.Strikes(Throttle, throttles) {
		return false
	}
	kind := "ProvisionedThroughputExceededException"
	if p.faults.Pick(2) == 0 {
		kind = "ThrottlingException"
	}
	answerError(w, map[string]any{"__type": dynamoErrors + kind, "message": "chaos: too many requests"})
	return true
}

// conflict is what meeting another transaction looks like: in a transaction, one member did.
func (p *Proxy) conflict(w http.ResponseWriter, operation string, body []byte) {
	if operation != transactor {
		answerError(w, map[string]any{
			"__type":  dynamoErrors + "TransactionConflictException",
			"message": "chaos: a transaction is under way",
		})
		return
	}
	var in struct{ TransactItems []json.RawMessage }
	_ = json.Unmarshal(body, &in) // what cannot be read has no members
	reasons := make([]map[string]string, len(in.TransactItems))
	for i := range reasons {
		reasons[i] = map[string]string{"Code": "None"}
	}
	if len(reasons) > 0 {
		reasons[p.faults.Pick(len(reasons))] = map[string]string{
			"Code":    "TransactionConflict",
			"Message": "chaos: a transaction is under way",
		}
	}
	answerError(w, map[string]any{
		"__type":              dynamoErrors + "TransactionCanceledException",
		"Message":             "Transaction cancelled",
		"CancellationReasons": reasons,
	})
}

func answerError(w http.ResponseWriter, answer map[string]any) {
	text, _ := json.Marshal(answer) // maps of strings
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.Header().Set("X-Amzn-Requestid", "CHAOS")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(text)
}
