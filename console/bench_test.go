package console_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/runlane/runlane-go/console"
	"github.com/runlane/runlane-go/console/internal/world"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/server"
)

// A page of runs costs the same however many there are: a list by cursor, nothing counted.
func BenchmarkRuns_OfAHundredThousand(b *testing.B) {
	w, err := world.Open(b.Context(), memlane.New())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = w.Close(context.Background()) })
	for range 100_000 {
		if _, err := w.Trigger(b.Context(), world.Welcome.With(json.RawMessage(`{"to":"ada"}`)), nil); err != nil {
			b.Fatal(err)
		}
	}
	quiet := slog.New(slog.DiscardHandler)
	handler, err := server.New(w.Runtime, &server.Options{
		Logger: quiet,
		Root:   console.New(w.Runtime, &console.Options{Logger: quiet}),
	})
	if err != nil {
		b.Fatal(err)
	}
	s := httptest.NewServer(handler)
	b.Cleanup(s.Close)
	for _, page := range []struct{ name, path string }{
		{"all", "/runs"},
		{"of a status", "/runs?status=queued"},
		{"of a task", "/runs?task=mail.welcome"},
	} {
		b.Run(page.name, func(b *testing.B) {
			for b.Loop() {
				read(b, s.URL+page.path)
			}
		})
	}
}

func read(b *testing.B, address string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		b.Fatal(answer.Status, err)
	}
}
