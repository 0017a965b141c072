package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// caller calls the API for the caller of one request.
type caller struct {
	api     http.Handler
	prefix  string
	request *http.Request // its headers and address authenticate the caller
}

// ownHeaders are headers of the MCP request itself, which are not passed on to the API.
var ownHeaders = []string{
	"Accept", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Idempotency-Key",
	"If-Match", "If-None-Match", "Last-Event-Id", "Request-Timeout", "Transfer-Encoding",
}

func (c *caller) do(ctx context.Context, method, path string, query url.Values, body []byte) (*answer, error) {
	target := c.prefix + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	var reader io.Reader // must be nil if there is no body
	if body != nil {
		reader = bytes.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, target, reader)
	if err != nil {
		return nil, err
	}
	r.Header = c.request.Header.Clone()
	for _, name := range ownHeaders {
		r.Header.Del(name)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Host, r.RemoteAddr, r.TLS = c.request.Host, c.request.RemoteAddr, c.request.TLS
	got := &answer{header: http.Header{}, status: http.StatusOK}
	c.api.ServeHTTP(got, r)
	return got, nil
}

type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }

func (a *answer) WriteHeader(status int) { a.status = status }

func (a *answer) good() bool { return a.status >= 200 && a.status < 300 }

// handler converts a tool's arguments to a request, and the answer to a result. A problem is also a result, for the
// model to read.
func (c *caller) handler(o *operation) sdk.ToolHandler {
	return func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		path, query, body, fault := o.request(r.Params.Arguments)
		if fault != "" {
			return &sdk.CallToolResult{IsError: true, Content: text(fault)}, nil
		}
		got, err := c.do(ctx, o.method, path, query, body)
		if err != nil {
			return nil, err
		}
		result := &sdk.CallToolResult{Content: text(got.body.String()), IsError: !got.good()}
		if got.good() {
			result.StructuredContent = json.RawMessage(got.body.Bytes())
		}
		return result, nil
	}
}

func text(text string) []sdk.Content { return []sdk.Content{&sdk.TextContent{Text: text}} }

// request builds a request from a tool's arguments. Unknown arguments are passed on, so that the API refuses them by
// name. fault describes arguments that cannot be sent.
func (o *operation) request(given json.RawMessage) (path string, query url.Values, body []byte, fault string) {
	arguments := map[string]json.RawMessage{}
	if len(given) > 0 {
		if err := json.Unmarshal(given, &arguments); err != nil {
			return "", nil, nil, "the arguments are not JSON object"
		}
	}
	path = o.path
	for _, name := range o.inPath {
		value := plain(arguments[name])
		if value == "" || value == "." || value == ".." {
			return "", nil, nil, fmt.Sprintf("the argument %s is missing, or names nothing", name)
		}
		path = strings.Replace(path, "{"+name+"}", url.PathEscape(value), 1)
		delete(arguments, name)
	}
	query = url.Values{}
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		if !o.body || slices.Contains(o.inQuery, name) {
			query.Set(name, plain(arguments[name]))
			delete(arguments, name)
		}
	}
	if o.body {
		body = object(arguments)
	}
	return path, query, body, ""
}

// plain formats a value for a URL: strings without quotes, other values as JSON.
func plain(value json.RawMessage) string {
	var word string
	if json.Unmarshal(value, &word) == nil {
		return word
	}
	return string(value)
}

// object builds a JSON object. Values keep their bytes, as payloads must.
func object(fields map[string]json.RawMessage) []byte {
	b := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(fields)) {
		if i > 0 {
			b = append(b, ',')
		}
		key, _ := json.Marshal(name) // strings always encode
		b = append(append(append(b, key...), ':'), fields[name]...)
	}
	return append(b, '}')
}
