package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	runResource     = "runlane://runs/{run}"
	historyResource = "runlane://runs/{run}/events"
)

// maxHistory limits a history that is read at once, in bytes. The tool has pages.
const maxHistory = 1 << 20

func (c *caller) addResources(to *sdk.Server) {
	to.AddResourceTemplate(&sdk.ResourceTemplate{
		Name:        "run",
		Title:       "A run",
		Description: "A run, exactly as it is now.",
		MIMEType:    "application/json",
		URITemplate: runResource,
	}, c.readRun)
	to.AddResourceTemplate(&sdk.ResourceTemplate{
		Name:        "history",
		Title:       "The history of a run",
		Description: "Everything that happened to a run: an event a line, the oldest first, up to 1 MiB.",
		MIMEType:    "application/x-ndjson",
		URITemplate: historyResource,
	}, c.readHistory)
}

// runPath converts a resource's URI to a path of the API.
func runPath(uri string) (path string, ok bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "runlane" || u.Host != "runs" {
		return "", false
	}
	run, rest, _ := strings.Cut(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	id, err := url.PathUnescape(run)
	if err != nil || id == "" || id == "." || id == ".." || rest != "" && rest != "events" {
		return "", false
	}
	path = "/v1/runs/" + url.PathEscape(id)
	if rest != "" {
		path += "/" + rest
	}
	return path, true
}

func (c *caller) readRun(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	path, ok := runPath(r.Params.URI)
	if !ok {
		return nil, sdk.ResourceNotFoundError(r.Params.URI)
	}
	got, err := c.read(ctx, r.Params.URI, path, nil)
	if err != nil {
		return nil, err
	}
	return contents(r.Params.URI, "application/json", got), nil
}

func (c *caller) readHistory(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	path, ok := runPath(r.Params.URI)
	if !ok {
		return nil, sdk.ResourceNotFoundError(r.Params.URI)
	}
	var lines bytes.Buffer
	query := url.Values{"limit": {"500"}}
	for lines.Len() < maxHistory {
		got, err := c.read(ctx, r.Params.URI, path, query)
		if err != nil {
			return nil, err
		}
		var page struct {
			Items []json.RawMessage
			Next  string
		}
		if err := json.Unmarshal(got, &page); err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			lines.Write(item)
			lines.WriteByte('\n')
		}
		if page.Next == "" {
			break
		}
		query.Set("after", page.Next)
	}
	return contents(r.Params.URI, "application/x-ndjson", lines.Bytes()), nil
}

// read returns an answer of the API, or an error for a problem.
func (c *caller) read(ctx context.Context, uri, path string, query url.Values) ([]byte, error) {
	got, err := c.do(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return nil, err
	}
	if got.status == http.StatusNotFound {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	if !got.good() {
		return nil, &problemError{text: got.body.String()}
	}
	return got.body.Bytes(), nil
}

type problemError struct{ text string }

func (e *problemError) Error() string { return e.text }

func contents(uri, media string, body []byte) *sdk.ReadResourceResult {
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: media, Text: string(body)}}}
}
