package server_test

import "testing"

// Callers who may trigger say nothing to the runs that deliver webhooks.
func TestTrigger_OfTheServersTasks_IsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	const feed = `{"task":"runlane.webhook-feed","foreign":true,"payload":{}}`
	w.ask(t, "POST", "/v1/runs", feed).want(t, 400, `"code":"validation_failed"`, "made by the server")
	w.ask(t, "POST", "/v1/batch", `{"runs":[`+feed+`]}`).want(t, 200, "made by the server")
}
