package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// What is served has every status that outlives its process, and each run that the requests name.
func TestExport_HasRunsInEveryStatusThatLasts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.ndjson")
	if err := write(path); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := core.Open(t.Context(), memlane.New(), &core.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close(context.Background()) })
	if _, err := rt.Import(t.Context(), bytes.NewReader(file)); err != nil {
		t.Fatal(err)
	}
	page, err := rt.Runs().List(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	named, err := os.ReadFile(filepath.Join("..", "..", "..", "scripts", "openapi-fuzz", "schemathesis.toml"))
	if err != nil {
		t.Fatal(err)
	}
	var seen []runlane.Status
	for _, run := range page.Items {
		seen = append(seen, run.Status)
		if !strings.Contains(string(named), `"`+string(run.ID)+`"`) {
			t.Errorf("no request names %s", run.ID)
		}
	}
	for _, status := range runlane.Statuses() {
		if status.Owned() == slices.Contains(seen, status) {
			t.Errorf("%s: there is a run of it: %v", status, status.Owned())
		}
	}
}
