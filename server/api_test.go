package server_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/server"
)

var update = flag.Bool("update", false, "write docs/openapi.json")

// docs/openapi.json is what the server serves. "go test ./server -update" writes it.
func TestOpenAPI_IsTheCheckedInFile(t *testing.T) {
	t.Parallel()
	got := newWorld(t, nil).ask(t, "GET", "/openapi.json", "")
	got.want(t, 200)
	file := filepath.Join("..", "docs", "openapi.json")
	if *update {
		if err := os.WriteFile(file, []byte(got.text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got.text {
		t.Errorf("docs/openapi.json is not what the server serves (%v): go test ./server -update", err)
	}
	if strings.Contains(got.text, `"unknown `) {
		t.Error("a type has no schema")
	}
}

// resolve follows references within a document.
func resolve(document, s map[string]any) map[string]any {
	if ref, ok := s["$ref"].(string); ok {
		components, _ := document["components"].(map[string]any)
		all, _ := components["schemas"].(map[string]any)
		found, _ := all[ref[strings.LastIndex(ref, "/")+1:]].(map[string]any)
		return found
	}
	return s
}

// conforms judges a value by a schema of the document: types, required and constant fields, and no field that is not
// described.
func conforms(document, s map[string]any, at string, value any) []string {
	s = resolve(document, s)
	var faults []string
	if constant, ok := s["const"]; ok && constant != value {
		faults = append(faults, fmt.Sprintf("%s is %v, not %v", at, value, constant))
	}
	kind := map[string]bool{}
	switch v := value.(type) {
	case string:
		kind["string"] = true
	case bool:
		kind["boolean"] = true
	case float64:
		kind["integer"], kind["number"] = v == float64(int64(v)), true
	case []any:
		kind["array"] = true
		items, _ := s["items"].(map[string]any)
		for i, item := range v {
			faults = append(faults, conforms(document, items, fmt.Sprintf("%s[%d]", at, i), item)...)
		}
	case map[string]any:
		kind["object"] = true
		properties, described := s["properties"].(map[string]any)
		for name, field := range v {
			if property, ok := properties[name].(map[string]any); ok {
				faults = append(faults, conforms(document, property, at+"."+name, field)...)
			} else if described {
				faults = append(faults, at+"."+name+" is not described")
			}
		}
		required, _ := s["required"].([]any)
		for _, name := range required {
			if _, ok := v[fmt.Sprint(name)]; !ok {
				faults = append(faults, fmt.Sprintf("%s.%v is missing", at, name))
			}
		}
	}
	if want, ok := s["type"].(string); ok && !kind[want] {
		faults = append(faults, fmt.Sprintf("%s is no %s: %v", at, want, value))
	}
	return faults
}

// What the server answers is what openapi.json says, in status, type and every field.
func TestOpenAPI_EveryAnswerConforms(t *testing.T) {
	t.Parallel()
	var document map[string]any
	if err := json.Unmarshal([]byte(newWorld(t, nil).ask(t, "GET", "/openapi.json", "").text), &document); err != nil {
		t.Fatal(err)
	}
	paths, _ := document["paths"].(map[string]any)
	for _, line := range server.Lines() {
		t.Run(line.Name, func(t *testing.T) {
			t.Parallel()
			methods, _ := paths[line.Path].(map[string]any)
			operation, _ := methods[strings.ToLower(line.Method)].(map[string]any)
			responses, _ := operation["responses"].(map[string]any)
			w, c := furnished(t), cases[line.Name]
			for _, asked := range []one{c.wrong, c.missing, w.sound(t, line)} {
				if asked.path == "" {
					continue
				}
				got := w.ask(t, line.Method, asked.path, asked.body)
				name := "default"
				if got.status < 400 {
					name = fmt.Sprint(got.status)
				}
				response, _ := responses[name].(map[string]any)
				content, _ := response["content"].(map[string]any)
				kind, _, _ := strings.Cut(got.header.Get("Content-Type"), ";")
				media, ok := content[kind].(map[string]any)
				if !ok {
					t.Errorf("%d %s is not described", got.status, kind)
					continue
				}
				schema, _ := media["schema"].(map[string]any)
				if len(schema) == 0 {
					continue // bytes as they are
				}
				var value any
				if err := json.Unmarshal([]byte(got.text), &value); err != nil {
					t.Fatal(err)
				}
				for _, fault := range conforms(document, schema, "answer", value) {
					t.Error(fault)
				}
			}
		})
	}
}

func TestPage_LoadsNothing(t *testing.T) {
	t.Parallel()
	got := newWorld(t, nil).ask(t, "GET", "/docs", "")
	got.want(t, 200, "POST /v1/runs", "run.summary")
	for _, part := range []string{"http://", "https://", "<script", "<link", "<img", "@import", "url("} {
		if strings.Contains(got.text, part) {
			t.Errorf("the page has %s", part)
		}
	}
	if policy := got.header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'; style-src 'sha256-") {
		t.Errorf("its policy is %q", policy)
	}
}

// A run continues the trace of its request, unless the body names one; headers of proxies never refuse a trigger.
func TestTrigger_TakesTheTraceOfTheRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	const parent, state = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "vendor=1"
	const xray = "Root=1-4bf92f35-77b34da6a3ce929d0e0e4736;Parent=00f067aa0ba902b7;Sampled="
	headers := []string{"Traceparent: " + parent, "Tracestate: " + state, "X-Amzn-Trace-Id: " + xray + "1"}
	full := `{"task":"mail.welcome","meta":{"m":"` + strings.Repeat("x", runlane.MaxMetaBytes-1) + `"}}`
	own := `{"task":"mail.welcome","traceCarrier":{"own":"1"}}`
	for _, c := range []struct {
		body    string
		headers []string
		want    map[string]string
	}{
		{`{"task":"mail.welcome"}`, headers, map[string]string{"traceparent": parent, "tracestate": state, "X-Amzn-Trace-Id": xray + "1"}},
		{`{"task":"mail.welcome"}`, []string{"X-Amzn-Trace-Id: " + xray + "0", "Tracestate: " + state}, nil},
		{`{"task":"mail.welcome"}`, []string{"Traceparent: " + strings.Repeat("0", 600)}, nil},
		{full, headers, nil},
		{own, headers, map[string]string{"own": "1"}},
	} {
		made := w.ask(t, "POST", "/v1/runs", c.body, c.headers...)
		made.want(t, 201)
		run, err := w.Runs().Get(t.Context(), runlane.RunID(fmt.Sprint(made.field(t, "runId"))))
		if err != nil || !maps.Equal(run.TraceCarrier, c.want) {
			t.Errorf("%q: carrier %v, %v", c.headers, run.TraceCarrier, err)
		}
	}
}

func TestTrigger_KeysMakeOneRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	body := `{"task":"mail.welcome","payload":{ "n": 12345678901234567890, "t": "<b>" }}`
	first := w.ask(t, "POST", "/v1/runs", body, "Idempotency-Key: order:1")
	first.want(t, 201)
	id := fmt.Sprint(first.field(t, "runId"))
	if place := first.header.Get("Location"); place != "/v1/runs/"+id {
		t.Errorf("Location is %q", place)
	}
	again := w.ask(t, "POST", "/v1/runs", body, `Idempotency-Key: "order:1"`) // as a structured field
	again.want(t, 200, id, `"outcome":"returned_existing"`)
	w.ask(t, "POST", "/v1/runs", `{"task":"mail.welcome","payload":2,"idempotencyKey":"order:1"}`).want(t, 200, id, `"payloadDiffers":true`)
	w.ask(t, "POST", "/v1/runs", `{"task":"mail.welcome","payload":2,"idempotencyKey":"order:1","strictPayload":true}`).want(t, 400)
	w.ask(t, "POST", "/v1/runs", `{"task":"mail.welcome","idempotencyKey":"a"}`, "Idempotency-Key: b").want(t, 400, "several idempotency keys")
	w.ask(t, "POST", "/v1/runs", body, "Idempotency-Key: a", "Idempotency-Key: a").want(t, 400)
	w.ask(t, "POST", "/v1/runs/"+id+"/cancel", "", "Idempotency-Key: a").want(t, 400, "Idempotency-Key is not judged here")
	// The bytes are the user's.
	if got := w.ask(t, "GET", "/v1/runs/"+id+"/payload", ""); got.text != `{ "n": 12345678901234567890, "t": "<b>" }` {
		t.Errorf("the payload is %s", got.text)
	}
	w.ask(t, "GET", "/v1/runs/"+id, "").want(t, 200, `12345678901234567890`, `"<b>"`, `"idempotencyKey":"order:1"`)
	// A key that a task computes, and one that another run holds.
	w.ask(t, "POST", "/v1/runs", `{"task":"mail.alone","payload":{"to":"ada"},"delay":"1h","runId":"holder"}`).want(t, 201)
	w.ask(t, "POST", "/v1/runs", `{"task":"mail.alone","payload":{"to":"ada"}}`).want(t, 409, `"conflict":"singleton_key"`, `"runId":"holder"`)
	w.ask(t, "POST", "/v1/runs", `{"task":"mail.alone","payload":{"to":"ada"},"returnActive":true}`).want(t, 200, `"holder"`)
	w.ask(t, "POST", "/v1/runs", `{"task":"not.here","foreign":true,"runId":"foreign","priority":-2}`).want(t, 201)
	w.ask(t, "GET", "/v1/runs/foreign", "").want(t, 200, `"priority":-2`)
	w.ask(t, "POST", "/v1/runs", `{"task":"mail.welcome","priority":9}`).want(t, 400, "use -8 to 8")
	w.ask(t, "POST", "/v1/runs", `{"task":"mail.welcome","idempotencyKey":"k","idempotencyTtl":"while-active","runAt":"2031-01-01T00:00:00Z","meta":{"a":"b"}}`).want(t, 201)
	w.ask(t, "POST", "/v1/runs", `{"task":"mail.welcome","delay":"soon"}`).want(t, 400, "write it like 90s or 2d")
	w.ask(t, "POST", "/v1/runs", `{"task":"mail.welcome","delay":"1s","runAt":"2031-01-01T00:00:00Z"}`).want(t, 400)
}

