package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/server"
	"github.com/runlane/runlane-go/server/schema"
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
	for _, path := range []string{"/v1/runs/lent", "/v1/runs/lent/events"} {
		got := w.ask(t, "GET", path, "")
		secret := w.claim[strings.LastIndexByte(w.claim, '.')+1:]
		if strings.Contains(got.text, secret) || strings.Contains(got.text, `"claim_`) {
			t.Errorf("%s shows the token: %s", path, got.text)
		}
	}
}

// There are no priorities: claims get the runs of a queue in the order in which they became due, of whichever task. What is urgent
// has a separate queue, which a client names.
func TestClaim_InTheOrderInWhichRunsBecameDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, claimsInOrder)
}

func claimsInOrder(t *testing.T) {
	urgent := runlane.NewTask[json.RawMessage]("work.urgent", &runlane.TaskOptions[json.RawMessage]{Queue: runlane.Queue{Name: "urgent"}})
	other := runlane.NewTask[json.RawMessage]("work.other", nil)
	rt, err := core.Open(t.Context(), memlane.New(), &core.Options{Tasks: []core.ClientTask{
		{Definition: resize.Definition()}, {Definition: other.Definition()}, {Definition: urgent.Definition()},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rt.Close(context.Background()) }()
	for _, made := range []struct {
		task  *runlane.Task[json.RawMessage]
		id    runlane.RunID
		delay time.Duration
	}{
		{resize, "last", time.Minute}, {resize, "first", 0}, {other, "third", 30 * time.Second}, {resize, "second", 0},
		{urgent, "urgent", 50 * time.Second},
	} {
		_, err := rt.Trigger(t.Context(), made.task.With(json.RawMessage("1")), &runlane.TriggerOptions{RunID: made.id, Delay: made.delay})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond) // in the bubble: the next is triggered later
	}
	time.Sleep(2 * time.Minute)
	if _, err := rt.Tick(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	handler, err := server.New(rt, &server.Options{Logger: discard})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Runtime: rt, handler: handler}
	w.ask(t, "POST", "/v1/work/claim", `{"queues":["urgent"]}`).want(t, 200, `"runId":"urgent"`)
	for _, id := range []string{"first", "second", "third", "last"} {
		w.ask(t, "POST", "/v1/work/claim", `{"queues":["default"],"wait":"10s"}`).want(t, 200, `"runId":"`+id+`"`)
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

// Two callers have no worker of one name, whatever signs are in the names of both.
func TestClaim_NamesOfCallersDoNotMeet(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, by := range []string{"a", "a/b", "a%2Fb", "a%252Fb"} {
		for _, name := range []string{"", "c", "b/c", "2Fb"} {
			w := newWorld(t, &server.Options{Access: func(*http.Request) (server.Access, error) {
				return server.Access{Actor: runlane.Actor{Type: runlane.ActorOperator, ID: by}, Scopes: server.Scopes()}, nil
			}})
			w.lend(t, false)
			w.ask(t, "POST", "/v1/work/claim", fmt.Sprintf(`{"worker":%q}`, name)).want(t, 200)
			run, err := w.Runs().Get(t.Context(), "lent")
			if err != nil {
				t.Fatal(err)
			}
			worker := run.Lease.WorkerID
			if other, there := seen[worker]; there || worker == "" {
				t.Errorf("worker %q of %q has the name of %s: %q", name, by, other, worker)
			}
			seen[worker] = fmt.Sprintf("%q of %q", name, by)
		}
	}
}

// A payload that does not fit the schema of its task makes no run.
func TestTrigger_ByTheSchemaOfATask(t *testing.T) {
	t.Parallel()
	tasks, err := server.ReadTasks([]byte(imagesFile), schema.Compile)
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
	// Who writes payloads reads the schema.
	w.ask(t, "GET", "/v1/tasks/images.resize", "").want(t, 200, `"schema":{"type":"object","required":["url"],"additionalProperties":false`)
}

// A claim that waits ends when its server does, and takes no run with it.
func TestClaim_ThatWaits_EndsWithTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	url, client, stop := listening(t, w, nil)
	answered := make(chan int, 1)
	go func() { // ends with the answer
		response, err := client.Post(url+"/v1/work/claim", "application/json", strings.NewReader(`{"tasks":["work.resize"]}`))
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
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// Whatever an attempt does by its claim is refused once the attempt is not the caller's any more, and does nothing.
func TestClaim_Stale_IsRefusedByEachRoute(t *testing.T) {
	t.Parallel()
	w := furnished(t)
	w.lend(t, true)
	w.ask(t, "POST", "/v1/work/release", `{"token":"`+w.claim+`"}`).want(t, 200)
	before := w.ask(t, "GET", "/v1/runs?limit=500", "").text
	stale := w.claim
	w.ask(t, "POST", "/v1/work/claim", `{"tasks":["work.resize"]}`).want(t, 200, `"runId":"lent"`)
	during := w.ask(t, "GET", "/v1/runs?limit=500", "").text
	tried := 0
	for _, line := range server.Lines() {
		if line.Scope != server.ScopeWork || line.Name == "claimRun" {
			continue
		}
		tried++
		body := strings.ReplaceAll(cases[line.Name].sound.body, "CLAIM", stale)
		w.ask(t, line.Method, line.Path, body).want(t, 409, `"code":"storage_conflict"`, `"conflict":"lease_ownership"`, `"runId":"lent"`)
	}
	if tried < 15 {
		t.Errorf("%d routes take a claim", tried)
	}
	if after := w.ask(t, "GET", "/v1/runs?limit=500", "").text; after != during || before == during {
		t.Errorf("something was done:\n%s\n%s", during, after)
	}
	w.ask(t, "GET", "/v1/runs/lent/steps", "").want(t, 200, `"items":[]`)
	w.ask(t, "GET", "/v1/flows/f", "").want(t, 404)
}

// What makes runs or sends signals by a claim needs the scope for that, as without a claim.
func TestClaim_ThatMakes_NeedsTheScopeTrigger(t *testing.T) {
	t.Parallel()
	w := furnished(t)
	w.lend(t, true)
	for _, name := range []string{"triggerByClaim", "signalByClaim", "callRuns", "flowByClaim"} {
		asked := cases[name].sound
		body := strings.ReplaceAll(asked.body, "CLAIM", w.claim)
		w.ask(t, "POST", asked.path, body, "Scopes: work").want(t, 403, "the caller has no scope trigger")
	}
}

// Without a name another choice of signals is another wait: it does not get the answer of the first.
func TestClaim_WaitsWithoutAName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.lend(t, true)
	wait := `{"token":"` + w.claim + `","timeout":"0s","signals":`
	w.ask(t, "POST", "/v1/runs/lent/signals", `{"name":"reject"}`).want(t, 200)
	for range 2 {
		w.ask(t, "POST", "/v1/work/wait", wait+`["approve","reject"]}`).want(t, 200, `"name":"reject"`)
	}
	w.ask(t, "POST", "/v1/work/wait", wait+`["approve"]}`).want(t, 200, `"timedOut":true`)
}

// The runs of a call come back with their ends.
func TestClaim_CallsRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.lend(t, true)
	parent := w.claim
	asked := func() string {
		return `{"token":"` + w.claim + `","task":"work.resize","name":"thumbs","payloads":[{ "n": 2 },3]}`
	}
	w.ask(t, "POST", "/v1/work/call", asked()).want(t, 200, `"suspended":true`)
	w.ask(t, "POST", "/v1/work/call", asked()).want(t, 409, `"conflict":"lease_ownership"`)
	for _, path := range []string{"complete", "fail"} {
		child := w.ask(t, "POST", "/v1/work/claim", `{"tasks":["work.resize"]}`)
		child.want(t, 200)
		body := `{"token":"` + child.field(t, "token").(string) + `"`
		if path == "complete" {
			body += `,"output":{ "done": 12345678901234567890 }`
		}
		w.ask(t, "POST", "/v1/work/"+path, body+"}").want(t, 200)
	}
	again := w.ask(t, "POST", "/v1/work/claim", `{"tasks":["work.resize"]}`)
	again.want(t, 200, `"runId":"lent"`)
	if w.claim = again.field(t, "token").(string); w.claim == parent {
		t.Fatal("the claim is the first one's")
	}
	for range 2 {
		w.ask(t, "POST", "/v1/work/call", asked()).want(t, 200, `"suspended":false,"runs":[{"runId":"run_`, `"status":"succeeded"`,
			`"output":{"done":12345678901234567890}`, `"status":"failed","failure":{"code":"task_failed"`)
	}
}

// A client that has the wakeup of a run claims that run, and acknowledges the wakeup after each success.
func TestClaim_OfANamedRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.lend(t, false)
	w.ask(t, "POST", "/v1/work/claim", `{"runId":"none"}`).want(t, 204)
	got := w.ask(t, "POST", "/v1/work/claim", `{"runId":"lent"}`)
	got.want(t, 200, `"runId":"lent"`, `"payload":{"n":1}`)
	w.ask(t, "POST", "/v1/work/claim", `{"runId":"lent"}`).want(t, 204)
	w.ask(t, "POST", "/v1/work/claim", `{"runId":"a:b"}`).want(t, 400)
	w.ask(t, "POST", "/v1/work/block", `{"token":"`+got.field(t, "token").(string)+`","reason":""}`).want(t, 400, "reason is missing")
	w.trigger(t, welcome, "other", false)
	if _, err := w.Runs().Resume(t.Context(), "other", nil); err != nil {
		t.Fatal(err)
	}
	w.ask(t, "POST", "/v1/work/claim", `{"runId":"other"}`).want(t, 404, `"code":"task_not_found"`) // comes again, to a worker in Go
}
