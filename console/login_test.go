package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/server"
)

// poll reads a page as a page that is open does, and follows to the form for logging in.
func (s *site) poll(token string) {
	s.t.Helper()
	s.browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	cookie := map[string]string{"Cookie": "runlane_token=" + token, "Sec-Fetch-Site": "same-origin"}
	s.send(http.StatusSeeOther, http.MethodGet, "/runs", nil, cookie)
	s.send(http.StatusOK, http.MethodGet, "/login?to=/runs", nil, cookie)
	s.send(http.StatusOK, http.MethodGet, "/assets/console.css", nil, cookie)
}

// Pages that are open in a browser with a token that was withdrawn keep out no other of the same address.
func TestLogin_OpenPagesWithAnOldToken_KeepOutNoOther(t *testing.T) {
	t.Parallel()
	access, words := tokens(t)
	s := newSite(t, &server.Options{Access: access})
	for range 20 {
		s.poll("withdrawn")
		s.poll("withdrawn-too")
	}
	bearer := func(token string) map[string]string { return map[string]string{"Authorization": "Bearer " + token} }
	s.send(http.StatusOK, http.MethodGet, "/v1/runs", nil, bearer(words["chief"]))
	for i := range 8 {
		s.send(http.StatusUnauthorized, http.MethodGet, "/v1/runs", nil, bearer(fmt.Sprint("guess", i)))
	}
	s.send(http.StatusTooManyRequests, http.MethodGet, "/v1/runs", nil, bearer(words["reader"]))
	s.send(http.StatusOK, http.MethodGet, "/v1/runs", nil, bearer(words["chief"])) // let in before
}

// A browser forgets a token that is refused, with the page that says so.
func TestLogin_ARefusedToken_IsForgotten(t *testing.T) {
	t.Parallel()
	access, words := tokens(t)
	s := newSite(t, &server.Options{Access: access, Prefix: "/runlane"})
	at, err := url.Parse(s.url + "/")
	if err != nil {
		t.Fatal(err)
	}
	s.has(s.post(http.StatusOK, "/login", url.Values{"token": {"wrong"}, "to": {"/runs"}}), "not known here")
	if kept := s.browser.Jar.Cookies(at); len(kept) > 0 {
		t.Errorf("the browser keeps %v", kept)
	}
	s.post(http.StatusOK, "/login", url.Values{"token": {words["chief"]}, "to": {"/runs"}})
	s.get(http.StatusOK, "/login")
	if kept := s.browser.Jar.Cookies(at); len(kept) != 1 || kept[0].Value != words["chief"] {
		t.Errorf("the browser keeps %v", kept)
	}
}

// Nothing that was sent along makes a login lead to another site.
func TestLogin_LeadsToAPathOfTheConsole(t *testing.T) {
	t.Parallel()
	s := newSite(t, &server.Options{Prefix: "/runlane"})
	s.browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for to, want := range map[string]string{
		"/runs?status=failed&task=a%20b": "/runs?status=failed&task=a%20b",
		"/runs/a%2Fb":                    "/runs/a%2Fb",
		`/\evil.example/`:                "/%5Cevil.example/",
		"":                               "/",
		"runs":                           "/",
		"//evil.example/":                "/",
		"///evil.example/":               "/",
		"https://evil.example/":          "/",
		"https:/evil.example/":           "/",
		"javascript:alert(1)":            "/",
		"/\t/evil.example/":              "/",
		"\t//evil.example/":              "/",
		"/\x7f/evil.example/":            "/",
		"/\u0085/evil.example/":          "/",
		"/\r\n/evil.example/":            "/",
	} {
		s.post(http.StatusSeeOther, "/login", url.Values{"token": {"any"}, "to": {to}})
		if at := s.header.Get("Location"); at != "/runlane"+want {
			t.Errorf("%q leads to %q, want %q", to, at, "/runlane"+want)
		}
	}
}

// What another site makes a browser send changes nothing; a link to a page works.
func TestForeignPages_ReadAndChangeNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	cancel := "/runs/" + string(s.Delayed) + "/cancel"
	for _, headers := range []map[string]string{
		{"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "same-site"},
	} {
		s.send(http.StatusForbidden, http.MethodPost, cancel, nil, headers)
	}
	s.send(http.StatusNotFound, http.MethodPost, cancel, nil, nil) // from no browser: a program, which has the API
	if got := s.status(s.Delayed); got != runlane.StatusScheduled {
		t.Fatal(got)
	}
	s.send(http.StatusForbidden, http.MethodGet, "/runs", nil, map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"})
	link := map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
	s.send(http.StatusOK, http.MethodGet, "/runs", nil, link)
	s.send(http.StatusForbidden, http.MethodGet, "/v1/runs", nil, link) // the API has no pages
	link["Sec-Fetch-Dest"] = "iframe"
	s.send(http.StatusForbidden, http.MethodGet, "/runs", nil, link)
}
