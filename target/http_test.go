package target_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/runlanetest"
	"github.com/runlane/runlane-go/target"
)

// execute executes one attempt of the file's task t.
func execute(t *testing.T, task, payload string) (*runlanetest.Attempt, error) {
	t.Helper()
	return executeOf(t, task, payload, runlane.Run{})
}

func executeOf(t *testing.T, task, payload string, run runlane.Run) (*runlanetest.Attempt, error) {
	t.Helper()
	read, err := target.Read([]byte("secrets: {key: {env: KEY}, long: {env: LONG}}\ntasks:\n  t:\n"+task), found)
	if err != nil {
		t.Fatal(err)
	}
	a := runlanetest.NewAttempt(t, &runlanetest.AttemptOptions{Run: run})
	h := read.Handlers[0]
	return a, a.Execute(t.Context(), h, runlane.NewRawCall(h.Task, json.RawMessage(payload)))
}

func serving(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return s.URL
}

// Values of the payload are data wherever they stand: they change neither the path nor the JSON around them.
func TestRequest_IsFilledIn(t *testing.T) {
	t.Parallel()
	came := make(chan string, 1)
	url := serving(t, func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		came <- fmt.Sprint(r.Method, " ", r.RequestURI, " ", r.Header.Get("Authorization"), " ", r.Header.Get("X-Name"), " ",
			r.Header.Get("Content-Type"), " ", r.Header.Get("Idempotency-Key"), " ", string(body), err)
	})
	form := "    http: {private: true, url: '" + url + "%s'%s}"
	for task, want := range map[string]string{
		fmt.Sprintf(form, "/hook", ""):                              `POST /hook   application/json run_test {"name":"a/b?c\"d","n":1.50,"list":[{"x":null}]}<nil>`,
		fmt.Sprintf(form, "/${payload.name}?q=${payload.name}", ""): `POST /a%2Fb%3Fc%22d?q=a%2Fb%3Fc%22d   application/json run_test {"name":"a/b?c\"d","n":1.50,"list":[{"x":null}]}<nil>`,
		fmt.Sprintf(form, "/${run.id}/${payload.n}", ", method: GET, headers: {authorization: 'Bearer ${secret.key}', x-name: '${payload.list.0}'}"): "GET /run_test/1.50 Bearer " + secret + ` {"x":null}  run_test <nil>`,
		fmt.Sprintf(form, "/", ", body: {text: 'Hi ${payload.name}', whole: '${payload.list}', number: '${payload.n}', fixed: 2}"):                   `POST /   application/json run_test {"fixed":2,"number":1.50,"text":"Hi a/b?c\"d","whole":[{"x":null}]}<nil>`,
		fmt.Sprintf(form, "/", ", body: '${payload.list}'"):                                                               `POST /   application/json run_test [{"x":null}]<nil>`,
		fmt.Sprintf(form, "/?q=a b${payload.n}", ", body: '<a>${payload.name}</a>', headers: {content-type: text/xml}"):   `POST /?q=a%20b1.50   text/xml run_test <a>a/b?c&#34;d</a><nil>`,
		fmt.Sprintf(form, "/", ", body: 'n=${payload.name}', headers: {content-type: application/x-www-form-urlencoded}"): `POST /   application/x-www-form-urlencoded run_test n=a%2Fb%3Fc%22d<nil>`,
		fmt.Sprintf(form, "/", ", body: 'n=${payload.n}'"):                                                                "POST /   text/plain; charset=utf-8 run_test n=1.50<nil>",
	} {
		if _, err := execute(t, task, `{"name":"a/b?c\"d","n":1.50,"list":[{"x":null}]}`); err != nil {
			t.Errorf("%s: %v", task, err)
			continue
		}
		if got := <-came; got != want {
			t.Errorf("%s:\n%s\n%s", task, got, want)
		}
	}
	// An operator's retry is another run, and the same effect.
	retry := runlane.Run{ID: "second", Source: runlane.Source{OriginID: "first"}}
	if _, err := executeOf(t, fmt.Sprintf(form, "/${run.effect}", ""), "{}", retry); err != nil {
		t.Error(err)
	} else if got := <-came; got != "POST /first   application/json first {}<nil>" {
		t.Errorf("a retry sends %s", got)
	}
	for payload, says := range map[string]string{
		`{"name":".."}`: "makes no url", `{"name":"a\\..\\b"}`: "makes no url", `{"name":""}`: "is empty", `{"name":null}`: "is empty", `{}`: `has no field "name"`, `{"name":"x","n":"a\u000ab"}`: "control character", `[]`: "no field",
	} {
		_, err := execute(t, fmt.Sprintf(form, "/${payload.name}", ", headers: {x-n: '${payload.n}'}"), payload)
		if _, permanent := errors.AsType[*runlane.PermanentError](err); !permanent || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", payload, err)
		}
	}
	if len(came) > 0 {
		t.Error("a request was made of a payload that makes none")
	}
}