func TestBodies_AreBoundedAndDeclared(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for kind, status := range map[string]int{"application/json; charset=utf-8": 201, "text/plain": 415, "multipart/form-data": 415, "": 415} {
		w.ask(t, "POST", "/v1/runs", `{"task":"mail.welcome"}`, "Type: "+kind).want(t, status)
	}
	w.ask(t, "POST", "/v1/runs", `{"task":"mail.welcome"}`, "Content-Encoding: gzip").want(t, 415, "the body is compressed")
	w.ask(t, "POST", "/v1/bulk/cancel", `{"reason":"`+strings.Repeat("x", server.MaxBody)+`"}`).want(t, 413, `"code":"too_large"`)
	w.ask(t, "POST", "/v1/runs", `{"task":"mail.welcome","payload":"`+strings.Repeat("x", server.MaxTriggerBody)+`"}`).want(t, 413)
	w.ask(t, "POST", "/v1/runs", `{"task":"mail.welcome","payload":"`+strings.Repeat("x", runlane.MaxPayloadBytes)+`"}`).want(t, 400)
	w.ask(t, "POST", "/v1/runs", `{"task":"mail.welcome"}{}`).want(t, 400, "more than one value")
}

func TestRun_ETagAndWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.trigger(t, welcome, "one", false)
	got := w.ask(t, "GET", "/v1/runs/one", "")
	tag := got.header.Get("ETag")
	if sequence := got.field(t, "eventSequence"); tag != fmt.Sprintf(`W/"%v"`, sequence) {
		t.Errorf("the ETag of event %v is %s", sequence, tag)
	}
	for given, status := range map[string]int{tag: 304, "*": 304, `"a", ` + tag: 304, `W/"99"`: 200, "": 200} {
		if got := w.ask(t, "GET", "/v1/runs/one", "", "If-None-Match: "+given); got.status != status || status == 304 && got.text != "" {
			t.Errorf("If-None-Match %s: %d %s", given, got.status, got.text)
		}
	}
	w.ask(t, "POST", "/v1/runs/one/cancel", "", "If-Match: "+tag).want(t, 400, "If-Match is not judged here")
	w.ask(t, "GET", "/v1/runs/one?wait=10ms", "").want(t, 200, `"status":"scheduled"`)
	w.ask(t, "POST", "/v1/runs/one/cancel", "").want(t, 200)
	w.ask(t, "GET", "/v1/runs/one?wait=20s", "").want(t, 200, `"status":"cancelled"`)
	w.ask(t, "GET", "/v1/runs/one", "", "Request-Timeout: 1ns").want(t, 504, `"code":"deadline"`)
	w.ask(t, "GET", "/v1/runs/one", "", "Request-Timeout: soon").want(t, 400)
	w.ask(t, "GET", "/v1/runs/one", "", "Request-Timeout: 1d").want(t, 200)
}

