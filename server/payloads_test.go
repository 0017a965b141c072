package server_test

import (
	"strings"
	"testing"

	"github.com/runlane/runlane-go/server"
)

func TestHidePayloads_LeavesThemOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &server.Options{HidePayloads: true})
	w.trigger(t, welcome, "one", true)
	for _, path := range []string{"/v1/runs/one", "/v1/runs/one/events", "/events?run=one", "/v1/runs", "/v1/runs/one/receipts"} {
		got := w.ask(t, "GET", path, "")
		got.want(t, 200)
		if strings.Contains(got.text, "12345678901234567890") {
			t.Errorf("%s shows a payload", path)
		}
	}
	w.ask(t, "GET", "/v1/runs/one/payload", "").want(t, 403)
	w.ask(t, "GET", "/v1/runs/one/output", "").want(t, 403)
	w.trigger(t, asking, "order", true)
	steps := w.ask(t, "GET", "/v1/runs/order/steps", "")
	steps.want(t, 200, `"name":"looked up"`)
	if strings.Contains(steps.text, `"result"`) {
		t.Errorf("a result is shown: %s", steps.text)
	}
}

// Without the scope of payloads nothing of what runs work on is in any answer, whatever else the caller may do.
func TestPayloads_NeedTheirScope(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &server.Options{Access: byScope})
	w.trigger(t, welcome, "one", true)
	w.trigger(t, asking, "order", true)
	blind := without(server.Scopes(), server.ScopePayloads)
	const written = "12345678901234567890"
	for _, path := range []string{"/v1/runs/one", "/v1/runs/one/events", "/v1/runs", "/v1/runs/one?wait=1s", "/v1/runs/one/tree", "/v1/runs/one/receipts"} {
		got := w.ask(t, "GET", path, "", blind...)
		got.want(t, 200)
		if strings.Contains(got.text, written) {
			t.Errorf("%s shows a payload: %s", path, got.text)
		}
	}
	for _, what := range []string{"payload", "output"} {
		w.ask(t, "GET", "/v1/runs/one/"+what, "", blind...).want(t, 403, "no scope payloads")
	}
	w.ask(t, "GET", "/v1/runs/one", "").want(t, 200, written)
	w.ask(t, "GET", "/v1/runs/one/payload", "", "Scopes: read", "Scopes: payloads").want(t, 200, written)
	w.ask(t, "GET", "/v1/runs/one/payload", "", "Scopes: payloads").want(t, 403, "no scope read")
	steps := w.ask(t, "GET", "/v1/runs/order/steps", "", blind...)
	steps.want(t, 200, `"name":"looked up"`)
	if strings.Contains(steps.text, `"result"`) {
		t.Errorf("a result is shown: %s", steps.text)
	}
	w.ask(t, "GET", "/v1/runs/order/steps", "").want(t, 200, `"result"`)
	logs := w.ask(t, "GET", "/v1/runs/order/logs", "", blind...)
	logs.want(t, 200, `"kind":"log"`)
	if strings.Contains(logs.text, `"line"`) {
		t.Errorf("a line is shown: %s", logs.text)
	}
	w.ask(t, "GET", "/v1/runs/order/logs", "").want(t, 200, `"looks up"`)
	w.ask(t, "GET", "/v1/runs/one/receipts", "").want(t, 200, `"body"`)
}