func TestRequest_StatusesDecide(t *testing.T) {
	t.Parallel()
	elsewhere := serving(t, func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") })
	url := serving(t, func(w http.ResponseWriter, r *http.Request) {
		var status int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &status)
		w.Header().Set("Retry-After", "7")
		w.Header().Set("Location", map[bool]string{true: "http://%zz", false: elsewhere}[status == http.StatusSeeOther])
		w.Header().Set("X-Request-Id", "r-"+secret)
		w.Header().Set("Set-Cookie", "hidden")
		w.WriteHeader(status)
		_, _ = w.Write([]byte("it is " + secret + "-long" + strings.Repeat(".", 100_000)))
	})
	for path, want := range map[string]string{
		"200": "", "204": "", "302": "permanent", "303": "permanent", "404": "permanent", "401": "permanent", "408": "after 7s", "425": "after 7s",
		"429": "after 7s", "500": "after 7s", "501": "permanent", "503": "after 7s",
	} {
		a, err := execute(t, "    http: {private: true, url: '"+url+"/"+path+"'}\n    receipt: {body: true}", "{}")
		got := ""
		if after, asked := errors.AsType[*runlane.RetryAfterError](err); asked {
			got = "after " + after.Delay.String()
		} else if _, permanent := errors.AsType[*runlane.PermanentError](err); permanent {
			got = "permanent"
		}
		r := a.Receipt()
		if got != want || err != nil && runlane.CodeOf(err) != target.ErrFailed || fmt.Sprint(r.Status) != path || r.Request != "POST "+url {
			t.Errorf("%s: %v with the receipt %+v", path, err, r)
		}
		if r.Headers["X-Request-Id"] != "r-***" || len(r.Headers) < 2 || r.Headers["Set-Cookie"] != "" ||
			path != "204" && (!strings.HasPrefix(r.Body, "it is ***...") || r.BodyBytes != 64<<10 || !r.Cut) {
			t.Errorf("%s: the receipt is %.200q", path, fmt.Sprint(r))
		}
	}
	a, err := execute(t, "    http: {private: true, url: '"+url+"/404', succeed: [404], permanent: []}", "{}")
	if r := a.Receipt(); err != nil || r.Body != "" || r.Status != 404 {
		t.Errorf("a status that succeeds by the file: %v, %+v", err, r)
	}
}

// A server that repeats a secret may write it in its own way, and its answer may end within one.
func TestReceipt_NoFormOfASecret(t *testing.T) {
	t.Parallel()
	const key = "a/b <c>\"d\"&e"
	forms := []string{key, `a/b <c>\"d\"&e`, `a\/b <c>"d"&e`, `a/b \u003cc\u003e\"d\"\u0026e`, "a%2Fb+%3Cc%3E%22d%22%26e", "a%2Fb%20%3Cc%3E%22d%22&e", "a/b%20%3Cc%3E%22d%22&e"}
	for i, form := range append(forms, key[:9]) {
		url := serving(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(3+len(form)+i/len(forms))) // the last is cut
			_, _ = w.Write([]byte("it " + form))
		})
		read, err := target.Read([]byte("secrets: {key: {env: KEY}}\ntasks: {t: {http: {private: true, url: '"+url+"'}, receipt: {body: true}}}"),
			&target.Options{Getenv: func(string) string { return key + "\n" }})
		if err != nil {
			t.Fatal(err)
		}
		a := runlanetest.NewAttempt(t, nil)
		_ = a.Execute(t.Context(), read.Handlers[0], runlane.NewRawCall(read.Handlers[0].Task, json.RawMessage("{}")))
		if r := a.Receipt(); r.Body != "it ***" {
			t.Errorf("%s: the receipt has %s", form, r.Body)
		}
	}
}

// The address that the url leads to decides; it is asked for when the connection is made.
func TestRequest_WithoutAnAnswer(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	url := serving(t, func(http.ResponseWriter, *http.Request) { <-over })
	defer close(over)
	for task, says := range map[string]string{
		"    http: {url: 'https" + strings.TrimPrefix(url, "http") + "/" + secret + "'}": "an address that is refused",
		"    http: {private: true, url: '" + url + "'}\n    timeout: 20ms":               "was not answered",
		"    http: {private: true, url: 'http://1.1.1.1/'}":                              "an address that is refused",
	} {
		a, err := execute(t, task, "{}")
		failure, ok := errors.AsType[*runlane.Error](err)
		if !ok || failure.Code != target.ErrFailed || !failure.Retryable || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", task, err)
		}
		if r := a.Receipt(); r == nil || r.Status != 0 || r.EndedAt.IsZero() || r.StartedAt.After(time.Now()) {
			t.Errorf("%s: the receipt is %+v", task, r)
		}
	}
}

// Whatever stands in a payload, it changes neither host nor number of path segments, and a body stays JSON.
func FuzzTemplate(f *testing.F) {
	f.Add(`{"a":"x/../y?#","n":1e400}`)
	f.Add(`{"a":".","n":[{}]}`)
	f.Fuzz(func(t *testing.T, payload string) {
		r, err := target.MadeRequest(`{url: "https://example.com/a/${payload.a}/b?q=${payload.n}", body: {x: "${payload.n}", y: "-${payload.a}"}}`, payload)
		if err != nil {
			return
		}
		body, err := io.ReadAll(r.Body)
		segments := strings.Split(r.URL.EscapedPath(), "/")
		if err != nil || !json.Valid(body) || r.URL.Host != "example.com" || len(segments) != 4 || segments[3] != "b" || r.URL.Fragment != "" {
			t.Errorf("%s makes %s and %s", payload, r.URL, body)
		}
	})
}