func TestLists_PagesMeetEachRunOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	var runs []string
	for i := range 25 {
		runs = append(runs, fmt.Sprintf(`{"task":"mail.welcome","runId":"r%02d","delay":"1h"}`, i))
	}
	w.ask(t, "POST", "/v1/batch", `{"runs":[`+strings.Join(runs, ",")+`]}`).want(t, 200, `"created":25`)
	w.ask(t, "POST", "/v1/batch", `{"runs":[`+strings.Join(runs, ",")+`]}`).want(t, 200, `"existing":25`)
	seen, path := map[string]int{}, "/v1/runs?limit=10&task=mail.welcome"
	for next := ""; ; {
		got := w.ask(t, "GET", path+next, "")
		got.want(t, 200)
		items, _ := got.field(t, "items").([]any)
		for _, item := range items {
			object, _ := item.(map[string]any)
			seen[fmt.Sprint(object["runId"])]++
		}
		cursor, more := got.field(t, "next").(string)
		if !more {
			break
		}
		next = "&after=" + cursor
		w.ask(t, "GET", "/v1/runs?limit=10"+next, "").want(t, 400) // a cursor belongs to its filter
	}
	if len(seen) != 25 {
		t.Errorf("%d runs are seen", len(seen))
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s is seen %d times", id, n)
		}
	}
}

