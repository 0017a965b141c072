package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/examples/invoices"
)

// What one process took and did not finish, the next one does: a large invoice waits for its approval.
func TestServe_AnotherProcess_GoesOnWithTheFile(t *testing.T) {
	t.Setenv("RUNLANE_LANE", "sqlite:"+filepath.Join(t.TempDir(), "invoices.db"))
	t.Setenv("RUNLANE_TOKEN_KEYS", strings.Repeat("A", 43)+"=")
	var location string
	during(t, func(address string) {
		taken := request(t, http.MethodPost, address+"/invoices", `{"id":"18","customer":"ada","cents":250000}`)
		location = "/runs/" + string(taken.Run)
	})
	during(t, func(address string) {
		var state invoices.State
		for state.Asks == "" { // until the test's own time limit
			if state = request(t, http.MethodGet, address+location, ""); state.Status == runlane.StatusFailed {
				t.Fatalf("%+v", state)
			}
		}
	})
}

// during runs the service while f does.
func during(t *testing.T, f func(address string)) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx, listener) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	f("http://" + listener.Addr().String())
}

func request(t *testing.T, method, url, body string) (state invoices.State) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&state); err != nil || state.Run == "" {
		t.Fatalf("%s %s: %s, %v", method, url, answer.Status, err)
	}
	return state
}
