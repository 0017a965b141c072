package server

import (
	"context"
	"net/http"
	"strings"
)

// Visit is what the handler of [Options].Root knows of a request that it gets.
type Visit struct {
	Access
	// Known is false when the request does not say who sends it, or says it wrongly: a page to log in is all that it
	// may get. Access is then the zero value.
	Known bool
	// Refused says that the request came with a token that is not known.
	Refused bool
	// Prefix and HidePayloads are those of the Options.
	Prefix       string
	HidePayloads bool
}

// Has reports that the visitor has a scope.
func (v *Visit) Has(scope Scope) bool { return v.has(scope) }

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
// [Options].Root, as it takes "Authorization: Bearer TOKEN".
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

// forRoot reports a request for a path that no route of the table has.
func (a *api) forRoot(r *http.Request) bool {
	if a.root == nil || a.mounts[strings.TrimPrefix(r.URL.Path, a.prefix)] != nil {
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

// visited hands a request to the root. Pages of other sites may lead here, which is how links work, but send nothing.
func (a *api) visited(w http.ResponseWriter, r *http.Request, caller *Access) {
	visit := Visit{
		Known:        caller != nil,
		Refused:      caller == nil && a.withSession(r).Header.Get("Authorization") != "",
		Prefix:       a.prefix,
		HidePayloads: a.hidden,
	}
	if caller != nil {
		visit.Access = *caller
	}
	http.StripPrefix(a.prefix, a.root).ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitKey{}, visit)))
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
