package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func environment(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

func TestSettings_BadOnes_AreRefused(t *testing.T) {
	t.Parallel()
	for name, pairs := range map[string]map[string]string{
		"no endpoint":         {},
		"empty queue":         {"AWS_ENDPOINT_URL": "http://x", "RUNLANE_LOCAL_QUEUES": "default,,webhooks"},
		"suffix alone":        {"AWS_ENDPOINT_URL": "http://x", "RUNLANE_LOCAL_QUEUES": ".fifo"},
		"one name, two kinds": {"AWS_ENDPOINT_URL": "http://x", "RUNLANE_LOCAL_QUEUES": "orders,orders.fifo"},
	} {
		if got, err := settingsFromEnvironment(environment(pairs)); err == nil {
			t.Errorf("%s: got %+v, want an error", name, got)
		}
	}
}

func TestWriteEnvironment_ReplacesTheFileWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(path, []byte("OLD=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := settings{endpoint: "http://127.0.0.1:1", dynamodb: "http://127.0.0.1:2", region: "eu-central-1", table: "runs", environment: "test"}
	if err := writeEnvironment(path, s.lines("default=http://127.0.0.1:1/queue/runs-default")); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `AWS_ENDPOINT_URL=http://127.0.0.1:1
AWS_ACCESS_KEY_ID=test
AWS_SECRET_ACCESS_KEY=test
AWS_REGION=eu-central-1
AWS_DEFAULT_REGION=eu-central-1
AWS_EC2_METADATA_DISABLED=true
RUNLANE_TABLE=runs
RUNLANE_QUEUES=default=http://127.0.0.1:1/queue/runs-default
RUNLANE_ENV=test
RUNLANE_LOCAL_DYNAMODB=http://127.0.0.1:2
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("env file (-want +got):\n%s", diff)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".env-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// What would mean something else to a shell or to make is refused before anything is written.
func TestWriteEnvironment_ValueThatNeedsQuoting_IsRefused(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"", "two words", "$(touch x)", "a;b", "a#b", "a&b", "a'b", "a\nb"} {
		path := filepath.Join(t.TempDir(), "env")
		if err := writeEnvironment(path, [][2]string{{"RUNLANE_TABLE", value}}); err == nil || !strings.Contains(err.Error(), "RUNLANE_TABLE") {
			t.Errorf("value %q: error %v, want one that names the variable", value, err)
		}
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("value %q: a file was written", value)
		}
	}
}

func TestWaitFor_EndpointComesUp_Returns(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	if err := waitFor(t.Context(), server.URL, time.Minute); err != nil {
		t.Error(err)
	}
	if got := requests.Load(); got != 3 {
		t.Errorf("%d requests, want 3", got)
	}
}

func TestWaitFor_NothingThere_EndsInTime(t *testing.T) {
	t.Parallel()
	err := waitFor(t.Context(), "http://127.0.0.1:1", 300*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "http://127.0.0.1:1 does not answer") {
		t.Errorf("error %v, want one that names the endpoint", err)
	}
}

func TestRun_BadArguments_ShowTheUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"ports"}, {"ports", "x"}, {"ports", "0"}, {"wait", "http://x", "soon"}, {"create"}, {"destroy", "x"}} {
		if err := run(t.Context(), args); !errors.Is(err, errUsage) {
			t.Errorf("%q: error %v, want the usage", args, err)
		}
	}
}
