package server_test

import (
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/server"
)

// A time of zero is not a time, and none that is absent.
func TestWork_ATimeOfZero_IsZero(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	claim := func(fields string) (body string) {
		t.Helper()
		got := w.ask(t, "POST", "/v1/work/claim", fields)
		got.want(t, 200)
		token, _ := got.field(t, "token").(string)
		return `{"token":"` + token + `"`
	}
	w.ask(t, "POST", "/v1/work/claim", `{"wait":"0s"}`).want(t, 204)
	w.lend(t, false)
	w.ask(t, "POST", "/v1/work/claim", `{"lease":"0s"}`).want(t, 400, "the lease is 0s")
	body := claim(`{"wait":"0s"}`)
	w.ask(t, "POST", "/v1/work/heartbeat", body+`,"lease":"0s"}`).want(t, 400, "the lease is 0s")
	for _, zero := range []string{"0s", "0ms", "0"} {
		w.ask(t, "POST", "/v1/work/wait", body+`,"signals":["`+zero+`"],"timeout":"`+zero+`"}`).
			want(t, 200, `"suspended":false`, `"timedOut":true`)
	}
	w.ask(t, "POST", "/v1/work/release", body+`,"after":"0s","reason":"busy"}`).want(t, 200, `"status":"released"`)
	claim(`{}`) // it goes on
	w.ask(t, "POST", "/v1/runs", `{"task":"mail.welcome","idempotencyKey":"k","idempotencyTtl":"0s"}`).want(t, 400, "not more than 0")
	if _, err := server.ReadTasks([]byte(`{"tasks":[{"task":"a","timeout":"0s"}]}`), nil); runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
		t.Errorf("a timeout of 0s: %v", err)
	}
	tasks, err := server.ReadTasks([]byte(`{"tasks":[{"task":"a","maxAttempts":2,"backoff":"0s"}]}`), nil)
	if err != nil || tasks[0].Definition.Retry.Delay(1) != 0 {
		t.Errorf("a backoff of 0s: %v", err)
	}
}
