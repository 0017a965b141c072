package main

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/examples/webhooks"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane"
)

// The worker delivers from a file what another program triggered there, named by the flag or by the variable.
func TestRun_OnAFile_DeliversWhatAnotherProgramTriggered(t *testing.T) {
	for name, flag := range map[string]bool{"flag": true, "variable": false} {
		t.Run(name, func(t *testing.T) { // one after the other: the environment is the process's
			receives := &receiver{arrived: make(chan string, 1), answer: make(chan struct{})}
			close(receives.answer)
			server := httptest.NewServer(receives)
			defer server.Close()
			path := filepath.Join(t.TempDir(), "runs.db")
			arguments := []string{"-concurrency", "2"}
			t.Setenv(lane.Variable, "sqlite:"+path)
			if flag {
				arguments = append(arguments, "-lane", "sqlite:"+path)
				t.Setenv(lane.Variable, "aws:")
			}
			t.Setenv(webhooks.EndpointsVariable, "shop="+server.URL)
			t.Setenv(webhooks.SecretVariable, "secret")

			l, err := sqlitelane.Open(t.Context(), path, nil)
			if err != nil {
				t.Fatal(err)
			}
			rt, err := core.Open(t.Context(), l, &core.Options{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := rt.Close(context.Background()); err != nil {
					t.Error(err)
				}
			}()
			result, err := rt.Trigger(t.Context(), webhooks.Deliver.With(webhooks.Delivery{
				ID:       "a",
				Event:    "order",
				Endpoint: "shop",
				Payload:  `"a"`,
			}), nil)
			if err != nil {
				t.Fatal(err)
			}

			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			var stderr bytes.Buffer
			ended := make(chan int, 1)
			go func() { ended <- run(ctx, arguments, &stderr) }() // ends with ctx
			done, err := rt.Wait(ctx, result.Run.ID)
			stop()
			if status := <-ended; status != 0 {
				t.Errorf("status %d: %s", status, &stderr)
			}
			if err != nil || done.Status != runlane.StatusSucceeded {
				t.Fatalf("%+v, %v: %s", done, err, &stderr)
			}
			if payload := <-receives.arrived; payload != `"a"` {
				t.Errorf("received is %s", payload)
			}
		})
	}
}
