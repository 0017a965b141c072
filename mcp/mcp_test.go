package mcp_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/mcp"
	"github.com/runlane/runlane-go/server"
)

// reading are the tools that are always there, with arguments that find something.
var reading = map[string]map[string]any{
	"find":        {"status": "failed,queued", "limit": 10},
	"get":         {"run": "ended"},
	"explain":     {"run": "asking"},
	"history":     {"run": "failed"},
	"attempts":    {"run": "failed"},
	"steps":       {"run": "asking"},
	"logs":        {"run": "asking"},
	"receipts":    {"run": "failed"},
	"tree":        {"run": "failed"},
	"flows":       {"status": "active"},
	"flow":        {"flow": "release", "sizes": true},
	"deadletters": {},
	"tasks":       {},
	"queues":      {},
	"queue":       {"queue": "default"},
	"schedules":   {},
	"schedule":    {"schedule": "nightly"},
	"occurrences": {"schedule": "nightly"},
}

func toolsOf(t testing.TB, client *sdk.ClientSession) map[string]*sdk.Tool {
	t.Helper()
	found := map[string]*sdk.Tool{}
	for tool, err := range client.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		found[tool.Name] = tool
	}
	return found
}

func TestTools_WithoutPermission_OnlyRead(t *testing.T) {
	t.Parallel()
	each(t, nil, func(on *connected) {
		t, client := on.t, on.client
		found := toolsOf(t, client)
		if got, want := slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(reading)); !slices.Equal(got, want) {
			t.Errorf("tools are %v, want %v", got, want)
		}
		for name, tool := range found {
			if !tool.Annotations.ReadOnlyHint || *tool.Annotations.DestructiveHint || tool.Description == "" {
				t.Errorf("%s: %+v", name, tool.Annotations)
			}
		}
		for _, name := range mcp.Writing() {
			_, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: map[string]any{"run": "later"}})
			if err == nil {
				t.Errorf("%s is there", name)
			}
		}
	})
}

func TestTools_OneThatIsAllowed_IsThereAlone(t *testing.T) {
	t.Parallel()
	each(t, &mcp.Options{Allow: []string{"cancel"}}, func(on *connected) {
		t, client := on.t, on.client
		found := toolsOf(t, client)
		if len(found) != len(reading)+1 || found["cancel"] == nil {
			t.Fatalf("%v", slices.Sorted(maps.Keys(found)))
		}
		hints := found["cancel"].Annotations
		if hints.ReadOnlyHint || !*hints.DestructiveHint || !hints.IdempotentHint || *hints.OpenWorldHint {
			t.Errorf("%+v", hints)
		}
	})
}

// fits judges a value by a schema that a client was given.
func fits(t testing.TB, what string, of, value any) {
	t.Helper()
	text, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatalf("%s: %v in %s", what, err, text)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatalf("%s: %v in %s", what, err, text)
	}
	if err := resolved.Validate(value); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

func TestTools_ResultsFitTheirSchemas(t *testing.T) {
	t.Parallel()
	each(t, nil, func(on *connected) {
		t, client := on.t, on.client
		found := toolsOf(t, client)
		for name, arguments := range reading {
			fits(t, "arguments of "+name, found[name].InputSchema, arguments)
			text, result := call(t, client, name, arguments)
			if result.IsError || result.StructuredContent == nil {
				t.Errorf("%s: %s", name, text)
				continue
			}
			fits(t, "the result of "+name, found[name].OutputSchema, result.StructuredContent)
		}
		if text, _ := call(t, client, "find", reading["find"]); !strings.Contains(text, `"runId":"failed"`) || strings.Contains(text, `"runId":"ended"`) {
			t.Errorf("find: %s", text)
		}
	})
}

func TestTools_WhatIsWrong_IsSaidToTheModel(t *testing.T) {
	t.Parallel()
	each(t, &mcp.Options{Allow: mcp.Writing()}, func(on *connected) {
		t, client := on.t, on.client
		for _, c := range []struct {
			tool      string
			arguments map[string]any
			says      string
		}{
			{"find", map[string]any{"statu": "failed"}, `there is no parameter \"statu\" here`},
			{"get", map[string]any{}, "the argument run is missing"},
			{"get", map[string]any{"run": ".."}, "the argument run is missing, or names nothing"},
			{"get", map[string]any{"run": "a/../../metrics"}, `"code":"run_not_found"`},
			{"explain", map[string]any{"run": "absent"}, `"code":"run_not_found"`},
			{"trigger", map[string]any{"task": "mail.welcom"}, `"code":"task_not_found"`},
			{"trigger", map[string]any{"task": "mail.welcome", "payloads": 1}, "there is no field"},
			{"cancel", map[string]any{"run": "ended"}, `"status":409`},
			{"answer", map[string]any{"token": "forged"}, `"code":"token_invalid"`},
		} {
			text, result := call(t, client, c.tool, c.arguments)
			if !result.IsError || result.StructuredContent != nil || !strings.Contains(text, c.says) {
				t.Errorf("%s %v: %v %s", c.tool, c.arguments, result.IsError, text)
			}
		}
	})
}

