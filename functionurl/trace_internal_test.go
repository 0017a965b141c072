package functionurl

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// A request is an invocation, which a tracer can end before Lambda stops the process.
func TestServer_TellsATracerOfARequest(t *testing.T) {
	t.Parallel()
	var told []string
	rt, err := core.Open(t.Context(), memlane.New(), &core.Options{
		Tracer: func(ctx context.Context, w *core.Work) (context.Context, func(core.WorkEnd)) {
			told = append(told, "begin "+w.Name)
			return ctx, func(core.WorkEnd) { told = append(told, "end") }
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	h, err := newServer(rt, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", nil))
	if answer.Code != http.StatusOK || len(told) != 2 || told[0] != "begin server" || told[1] != "end" {
		t.Errorf("status %d, told %q", answer.Code, told)
	}
}
