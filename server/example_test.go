package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/server"
)

// The API in a mux of your own. A request has a bearer token.
func ExampleNew() {
	ctx := context.Background()
	task := runlane.NewTask[string]("mail.welcome", nil)
	rt, err := core.Open(ctx, memlane.New(), &core.Options{Handlers: []runlane.Handler{
		task.Handle(func(context.Context, *runlane.Attempt, string) error { return nil }),
	}})
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close(ctx) }()
	access, err := server.TokenAccess(server.Token{
		Name:   "shop",
		Hash:   server.HashToken("in a program: a long random text"),
		Scopes: []server.Scope{server.ScopeTrigger},
	})
	if err != nil {
		panic(err)
	}
	api, err := server.New(rt, &server.Options{Access: access, Prefix: "/runlane"})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/runlane/", api)

	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/runlane/v1/runs", strings.NewReader(`{"task":"mail.welcome","payload":"ada","runId":"r_1"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer in a program: a long random text")
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	body, _ := io.ReadAll(w.Result().Body)
	fmt.Println(w.Code, string(body))
	// Output:
	// 201 {"v":1,"kind":"triggered","runId":"r_1","taskId":"mail.welcome","status":"queued","outcome":"created"}
}

// What a runtime counts, for Prometheus.
func ExampleMetrics() {
	ctx := context.Background()
	metrics := &server.Metrics{}
	rt, err := core.Open(ctx, memlane.New(), &core.Options{Metrics: metrics, Queues: []runlane.Queue{{Name: "mail"}}})
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Close(ctx) }()
	api, err := server.New(rt, &server.Options{Metrics: metrics})
	if err != nil {
		panic(err)
	}
	task := runlane.NewTask("mail.welcome", &runlane.TaskOptions[string]{Queue: runlane.Queue{Name: "mail"}})
	if _, err := rt.Trigger(ctx, task.With("ada"), nil); err != nil {
		panic(err)
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/metrics", nil)
	r.RemoteAddr = "127.0.0.1:40000"
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, "runlane_runs_created_total") || strings.HasPrefix(line, `runlane_queue_waiting{environment="default",queue="mail"`) {
			fmt.Print(line)
		}
	}
	// Output:
	// runlane_runs_created_total{environment="default",task="mail.welcome",queue="mail"} 1
	// runlane_queue_waiting{environment="default",queue="mail"} 1
}

// A receiver on this machine is told that a run was cancelled.
func ExampleWebhooks() {
	ctx, stop := context.WithCancel(context.Background())
	told := make(chan string)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var run runlane.Run
		_ = json.NewDecoder(r.Body).Decode(&run) // an empty run fails below
		told <- fmt.Sprint(run.ID, " ", run.Status)
	}))
	hooks, err := server.NewWebhooks(server.Webhook{
		URL:     receiver.URL,
		Secrets: []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
		Private: true,
	})
	if err != nil {
		panic(err)
	}
	rt, err := core.Open(ctx, memlane.New(), &core.Options{Handlers: hooks.Handlers()})
	if err != nil {
		panic(err)
	}
	if err := hooks.Begin(ctx, rt); err != nil {
		panic(err)
	}
	ended := make(chan error)
	go func() { ended <- hooks.Run(ctx, rt) }() // until stop
	task := runlane.NewTask[string]("mail.welcome", nil)
	_, err = rt.Trigger(ctx, task.With("ada"), &runlane.TriggerOptions{RunID: "welcome-ada", Delay: time.Hour})
	if err != nil {
		panic(err)
	}
	if _, err := rt.Runs().Cancel(ctx, "welcome-ada", nil); err != nil {
		panic(err)
	}
	fmt.Println(<-told)
	stop()
	fmt.Println(<-ended, rt.Close(context.Background()))
	receiver.Close()
	// Output:
	// welcome-ada cancelled
	// <nil> <nil>
}

// A proxy that logs people in tells who calls.
func ExampleProxyAccess() {
	access, err := server.ProxyAccess(server.Proxy{
		From:   []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Header: "X-Forwarded-User",
		Scopes: []server.Scope{server.ScopeRead, server.ScopeOperate},
	})
	if err != nil {
		panic(err)
	}
	r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/v1/runs", nil)
	r.RemoteAddr = "10.0.0.7:40000"
	r.Header.Set("X-Forwarded-User", "ada@example.com")
	caller, err := access(r)
	fmt.Println(caller.Actor.ID, caller.Scopes, err)
	// Output:
	// ada@example.com [read operate] <nil>
}