// Nothing tells a caller who may not see payloads whether a guess of one is right: not the answer under the same key,
// id of a run, of a signal or of a flow, and no size of an output.
func TestPayloads_CannotBeGuessed(t *testing.T) {
	t.Parallel()
	const (
		right = `{ "to":  "ada", "n": 12345678901234567890 }`
		wrong = `{"to":"bob"}`
	)
	for name, options := range map[string]*server.Options{
		"without the scope": {Access: byScope},
		"hidden by server":  {Access: byScope, HidePayloads: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options)
			scopes := without(server.Scopes(), server.ScopePayloads)
			if options.HidePayloads {
				scopes = nil
			}
			run := func(way, payload string) string {
				return `{"task":"mail.welcome",` + way + `,"payload":` + payload + `}`
			}
			flow := func(payload string) string {
				return `{"flowId":"release","nodes":[{"name":"one","task":"mail.welcome","payload":` + payload + `}]}`
			}
			signal := func(body string) string { return `{"name":"approved","id":"s","body":` + body + `}` }
			w.trigger(t, welcome, "one", true)
			w.trigger(t, asking, "order", true)
			for _, made := range []one{
				{"/v1/runs", run(`"idempotencyKey":"k"`, right), 201, nil},
				{"/v1/runs/order/signals", signal(right), 200, nil},
				{"/v1/answers", `{"token":"` + w.token + `","body":` + right + `}`, 200, nil},
				{"/v1/flows", flow(right), 200, nil},
			} {
				w.ask(t, "POST", made.path, made.body).want(t, made.status)
			}
			for _, c := range []struct {
				path string
				body func(payload string) string
			}{
				{"/v1/runs", func(p string) string { return run(`"idempotencyKey":"k"`, p) }},
				{"/v1/runs", func(p string) string { return run(`"runId":"one"`, p) }},
				{"/v1/batch", func(p string) string {
					return `{"runs":[` + run(`"idempotencyKey":"k"`, p) + `,` + run(`"runId":"one"`, p) + `]}`
				}},
				{"/v1/runs/order/signals", signal},
				{"/v1/answers", func(p string) string { return `{"token":"` + w.token + `","body":` + p + `}` }},
				{"/v1/flows", flow},
			} {
				first := w.ask(t, "POST", c.path, c.body(right), scopes...)
				first.want(t, 200)
				if got := w.ask(t, "POST", c.path, c.body(wrong), scopes...); got.text != first.text {
					t.Errorf("%s tells\n%s\n%s", c.path, first.text, got.text)
				}
			}
			strict := run(`"strictPayload":true,"idempotencyKey":"k"`, right)
			w.ask(t, "POST", "/v1/runs", strict, scopes...).want(t, 403, "scope payloads")
			w.ask(t, "POST", "/v1/batch", `{"runs":[`+strict+`,`+run(`"runId":"two"`, right)+`]}`, scopes...).
				want(t, 200, `"created":1`, `"failed":1`, `"status":403`, "scope payloads")
			w.executeAll(t)
			got := w.ask(t, "GET", "/v1/flows/release?sizes=true", "", scopes...)
			got.want(t, 200)
			if strings.Contains(got.text, "outputBytes") {
				t.Errorf("a size is shown: %s", got.text)
			}
		})
	}
}

// Who may see payloads is told of another one.
func TestPayloads_WhoSeesThem_IsToldOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.trigger(t, welcome, "one", true)
	for _, c := range []one{
		{"/v1/runs", `{"task":"mail.welcome","idempotencyKey":"k","payload":1}`, 201, nil},
		{"/v1/runs", `{"task":"mail.welcome","idempotencyKey":"k","payload":2}`, 200, []string{`"payloadDiffers":true`}},
		{"/v1/runs", `{"task":"mail.welcome","idempotencyKey":"k","payload":2,"strictPayload":true}`, 400, nil},
		{"/v1/runs", `{"task":"mail.welcome","runId":"one","payload":2}`, 400, []string{"another task or payload"}},
		{"/v1/flows", `{"flowId":"f","nodes":[{"name":"one","task":"mail.welcome","payload":1}]}`, 200, nil},
		{"/v1/flows", `{"flowId":"f","nodes":[{"name":"one","task":"mail.welcome","payload":2}]}`, 400, []string{"or payloads"}},
	} {
		w.ask(t, "POST", c.path, c.body).want(t, c.status, c.says...)
	}
	w.executeAll(t)
	w.ask(t, "GET", "/v1/flows/f?sizes=true", "").want(t, 200, `"outputBytes":1`)
}

func (w *world) executeAll(t *testing.T) {
	t.Helper()
	for {
		done, err := w.ExecuteNext(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if done.Run == nil {
			return
		}
	}
}
