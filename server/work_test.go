package server_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/server"
)

// lend triggers the run "lent" of a task for clients, and claims it if that is asked for.
func (w *world) lend(t testing.TB, claimed bool) {
	t.Helper()
	_, err := w.Trigger(t.Context(), resize.With(json.RawMessage(`{"n":1}`)), &runlane.TriggerOptions{RunID: "lent"})
	if err != nil {
		t.Fatal(err)
	}
	if !claimed {
		return
	}
	got := w.ask(t, "POST", "/v1/work/claim", `{"tasks":["work.resize"]}`)
	got.want(t, 200)
	w.claim, _ = got.field(t, "token").(string)
}

// A claim is the storage's: another server goes on with it, and after its end nothing is taken any more.
func TestClaim_OutlivesTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.lend(t, true)
	other, err := server.New(w.Runtime, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.handler = other
	body := `{"token":"` + w.claim + `"`
	w.ask(t, "POST", "/v1/work/heartbeat", body+`}`).want(t, 200)
	w.ask(t, "POST", "/v1/work/complete", body+`,"output":{ "a" : 1 }}`).want(t, 200, `"status":"succeeded"`)
	w.ask(t, "GET", "/v1/runs/lent/output", "").want(t, 200, `{ "a" : 1 }`)
	for _, path := range []string{"heartbeat", "complete", "fail", "release", "steps"} {
		w.ask(t, "POST", "/v1/work/"+path, body+`}`).want(t, 409, `"conflict":"lease_ownership"`, `"runId":"lent"`)
	}
	for _, path := range []string{"/v1/runs/lent", "/v1/runs/lent/events"} {
		got := w.ask(t, "GET", path, "")
		secret := w.claim[strings.LastIndexByte(w.claim, '.')+1:]
		if strings.Contains(got.text, secret) || strings.Contains(got.text, `"claim_`) {
			t.Errorf("%s shows the token: %s", path, got.text)
		}
	}
}

// The token of one run is of no use for another, whatever of it is changed.
func TestClaim_NoTokenIsForAnotherRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.lend(t, true)
	own := w.claim
	_, err := w.Trigger(t.Context(), resize.With(json.RawMessage(`{}`)), &runlane.TriggerOptions{RunID: "else"})
	if err != nil {
		t.Fatal(err)
	}
	w.ask(t, "POST", "/v1/work/claim", `{}`).want(t, 200, `"runId":"else"`)
	_, secret, _ := strings.Cut(strings.TrimPrefix(own, "rlc1."), ".")
	run, err := w.Runs().Get(t.Context(), "else")
	if err != nil {
		t.Fatal(err)
	}
	for _, forged := range []string{secret, run.Lease.Token, strings.TrimPrefix(run.Lease.Token, "claim_")} {
		w.ask(t, "POST", "/v1/work/complete", `{"token":"rlc1.ZWxzZQ.`+forged+`"}`).want(t, 409)
	}
	w.ask(t, "GET", "/v1/runs/else", "").want(t, 200, `"status":"running"`)
}

// A client stands in lease and events behind the name that the server knows it by.
func TestClaim_NamesTheCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &server.Options{Access: byScope})
	w.lend(t, false)
	w.ask(t, "POST", "/v1/work/claim", `{"worker":"py-1"}`, "Scopes: work").want(t, 200)
	w.ask(t, "GET", "/v1/runs/lent", "").want(t, 200, `"workerId":"ada/py-1"`)
	w.ask(t, "POST", "/v1/work/claim", `{"worker":"a\nb"}`).want(t, 400)
}

// A payload that does not fit the schema of its task makes no run.
func TestTrigger_ByTheSchemaOfATask(t *testing.T) {
	t.Parallel()
	tasks, err := server.ReadTasks([]byte(imagesFile))
	if err != nil {
		t.Fatal(err)
	}
	rt, err := core.Open(t.Context(), memlane.New(), &core.Options{Tasks: tasks})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close(context.Background()) })
	handler, err := server.New(rt, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Runtime: rt, handler: handler}
	refused := w.ask(t, "POST", "/v1/runs", `{"task":"images.resize","payload":{"url":"secret"}}`)
	refused.want(t, 400, `"code":"validation_failed"`, "/properties/url")
	if strings.Contains(refused.text, "secret") {
		t.Errorf("the payload is quoted: %s", refused.text)
	}
	w.ask(t, "POST", "/v1/batch", `{"runs":[{"task":"images.resize","payload":{}},{"task":"images.resize","payload":{"url":"https://a"}}]}`).
		want(t, 200, `"created":1,"existing":0,"failed":1`)
}

// A claim that waits ends when its server does, and takes no run with it.
func TestClaim_ThatWaits_EndsWithTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended, answered := make(chan error, 1), make(chan int, 1)
	go func() { ended <- server.Serve(ctx, listener, w.Runtime, nil, time.Minute) }() // ends with ctx
	go func() {                                                                       // ends with the answer
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+listener.Addr().String()+"/v1/work/claim",
			strings.NewReader(`{"tasks":["work.resize"]}`))
		if err != nil {
			answered <- 0
			return
		}
		r.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			answered <- 0
			return
		}
		_ = response.Body.Close()
		answered <- response.StatusCode
	}()
	// The claim waits once it has a place among those that do; a run that comes is then its.
	w.lend(t, false)
	if status := <-answered; status != http.StatusOK {
		t.Errorf("the claim that waited got %d", status)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