func TestTools_Changes(t *testing.T) {
	t.Parallel()
	each(t, &mcp.Options{Allow: mcp.Writing()}, func(on *connected) {
		t, w, client := on.t, on.w, on.client
		found := toolsOf(t, client)
		payload := json.RawMessage(`{ "n": 12345678901234567890 }`)
		for _, c := range []struct {
			tool      string
			arguments map[string]any
			says      string
		}{
			{"trigger", map[string]any{"task": "mail.welcome", "payload": payload, "runId": "made"}, `"outcome":"created"`},
			{"resume", map[string]any{"run": "later"}, `"status":"queued"`},
			{"cancel", map[string]any{"run": "later", "reason": "a test"}, `"status":"cancelled"`},
			{"retry", map[string]any{"run": "failed"}, `"outcome":"created"`},
			{"rerun", map[string]any{"run": "ended"}, `"outcome":"created"`},
			{"answer", map[string]any{"token": w.token, "body": true}, `"runId":"asking"`},
		} {
			text, result := call(t, client, c.tool, c.arguments)
			if result.IsError || !strings.Contains(text, c.says) {
				t.Errorf("%s: %s", c.tool, text)
				continue
			}
			fits(t, "the result of "+c.tool, found[c.tool].OutputSchema, result.StructuredContent)
		}
		run, err := w.Runs().Get(t.Context(), "made")
		if err != nil || !strings.Contains(string(run.Payload), "12345678901234567890") {
			t.Errorf("%v: %s", err, run.Payload)
		}
	})
}

func TestResources_AreRunsAndTheirHistories(t *testing.T) {
	t.Parallel()
	each(t, nil, func(on *connected) {
		t, w, client := on.t, on.w, on.client
		w.trigger(t, welcome, "a/b c", 0)
		templates, err := client.ListResourceTemplates(t.Context(), nil)
		if err != nil || len(templates.ResourceTemplates) != 2 || templates.CacheScope != "private" {
			t.Fatalf("%v: %+v", err, templates)
		}
		read := func(uri string) (string, error) {
			got, err := client.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
			if err != nil {
				return "", err
			}
			if got.CacheScope != "private" {
				t.Errorf("%s may be kept for others: %q", uri, got.CacheScope)
			}
			return got.Contents[0].Text, nil
		}
		for uri, says := range map[string]string{
			"runlane://runs/ended":            `"kind":"run","runId":"ended"`,
			"runlane://runs/a%2Fb%20c":        `"runId":"a/b c"`,
			"runlane://runs/a%2Fb%20c/events": `"runId":"a/b c"`,
		} {
			if text, err := read(uri); err != nil || !strings.Contains(text, says) {
				t.Errorf("%s: %v %s", uri, err, text)
			}
		}
		history, err := read("runlane://runs/failed/events")
		lines := strings.Split(strings.TrimSpace(history), "\n")
		if err != nil || len(lines) != 5 || !strings.Contains(lines[4], `"type":"run.failed"`) {
			t.Errorf("%v: %s", err, history)
		}
		for _, uri := range []string{"runlane://runs/absent", "runlane://runs/absent/events", "runlane://runs/ended/payload", "runlane://runs/../v1"} {
			if text, err := read(uri); err == nil {
				t.Errorf("%s: %s", uri, text)
			}
		}
	})
}

// A caller can do through tools what its token may do at the API, under its name.
func TestAccess_ScopesOfTheTokenHold(t *testing.T) {
	t.Parallel()
	access, err := server.TokenAccess(
		server.Token{Name: "reader", Hash: server.HashToken("of the reader"), Scopes: []server.Scope{server.ScopeRead}},
		server.Token{Name: "operator", Hash: server.HashToken("of the operator"), Scopes: server.Scopes()},
	)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, &mcp.Options{Allow: mcp.Writing()}, &server.Options{Access: access, HidePayloads: true})
	if _, err := w.dial(t, ""); err == nil {
		t.Error("a caller without a token is let in")
	}
	reader, err := w.dial(t, "of the reader")
	if err != nil {
		t.Fatal(err)
	}
	if text, result := call(t, reader, "cancel", map[string]any{"run": "later"}); !result.IsError || !strings.Contains(text, `"code":"forbidden"`) {
		t.Errorf("%s", text)
	}
	if text, result := call(t, reader, "get", map[string]any{"run": "ended"}); result.IsError || strings.Contains(text, "ada") {
		t.Errorf("a hidden payload is shown: %s", text)
	}
	operator, err := w.dial(t, "of the operator")
	if err != nil {
		t.Fatal(err)
	}
	if text, result := call(t, operator, "cancel", map[string]any{"run": "later"}); result.IsError {
		t.Errorf("%s", text)
	}
	last := runlane.EventRecord{}
	for event, err := range w.Runs().Events(t.Context(), "later", nil) {
		if err != nil {
			t.Fatal(err)
		}
		last = event
	}
	if last.Actor.ID != "operator" {
		t.Errorf("the actor is %+v", last.Actor)
	}
}

func TestHandler_ForeignPages_AreKeptOut(t *testing.T) {
	t.Parallel()
	api := newWorld(t, nil, nil).api(t)
	for _, header := range [][2]string{{"Origin", "https://evil.example"}, {"Host", "evil.example"}, {"X-Forwarded-For", "192.0.2.1"}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Host, r.RemoteAddr = "localhost", "127.0.0.1:4000"
		if r.Header.Set(header[0], header[1]); header[0] == "Host" {
			r.Host = header[1]
		}
		w := &status{header: http.Header{}}
		if api.ServeHTTP(w, r); w.code != http.StatusForbidden && w.code != http.StatusMisdirectedRequest {
			t.Errorf("%v: %d", header, w.code)
		}
	}
}

// status keeps the status of an answer.
type status struct {
	header http.Header
	code   int
}

func (s *status) Header() http.Header         { return s.header }
func (s *status) Write(b []byte) (int, error) { return len(b), nil }
func (s *status) WriteHeader(code int)        { s.code = code }

func TestNew_ToolsThatCannotBeAllowed_AreNamed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"find", "delete", strings.Repeat("x", 500)} {
		_, err := mcp.New(&mcp.Options{Allow: []string{"trigger", name}})
		if runlane.CodeOf(err) != runlane.ErrConfigurationInvalid || !strings.Contains(err.Error(), name[:4]) || len(err.Error()) > 500 {
			t.Errorf("%v", err)
		}
	}
}
