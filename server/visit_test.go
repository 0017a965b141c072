package server_test

import (
	"net/http"
	"testing"

	"github.com/runlane/runlane-go/server"
)

// A program that mistypes a path gets a problem, also where there is a console, and no page.
func TestRoot_UnknownPathsOfTheAPI_AreProblems(t *testing.T) {
	t.Parallel()
	access, err := server.TokenAccess(server.Token{Name: "ci", Hash: server.HashToken("right"), Scopes: server.Scopes()})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, &server.Options{Access: access, Root: http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) },
	)})
	known := "Authorization: Bearer right"
	for _, path := range []string{"/v1", "/v1/", "/v1/rnus", "/v1/runs/a/b/c", "/events/a", "/mcp", "/metrics/", "/docs/a", "/openapi.json/"} {
		for _, method := range []string{"GET", "POST"} {
			w.ask(t, method, path, "", known).want(t, 404, `"code":"no_route"`)
			w.ask(t, method, path, "").want(t, 401, `"code":"unauthenticated"`)
		}
	}
	for _, header := range []string{"Accept: application/json", "Accept: application/problem+json, */*", "Type: application/json"} {
		for _, method := range []string{"GET", "POST"} {
			w.ask(t, method, "/runs", "", known, header).want(t, 404, `"code":"no_route"`)
			w.ask(t, method, "/runs", "", header).want(t, 401, `"code":"unauthenticated"`)
		}
	}
	for _, path := range []string{"/v2/runs", "/runs"} {
		w.ask(t, "POST", path, "", known, "Type: application/octet-stream").want(t, 404, `"code":"no_route"`)
		w.ask(t, "POST", path, "", "Type: application/octet-stream").want(t, 401, `"code":"unauthenticated"`)
	}
	for _, path := range []string{"/", "/runs", "/v1a", "/event", "/flows/v1"} {
		w.ask(t, "GET", path, "").wantStatus(t, http.StatusTeapot)
		w.ask(t, "GET", path, "", "Accept: text/html,application/json;q=0.5").wantStatus(t, http.StatusTeapot)
		w.ask(t, "POST", path, "", "Sec-Fetch-Site: same-origin", "Type: application/x-www-form-urlencoded").wantStatus(t, http.StatusTeapot)
	}
}

func (a *answer) wantStatus(t *testing.T, status int) {
	t.Helper()
	if a.status != status {
		t.Errorf("status %d, want %d: %s", a.status, status, a.text)
	}
}
