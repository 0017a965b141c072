package server_test

import (
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/server"
)

// A run is signaled by HTTP and goes on; a request whose answer was lost is sent again; another body is refused.
func TestSignal_ByHTTP_CountsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.trigger(t, asking, "order", true)
	const first = `{"name":"approved","id":"mail-7","body":{"by":"ada"}}`
	w.ask(t, "POST", "/v1/runs/order/signals", first).want(t, 200, `"status":"queued"`)
	w.ask(t, "POST", "/v1/runs/order/signals", first).want(t, 200)
	other := w.ask(t, "POST", "/v1/runs/order/signals", `{"name":"approved","id":"mail-7","body":{"by":"bob"}}`)
	other.want(t, 409, `"conflict":"signal"`, "the first one counts", `"retryable":false`)
	done, err := w.ExecuteNext(t.Context(), nil)
	if err != nil || done.Run.Status != runlane.StatusSucceeded {
		t.Fatalf("%+v, %v", done.Run, err)
	}
	w.ask(t, "GET", "/v1/runs/order/steps", "").want(t, 200,
		`"stepKind":"wait"`, `"id":"mail-7","body":{"by":"ada"}`)
	late := w.ask(t, "POST", "/v1/runs/order/signals", `{"name":"approved","id":"mail-8"}`)
	late.want(t, 409, `"code":"run_ended"`)
}

// The token of a link answers once; a server whose runtime has no keys says so.
func TestAnswer_ByHTTP_CountsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.trigger(t, asking, "order", true)
	answer := `{"token":"` + w.token + `","body":{"by":"ada"}}`
	w.ask(t, "POST", "/v1/answers", answer).want(t, 200, `"runId":"order"`, `"status":"queued"`)
	w.ask(t, "POST", "/v1/answers", answer).want(t, 200)
	w.ask(t, "POST", "/v1/answers", `{"token":"`+w.token+`","body":1}`).want(t, 409, `"conflict":"signal"`)
	w.ask(t, "POST", "/v1/answers", `{"token":"`+w.token+`x"}`).want(t, 403, `"code":"token_invalid"`)
	w.ask(t, "POST", "/v1/answers", `{}`).want(t, 400)
	keyless := metricsWorld(t, &server.Metrics{})
	keyless.ask(t, "POST", "/v1/answers", answer).want(t, 501, `"code":"capability_unsupported"`)
}

// A client gives its wait a schema; what does not fit it is refused where it is sent, and the client gets what fits.
func TestSignal_ByHTTP_FitsTheSchemaOfItsWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.ask(t, "POST", "/v1/runs", `{"task":"work.resize","runId":"picture","payload":1}`).want(t, 201)
	claimed := w.ask(t, "POST", "/v1/work/claim", `{"tasks":["work.resize"],"wait":"10s"}`)
	wait := func(schemas string) string {
		return `{"token":"` + claimed.field(t, "token").(string) + `","signals":["approved"],"schemas":` + schemas + `}`
	}
	w.ask(t, "POST", "/v1/work/wait", wait(`{"approved":{"$ref":"#"}}`)).want(t, 400, "cannot judge", "lists the keywords")
	w.ask(t, "POST", "/v1/work/wait", wait(`{"another":{}}`)).want(t, 400, "no signal of this name")
	schema := `{"type":"object","properties":{"by":{"type":"string"}},"required":["by"]}`
	w.ask(t, "POST", "/v1/work/wait", wait(`{"approved": `+schema+` }`)).want(t, 200, `"suspended":true`)
	w.ask(t, "GET", "/v1/runs/picture", "").want(t, 200, `"schemas":{"approved":`+schema+`}`)
	for _, body := range []string{`true`, `null`, `{"by":7}`} {
		w.ask(t, "POST", "/v1/runs/picture/signals", `{"name":"approved","id":"1","body":`+body+`}`).want(t, 400,
			`"code":"validation_failed"`, `does not fit its schema`, `"runId":"picture"`)
	}
	w.ask(t, "POST", "/v1/runs/picture/signals", `{"name":"approved"}`).want(t, 400, `it is not of type object`)
	w.ask(t, "POST", "/v1/runs/picture/signals", `{"name":"approved","id":"1","body":{"by":"ada"}}`).want(t, 200, `"status":"queued"`)
}
