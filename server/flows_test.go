package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
)

// startFlow starts a flow of two runs, the second of which undoes the first.
func (w *world) startFlow(t *testing.T) {
	t.Helper()
	f := runlane.NewFlow("release")
	build := f.Add("build", broken.With(json.RawMessage("1")), nil)
	f.Add("undo", welcome.With(json.RawMessage(`"undone"`)), &runlane.NodeOptions{After: []runlane.Node{build}, If: runlane.IfFailed})
	if _, err := w.StartFlow(t.Context(), f, nil); err != nil {
		t.Fatal(err)
	}
}

func TestFlows_FromTheirStartToARetry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.startFlow(t)
	got := w.ask(t, "GET", "/v1/flows/release", "")
	got.want(t, 200, `"status":"active"`)
	tag := got.header.Get("ETag")
	w.ask(t, "GET", "/v1/flows/release", "", "If-None-Match: "+tag).want(t, 304)
	w.ask(t, "POST", "/v1/flows/release/retry", "").want(t, 409, "has not finished")
	w.executeAll(t)
	w.ask(t, "GET", "/v1/flows/release", "", "If-None-Match: "+tag).want(t, 200, `"status":"failed"`, `"failure":{"code":`)
	w.ask(t, "GET", "/v1/flows/release?sizes=true", "").want(t, 200, `"outputBytes":8`)
	w.ask(t, "POST", "/v1/flows/release/cancel", "").want(t, 409, "there is nothing to cancel")
	w.ask(t, "POST", "/v1/flows/release/retry", `{"dryRun":true}`).want(t, 409, `undone by \"undo\"`, "NothingUndone")
	w.ask(t, "POST", "/v1/flows/release/retry", `{"dryRun":true,"nothingUndone":true}`).want(t, 200, `"status":"failed","renewed":["build","undo"],"dryRun":true}`)
	w.ask(t, "POST", "/v1/flows/release/retry", `{"reason":"the printer has paper","nothingUndone":true}`).want(t, 200, `"status":"active","open":["build","undo"],"renewed":["build","undo"]}`)
	w.executeAll(t)
	w.ask(t, "GET", "/v1/flows?status=failed", "").want(t, 200, `"items":[{"v":1,"kind":"flow","flowId":"release","status":"failed","retries":1,`)
	if log := w.log.String(); !strings.Contains(log, `"operation":"retryFlow","flow":"release","code":"done"`) {
		t.Errorf("the audit does not name the flow: %s", log)
	}
}
