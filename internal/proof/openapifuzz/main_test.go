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
	named, err := os.ReadFile(filepath.Join("..", "..", "..", "scripts", "openapi-fuzz", "schemathesis.toml"))
	if err != nil {
		t.Fatal(err)
	}
	var seen []runlane.Status
	held := 0
	for run, err := range rt.Runs().All(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, run.Status)
		switch {
		case run.Queue == claims:
			held++
		case run.Source.Type != runlane.SourceFlow && !strings.Contains(string(named), `"`+string(run.ID)+`"`):
			t.Errorf("no request names %s", run.ID)
		}
	}
	if held != toClaim {
		t.Errorf("%d runs can be claimed, not %d", held, toClaim)
	}
	for i := range flows {
		if !strings.Contains(string(named), `"`+string(flows[i].id)+`"`) {
			t.Errorf("no request names %s", flows[i].id)
		}
	}
	for _, status := range runlane.Statuses() {
		if status.Owned() == slices.Contains(seen, status) {
			t.Errorf("%s: there is a run of it: %v", status, status.Owned())
		}
	}
}
