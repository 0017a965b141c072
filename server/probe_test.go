package server_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
	"github.com/runlane/runlane-go/server"
)

// A caller that goes away while it asks does not make the server look unready to the next.
func TestReady_ACallerThatGoesAway_SpoilsNothing(t *testing.T) {
	t.Parallel()
	_, handler := servedWorld(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, ctx := range []context.Context{gone, t.Context()} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", nil))
		if w.Code != http.StatusOK {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(gone, http.MethodGet, "/metrics", nil))
	if !strings.Contains(w.Body.String(), "runlane_storage_up 1") {
		t.Error("the storage looks gone")
	}
}

// A session's cookie is sent over TLS alone where the server has a certificate.
func TestSession_OverTLS_IsSecure(t *testing.T) {
	t.Parallel()
	rt, _ := servedWorld(t)
	borrowed := httptest.NewTLSServer(nil) // its certificate
	t.Cleanup(borrowed.Close)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: borrowed.TLS.Certificates, MinVersion: tls.VersionTLS13})
	if err != nil {
		t.Fatal(err)
	}
	root := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, server.NewSession(r, "", "token"))
	})
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { // ends with the test
		served <- server.Serve(ctx, l, rt, &server.Options{Logger: discard, Root: root}, patience.Limit)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+l.Addr().String()+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := borrowed.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if cookies := answer.Cookies(); len(cookies) != 1 || !cookies[0].Secure {
		t.Errorf("%s %+v", answer.Status, cookies)
	}
	borrowed.Client().CloseIdleConnections()
}
