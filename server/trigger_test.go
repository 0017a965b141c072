package server_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/server"
)

// Callers who may trigger say nothing to the runs that deliver webhooks.
func TestTrigger_OfTheServersTasks_IsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	const feed = `{"task":"runlane.webhook-feed","foreign":true,"payload":{}}`
	w.ask(t, "POST", "/v1/runs", feed).want(t, 400, `"code":"validation_failed"`, "made by the server")
	w.ask(t, "POST", "/v1/batch", `{"runs":[`+feed+`]}`).want(t, 200, "made by the server")
}

type crowded struct{ lane.Storage }

func (crowded) AdmitRuns(int) error {
	return &runlane.Error{Code: runlane.ErrOverloaded, Message: "full", Retryable: true, RetryAfter: 2500 * time.Millisecond}
}

func TestTrigger_OverloadedStorage_SaysWhenToTryAgain(t *testing.T) {
	t.Parallel()
	l := memlane.New()
	l.Storage = crowded{l.Storage}
	rt, err := core.Open(t.Context(), l, &core.Options{Logger: discard, Handlers: []runlane.Handler{
		welcome.Handle(func(context.Context, *runlane.Attempt, json.RawMessage) error { return nil }),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close(context.Background()) })
	w := &world{Runtime: rt, log: &lockedBuffer{}}
	if w.handler, err = server.New(rt, &server.Options{Logger: slog.New(slog.NewTextHandler(w.log, nil))}); err != nil {
		t.Fatal(err)
	}
	const one = `{"task":"mail.welcome","payload":{}}`
	for path, body := range map[string]string{"/v1/runs": one, "/v1/batch": `{"runs":[` + one + `]}`} {
		refused := w.ask(t, "POST", path, body)
		refused.want(t, 503, `"code":"overloaded"`, `"retryable":true`)
		if after := refused.header.Get("Retry-After"); after != "3" {
			t.Errorf("Retry-After is %q", after)
		}
	}
	if text := w.log.String(); strings.Contains(text, "a request failed") {
		t.Errorf("each refusal is logged: %s", text)
	}
}
