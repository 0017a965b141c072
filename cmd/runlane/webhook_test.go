package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
	"github.com/runlane/runlane-go/server"
	"github.com/runlane/runlane-go/sqlitelane"
)

// ends are the webhooks that came, by run: how often, and with which ids.
type ends struct {
	mu   sync.Mutex
	came map[string][]string
	more chan struct{}
}

// ServeHTTP implements http.Handler.
func (e *ends) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var run struct{ RunID string }
	_ = json.NewDecoder(r.Body).Decode(&run)
	e.mu.Lock()
	e.came[run.RunID] = append(e.came[run.RunID], r.Header.Get("Webhook-Id"))
	e.mu.Unlock()
	e.more <- struct{}{}
}

// Two servers tell one file's ends once each, and go on when one of them stops.
func TestWebhooks_TwoServersOfAFile_TellEachEndOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.db")
	received := &ends{came: map[string][]string{}, more: make(chan struct{}, 1000)}
	receiver := httptest.NewServer(received)
	t.Cleanup(receiver.Close)
	task := runlane.NewTask[int]("ending", nil)
	begin := func() (rt *core.Runtime, stop func()) {
		hooks, err := server.NewWebhooks(server.Webhook{
			URL:     receiver.URL,
			Secrets: []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
			Private: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		l, err := sqlitelane.Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		rt, err = core.Open(t.Context(), l, &core.Options{
			Logger: slog.New(slog.DiscardHandler),
			Handlers: append(hooks.Handlers(), task.Handle(func(context.Context, *runlane.Attempt, int) error {
				return nil
			})),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		if err := hooks.Begin(ctx, rt); err != nil {
			t.Fatal(err)
		}
		go func() { ended <- hooks.Run(ctx, rt) }() // ends with ctx
		stop = sync.OnceFunc(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if err := rt.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(stop)
		return rt, stop
	}
	await := func(n int) {
		t.Helper()
		deadline := time.After(patience.Limit)
		for range n {
			select {
			case <-received.more:
			case <-deadline:
				t.Fatal("the webhook is told too little")
			}
		}
	}
	first, stopFirst := begin()
	second, _ := begin()
	end := func(rt *core.Runtime, n int) {
		t.Helper()
		id := runlane.RunID(fmt.Sprint("run-", n))
		if _, err := rt.Trigger(t.Context(), task.With(n), &runlane.TriggerOptions{RunID: id, Delay: time.Hour}); err != nil {
			t.Fatal(err)
		}
		if _, err := rt.Runs().Cancel(t.Context(), id, nil); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 20 {
		end([]*core.Runtime{first, second}[n%2], n)
	}
	await(20)
	end(second, 20)
	stopFirst()
	for n := 21; n < 30; n++ {
		end(second, n)
	}
	await(10)
	received.mu.Lock()
	defer received.mu.Unlock()
	for n := range 30 {
		if ids := received.came[fmt.Sprint("run-", n)]; len(ids) != 1 || ids[0] == "" {
			t.Errorf("run %d came as %q", n, ids)
		}
	}
}