func TestAnswers_AreCompressedWhereThatIsWorthIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	plain := w.ask(t, "GET", "/openapi.json", "").text
	for encoding, read := range map[string]func(io.Reader) (io.Reader, error){
		"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		"zstd": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r, zstd.WithDecoderConcurrency(1)) },
	} {
		got := w.ask(t, "GET", "/openapi.json", "", "Accept-Encoding: br, "+encoding)
		if got.header.Get("Content-Encoding") != encoding || len(got.text) > len(plain)/2 {
			t.Errorf("%s: %q, %d bytes", encoding, got.header.Get("Content-Encoding"), len(got.text))
		}
		reader, err := read(strings.NewReader(got.text))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(reader); err != nil || !bytes.Equal(text, []byte(plain)) {
			t.Errorf("%s: %v, %d bytes", encoding, err, len(text))
		}
	}
	if got := w.ask(t, "GET", "/v1/runs", "", "Accept-Encoding: gzip"); got.header.Get("Content-Encoding") != "" {
		t.Error("a small answer is compressed")
	}
	for header, want := range map[string]string{
		"": "", "gzip": "gzip", "gzip, zstd": "zstd", "zstd;q=0, gzip;q=0.5": "gzip", "gzip; q=0.0": "", "identity": "", "GZIP": "gzip",
	} {
		if got := server.Accepted(header); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
}

