package awstest

import (
	"bytes"
	"crypto/sha256"
	"io"
	"net/http"
	"regexp"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// SameBytes stands below the SDK and compares what is sent under one request token: DynamoDB knows a transaction again
// by its token only if its parameters are the same, and answers IdempotentParameterMismatchException otherwise, where
// emulators look at the token alone. Every client of this package has one.
type SameBytes struct {
	below dynamodb.HTTPClient

	mu     sync.Mutex
	sums   map[string][sha256.Size]byte // of bodies, by token
	resent int
	other  []byte // a body that was not that of its token's first sending
}

// CheckSameBytes makes the test fail in the end if a transaction was sent again with other bytes.
func CheckSameBytes(t testing.TB, below dynamodb.HTTPClient) *SameBytes {
	t.Helper()
	c := &SameBytes{below: below, sums: map[string][sha256.Size]byte{}}
	t.Cleanup(func() {
		if fault := c.Fault(); fault != "" {
			t.Error(fault)
		}
	})
	return c
}

// Fault says what was wrong so far; "" is nothing.
func (c *SameBytes) Fault() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.other == nil {
		return ""
	}
	return "a request was sent again with other bytes under its token: " + string(c.other)
}

// Resent counts the requests that were sent again under their token.
func (c *SameBytes) Resent() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resent
}

var requestToken = regexp.MustCompile(`"ClientRequestToken":"([^"]*)"`)

// Do implements dynamodb.HTTPClient.
func (c *SameBytes) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.Header.Get("X-Amz-Target") != "DynamoDB_20120810.TransactWriteItems" {
		return c.below.Do(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	c.compare(body)
	same := *r
	same.Body = io.NopCloser(bytes.NewReader(body))
	return c.below.Do(&same)
}

func (c *SameBytes) compare(body []byte) {
	token := requestToken.FindSubmatch(body)
	if token == nil {
		return
	}
	sum := sha256.Sum256(body)
	c.mu.Lock()
	defer c.mu.Unlock()
	first, again := c.sums[string(token[1])]
	switch {
	case !again:
		c.sums[string(token[1])] = sum
	default:
		c.resent++
		if sum != first {
			c.other = bytes.Clone(body)
		}
	}
}
