package server

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/runlane/runlane-go/internal/blind"
)

// Visit is what the handler of [Options].Root knows of a request that it gets.
type Visit struct {
	Access
	// Known is false when the request does not say who sends it, or says it wrongly: a page to log in is all that it
	// may get. Access is then the zero value.
	Known bool
	// Refused says that the request came with a token that is not known. For /login it is the one of a session that was
	// refused before.
	Refused bool
	// Prefix is that of the Options.
	Prefix string
	// HidePayloads says that the visitor may see no payload, output or result of a step: by the Options, or for want of
	// [ScopePayloads].
	HidePayloads bool

	caller string
}

// Has reports that the visitor has a scope.
func (v *Visit) Has(scope Scope) bool { return v.has(scope) }

// Caller names the visitor for a log: the actor, or the address where the actor has no name.
func (v *Visit) Caller() string { return v.caller }

type visitKey struct{}

// VisitOf is the visit of a request that [Options].Root gets. Of another request it is the zero value.
func VisitOf(ctx context.Context) Visit {
	visit, _ := ctx.Value(visitKey{}).(Visit)
	return visit
}

// sessionCookie holds a token for a browser, which has no way to send a header.
const sessionCookie = "runlane_token"

// NewSession is a cookie with which a browser sends a token along; "" ends the session. No script can read it, and no
// page of another site can send something with it. It holds for prefix and below. A server takes it where it has
// [Options].Root, as it takes "Authorization: Bearer TOKEN", but not for the Root's /login and what is below /assets/;
// there a session that was refused ends.
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

// withSession moves the token of a session to where Access looks for it.
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

// forStrangers reports the paths of the root that are the same for everyone: a session that has ended is no try there.
func (a *api) forStrangers(r *http.Request) bool {
	path := strings.TrimPrefix(r.URL.Path, a.prefix)
	return path == loginPath || strings.HasPrefix(path, "/assets/")
}

// loginPath is where the root lets people log in.
const loginPath = "/login"

// refused reports a request that says wrongly who sends it, or has a session that was refused before.
func (a *api) refused(r *http.Request) bool {
	said := a.withSession(r)
	if said.Header.Get("Authorization") == "" {
		return false
	}
	return !a.forStrangers(r) || r.Header.Get("Authorization") != "" || a.logins.refused(said)
}

// forRoot reports a request for a path that no route of the table has. A program gets problems, not pages: what asks
// for JSON is none of the root's, and neither is what looks like a path of the API, nor a change that no browser sends.
func (a *api) forRoot(r *http.Request) bool {
	path := strings.TrimPrefix(r.URL.Path, a.prefix)
	if a.root == nil || a.mounts[path] != nil || ofAPI(path) || asksJSON(r) || !says(r) {
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

// ofAPI reports the paths of the server, and what is below them, whether there is a route or not.
func ofAPI(path string) bool {
	path = strings.TrimPrefix(path, "/")
	first, _, _ := strings.Cut(path, "/")
	return slices.Contains(fixedPlaces, first)
}

var fixedPlaces = []string{"v1", "events", "mcp", "metrics", "docs", "openapi.json", "healthz", "readyz"}

// asksJSON reports a caller who wants JSON, or sends it. Browsers ask for pages, and forms are no JSON.
func asksJSON(r *http.Request) bool {
	json := func(header string) bool { return strings.Contains(strings.ToLower(r.Header.Get(header)), "json") }
	return json("Content-Type") || json("Accept") && !strings.Contains(r.Header.Get("Accept"), "text/html")
}

// visited hands a request to the root. Pages of other sites may lead here, which is how links work, but send nothing.
func (a *api) visited(w http.ResponseWriter, r *http.Request, caller *Access) {
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

// linked reports that a person followed a link: a request that reads, for a whole page.
func linked(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.Header.Get("Origin") == "" &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// says reports that a browser said from where something is sent. Every browser says so of what is no reading.
func says(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead ||
		r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
}