// Triggers and changes from many callers at once make each run once.
func TestServer_ManyCallersAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	var wg sync.WaitGroup
	for caller := range 8 {
		wg.Go(func() {
			for i := range 20 {
				body := fmt.Sprintf(`{"task":"mail.welcome","runId":"r%d","delay":"1h"}`, i)
				if got := w.ask(t, "POST", "/v1/runs", body); got.status != 200 && got.status != 201 {
					t.Errorf("%d %s", got.status, got.text)
				}
				path := []string{"/v1/runs", "/v1/tasks", "/v1/queues/default", "/v1/schedules", "/v1/runs/r0/events", "/readyz"}[(caller+i)%6]
				if got := w.ask(t, "GET", path, "", "Accept-Encoding: zstd"); got.status != 200 {
					t.Errorf("%s: %d %s", path, got.status, got.text)
				}
				if got := w.ask(t, "POST", fmt.Sprintf("/v1/runs/r%d/cancel", i), ""); got.status != 200 && got.status != 409 {
					t.Errorf("%d %s", got.status, got.text)
				}
			}
		})
	}
	wg.Wait()
	w.ask(t, "GET", "/v1/runs?status=cancelled&limit=500", "").want(t, 200)
}

// A runtime that was closed makes the server not ready, and its answers problems.
func TestServer_AfterTheRuntime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.ask(t, "GET", "/readyz", "").want(t, 503)
	w.ask(t, "GET", "/healthz", "").want(t, 200)
	w.ask(t, "GET", "/v1/runs", "").want(t, 422, `"code":"configuration_invalid"`)
}

// FuzzQuery gives anything as the query of lists: it is read, or refused as the caller's fault.
func FuzzQuery(f *testing.F) {
	for _, query := range []string{"status=active&limit=3", "after=%00", "wait=1s", "limit=-1&limit=2", "%zz", "task=a%3Ab", "status=,,"} {
		f.Add(query)
	}
	w := newWorld(f, nil)
	f.Fuzz(func(t *testing.T, query string) {
		for _, path := range []string{"/v1/runs?", "/v1/runs/r/events?", "/v1/schedules/nightly/next?", "/events?run=r&"} {
			if strings.ContainsAny(query, " #\x7f") || strings.IndexFunc(query, func(r rune) bool { return r < ' ' }) >= 0 {
				return // net/http refuses such a line before the handler
			}
			if got := w.ask(t, "GET", path+query, "", "Request-Timeout: 50ms"); got.status >= 500 && got.status != 504 {
				t.Fatalf("%s%s: %d %s", path, query, got.status, got.text)
			}
		}
	})
}

// FuzzBody gives anything as the body of a trigger.
func FuzzBody(f *testing.F) {
	for _, text := range []string{
		`{"task":"t","payload":{"a":1e999},"delay":"1d","runAt":"2026-03-01T00:00:00Z","meta":{"a":"b"}}`, `{"TASK":"t","task":"u"}`, `{"meta":{"a":1}}`,
		`{"idempotencyKey":null,"idempotencyTtl":"while-active"}`, `{"task":"\ud800"}`, "[]", "{", "\x00", `{"a":1}{}`, `{"task":"t"}}`, `{"delay":{"x":[]}}`,
	} {
		f.Add([]byte(text))
	}
	w := newWorld(f, nil)
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := server.ParseBody(text); err == nil && !json.Valid(bytes.TrimSpace(text)) {
			t.Fatalf("%q is read", text)
		}
		for _, path := range []string{"/v1/runs", "/v1/batch", "/v1/bulk/cancel", "/v1/bulk/prune", "/v1/keys/find"} {
			if got := w.ask(t, "POST", path, string(text)); got.status >= 500 {
				t.Fatalf("%s %q: %d %s", path, text, got.status, got.text)
			}
		}
	})
}

