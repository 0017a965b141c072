package server

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/runlane/runlane-go/internal/blind"
)

// Visit describes a request to the handler of [Options].Root.
type Visit struct {
	Access
	// Known is false for an unauthenticated caller, who may only get the login page. Access is then the zero value.
	Known bool
	// Refused reports an unknown token in the request. At /login it reports a session that was refused before.
	Refused bool
	// Prefix is [Options].Prefix.
	Prefix string
	// HidePayloads reports that the visitor may not see payloads, outputs and results of steps.
	HidePayloads bool

	caller string
}

// Has reports whether the visitor has a scope.
func (v *Visit) Has(scope Scope) bool { return v.has(scope) }

// Caller names the visitor for a log: the actor, or the address if the actor has no ID.
func (v *Visit) Caller() string { return v.caller }

type visitKey struct{}

// VisitOf returns the visit of a request to [Options].Root, otherwise the zero value.
func VisitOf(ctx context.Context) Visit {
	visit, _ := ctx.Value(visitKey{}).(Visit)
	return visit
}

// sessionCookie holds a token for browsers, which cannot send the header.
const sessionCookie = "runlane_token"

// NewSession returns a cookie with a token for a browser; token "" ends the session. Scripts cannot read it, and other
// sites cannot use it for changes. It is valid for prefix and below. A server with [Options].Root accepts it like
// "Authorization: Bearer TOKEN", except for the root's /login and /assets/.
func NewSession(r *http.Request, prefix, token string) *http.Cookie {
	c := &http.Cookie{
		Name:     sessionCookie,
		Value:    token,
		Path:     prefix + "/",
		HttpOnly: true,
		Secure:   r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https"),
		SameSite: http.SameSiteLaxMode,
	}
	if token == "" {
		c.MaxAge = -1
	}
	return c
}

func (a *api) withSession(r *http.Request) *http.Request {
	if a.root == nil || r.Header.Get("Authorization") != "" {
		return r
	}
	cookie, err := r.Cookie(sessionCookie)
	if err != nil || cookie.Value == "" {
		return r
	}
	seen := r.Clone(r.Context())
	seen.Header.Set("Authorization", "Bearer "+cookie.Value)
	return seen
}

// forStrangers reports a path of the root that everyone may read. An expired session does not count as a failed login
// there.
func (a *api) forStrangers(r *http.Request) bool {
	path := strings.TrimPrefix(r.URL.Path, a.prefix)
	return path == loginPath || strings.HasPrefix(path, "/assets/")
}

const loginPath = "/login"

// refused reports a request with wrong credentials, or with a session that was refused before.
func (a *api) refused(r *http.Request) bool {
	said := a.withSession(r)
	if said.Header.Get("Authorization") == "" {
		return false
	}
	return !a.forStrangers(r) || r.Header.Get("Authorization") != "" || a.logins.refused(said)
}

// forRoot reports whether the root serves a request. Programs should get problems, not pages: so no route has its path,
// it does not look like the API's, it does not ask for JSON, and it is a read or comes from a browser.
func (a *api) forRoot(r *http.Request) bool {
	path := strings.TrimPrefix(r.URL.Path, a.prefix)
	if a.root == nil || a.mounts[path] != nil || isAPIPath(path) || asksJSON(r) || !readsOrFromBrowser(r) {
		return false
	}
	found := false
	http.StripPrefix(a.prefix, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		handler, pattern := a.mux.Handler(r)
		said := &statusOnly{header: http.Header{}}
		if pattern == "" {
			handler.ServeHTTP(said, r)
		}
		found = said.status == http.StatusNotFound
	})).ServeHTTP(&statusOnly{header: http.Header{}}, r)
	return found
}

// isAPIPath reports whether a path belongs to the server, even if it has no route.
func isAPIPath(path string) bool {
	path = strings.TrimPrefix(path, "/")
	first, _, _ := strings.Cut(path, "/")
	return slices.Contains(fixedPlaces, first)
}

var fixedPlaces = []string{"v1", "events", "mcp", "metrics", "docs", "openapi.json", "healthz", "readyz"}

// asksJSON reports a caller that wants or sends JSON. Browsers ask for HTML, and forms are not JSON.
func asksJSON(r *http.Request) bool {
	json := func(header string) bool { return strings.Contains(strings.ToLower(r.Header.Get(header)), "json") }
	return json("Content-Type") || json("Accept") && !strings.Contains(r.Header.Get("Accept"), "text/html")
}

// serveRoot passes a request to the root. Other sites may link here, but not send anything.
func (a *api) serveRoot(w http.ResponseWriter, r *http.Request, caller *Access) {
	visit := Visit{
		Known:   caller != nil,
		Refused: caller == nil && a.refused(r),
		Prefix:  a.prefix,
	}
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if visit.Refused && reads && strings.TrimPrefix(r.URL.Path, a.prefix) == loginPath {
		http.SetCookie(w, NewSession(r, a.prefix, ""))
	}
	if caller != nil {
		visit.Access = *caller
		visit.HidePayloads = a.hides(caller)
		visit.caller = nameOfCaller(caller, r)
	}
	ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), visitKey{}, visit), MaxTimeout)
	defer cancel()
	if visit.HidePayloads {
		ctx = blind.In(ctx)
	}
	http.StripPrefix(a.prefix, a.root).ServeHTTP(w, r.WithContext(ctx))
}

// linked reports that a person followed a link: a read of a whole page.
func linked(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get("Origin") == "" &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// readsOrFromBrowser reports a read, or a request with the origin headers that every browser sends with changes.
func readsOrFromBrowser(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead ||
		r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
}