// FuzzHeaders gives anything as the headers that guard.go judges.
func FuzzHeaders(f *testing.F) {
	f.Add("localhost", "http://localhost", "127.0.0.1:1", "Bearer x", "1", "5s")
	f.Add("[::1", "null", "@", "", "-1", "1")
	f.Add("\x00", "http://%zz", "[::1%eth0]:1", "Bearer", "18446744073709551616", "-5s")
	access, err := server.TokenAccess(server.Token{Name: "ci", Hash: server.HashToken("right"), Scopes: server.Scopes()})
	if err != nil {
		f.Fatal(err)
	}
	worlds := []*world{newWorld(f, nil), newWorld(f, &server.Options{Access: access})}
	f.Fuzz(func(t *testing.T, host, origin, peer, login, last, limit string) {
		for _, w := range worlds {
			got := w.ask(t, "GET", "/events?run=none", "", "Host: "+host, "Origin: "+origin, "Peer: "+peer, "Authorization: "+login,
				"Last-Event-ID: "+last, "Request-Timeout: "+limit)
			if got.status < 400 || got.status >= 500 {
				t.Fatalf("%d %s", got.status, got.text)
			}
		}
	})
}

// A name that is given and empty, as an unset variable is, never means everything.
func TestFilters_EmptyNames_AreRefused(t *testing.T) {
	t.Parallel()
	w := furnished(t)
	for _, name := range []string{"task", "queue", "schedule", "source", "waiting", "failureCode", "since", "until"} {
		w.ask(t, "GET", "/v1/runs?status=active&"+name+"=", "").want(t, 400, "the parameter "+name+" is empty")
		for _, value := range []string{`""`, "null", "1", "[]"} {
			w.ask(t, "POST", "/v1/bulk/cancel", `{"status":["active"],"`+name+`":`+value+`}`).want(t, 400)
		}
	}
	w.ask(t, "GET", "/v1/runs?status=", "").want(t, 400)
	for _, value := range []string{`""`, "null", "[]", "[1]"} {
		w.ask(t, "POST", "/v1/bulk/cancel", `{"task":"mail.welcome","status":`+value+`}`).want(t, 400)
	}
	w.ask(t, "POST", "/v1/runs", `{"task":"mail.welcome","runId":""}`).want(t, 400)
	w.ask(t, "POST", "/v1/runs", `{"task":"mail.welcome","queue":null}`).want(t, 400)
	w.ask(t, "POST", "/v1/bulk/cancel", `{"task":"mail.welcome","dryRun":null}`).want(t, 400, `the field \"dryRun\" is null`)
	w.ask(t, "POST", "/v1/runs/waits/cancel", "null").want(t, 400, "the body is null")
	w.ask(t, "GET", "/v1/runs/waits", "").want(t, 200, `"status":"scheduled"`)
}

// Whatever core selects runs by, requests can.
func TestFilters_HaveEveryFieldOfCores(t *testing.T) {
	t.Parallel()
	names := map[string]string{"Queue": "queue", "ScheduleID": "schedule", "SourceRunID": "source", "Statuses": "status", "TaskID": "task", "Waiting": "waiting",
		"FailureCode": "failureCode", "Since": "since", "Until": "until"}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[core.RunFilter]()) {
		for _, filter := range server.Filters() {
			if !slices.ContainsFunc(reflect.VisibleFields(filter), func(own reflect.StructField) bool {
				json, _, _ := strings.Cut(own.Tag.Get("json"), ",")
				return names[f.Name] != "" && (json == names[f.Name] || own.Tag.Get("query") == names[f.Name])
			}) {
				t.Errorf("%s has no field for %s", filter, f.Name)
			}
		}
	}
}
