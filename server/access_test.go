package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/server"
)

// Without tokens, callers on this machine may do everything, and others nothing: not over the network, not through a
// proxy, and no page of another site, whatever name it gave this address.
func TestAccess_Default_IsForThisMachineOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, c := range []struct {
		name    string
		headers []string
		status  int
		code    string
	}{
		{"this machine", nil, 200, ""},
		{"its other name", []string{"Host: 127.0.0.1:80"}, 200, ""},
		{"IPv6", []string{"Host: [::1]:80", "Peer: [::1]:40000"}, 200, ""},
		{"IPv4 in IPv6", []string{"Peer: [::ffff:127.0.0.1]:40000"}, 200, ""},
		{"a page of this origin", []string{"Origin: http://localhost:8080", "Sec-Fetch-Site: same-origin"}, 200, ""},
		{"the network", []string{"Peer: 192.0.2.1:40000"}, 403, "forbidden"},
		{"a connection without an address", []string{"Peer: @"}, 403, "forbidden"},
		{"a proxy on this machine", []string{"X-Forwarded-For: 192.0.2.1"}, 403, "forbidden"},
		{"a proxy of another kind", []string{"Forwarded: for=192.0.2.1"}, 403, "forbidden"},
		{"a name that leads here", []string{"Host: evil.example:8080"}, 421, "wrong_host"},
		{"a name with a dot", []string{"Host: localhost.evil.example"}, 421, "wrong_host"},
		{"a page of another site", []string{"Origin: https://evil.example"}, 403, "foreign_origin"},
		{"a page of another port", []string{"Origin: http://localhost:3000"}, 403, "foreign_origin"},
		{"a page without an origin", []string{"Origin: null"}, 403, "foreign_origin"},
		{"a picture of another site", []string{"Sec-Fetch-Site: cross-site"}, 403, "foreign_origin"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := w.ask(t, "GET", "/v1/runs", "", c.headers...)
			got.want(t, c.status, c.code)
			for name := range got.header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("an answer has %s", name)
				}
			}
		})
	}
}

func TestAccess_Tokens(t *testing.T) {
	t.Parallel()
	access, err := server.TokenAccess(
		server.Token{Name: "ci", Hash: server.HashToken("one"), Scopes: []server.Scope{server.ScopeRead, server.ScopeTrigger}},
		server.Token{Name: "ops", Hash: server.HashToken("two"), Scopes: server.Scopes(), Environments: []runlane.Environment{"default"}},
		server.Token{Name: "other", Hash: server.HashToken("three"), Scopes: server.Scopes(), Environments: []runlane.Environment{"production"}},
		server.Token{Name: "nowhere", Hash: server.HashToken("none"), Scopes: server.Scopes(), Environments: []runlane.Environment{}},
	)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, &server.Options{Access: access})
	w.trigger(t, welcome, "waits", false)
	remote := "Peer: 192.0.2.9:1"
	none := w.ask(t, "GET", "/v1/runs", "", remote)
	none.want(t, 401, `"code":"unauthenticated"`)
	if none.header.Get("WWW-Authenticate") == "" {
		t.Error("401 does not say how to log in")
	}
	for given, status := range map[string]int{
		"Bearer one": 200, "bearer  one": 200, "Bearer two": 200, "Bearer three": 403, "Bearer none": 403, "Bearer four": 401, "Basic one": 401, "Bearer": 401,
		"Bearer " + server.HashToken("one"): 401,
	} {
		w.ask(t, "GET", "/v1/runs", "", remote, "Authorization: "+given).want(t, status)
	}
	cancel := func(token string) *answer {
		return w.ask(t, "POST", "/v1/runs/waits/cancel", `{"reason":"late"}`, remote, "Authorization: Bearer "+token)
	}
	cancel("one").want(t, 403, "the caller has no scope operate")
	cancel("two").want(t, 200)
	// Who did it is in the event and in the audit line.
	w.ask(t, "GET", "/v1/runs/waits/events", "", remote, "Authorization: Bearer one").
		want(t, 200, `"actor":{"type":"operator","id":"ops"}`, `"reason":"late"`)
	for _, part := range []string{`"msg":"runlane: a change by HTTP","actor":"ops","operation":"cancelRun","run_id":"waits","code":"done"`} {
		if !strings.Contains(w.log.String(), part) {
			t.Errorf("the log has no %s:\n%s", part, w.log)
		}
	}
	if strings.Contains(w.log.String(), "two") {
		t.Error("the log has a token")
	}
}

func TestAccess_TokensThatCannotBe(t *testing.T) {
	t.Parallel()
	read := []server.Scope{server.ScopeRead}
	for name, token := range map[string]server.Token{
		"the token itself": {Name: "a", Hash: "secret", Scopes: read},
		"no name":          {Hash: server.HashToken("x"), Scopes: read},
		"a name with ':'":  {Name: "a:b", Hash: server.HashToken("x"), Scopes: read},
		"no scope":         {Name: "a", Hash: server.HashToken("x")},
		"another scope":    {Name: "a", Hash: server.HashToken("x"), Scopes: []server.Scope{"admin"}},
	} {
		if _, err := server.TokenAccess(token); runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := server.TokenAccess(); runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
		t.Errorf("no tokens: %v", err)
	}
}

func TestAccess_Proxy(t *testing.T) {
	t.Parallel()
	access, err := server.ProxyAccess(server.Proxy{
		From:   []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Header: "X-User",
		Scopes: []server.Scope{server.ScopeRead},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, &server.Options{Access: access, Hosts: []string{"runs.example"}})
	host := "Host: runs.example"
	w.ask(t, "GET", "/v1/runs", "", host, "Peer: 10.1.2.3:5", "X-User: ada").want(t, 200)
	w.ask(t, "POST", "/v1/tick", "", host, "Peer: 10.1.2.3:5", "X-User: ada").want(t, 403)
	w.ask(t, "GET", "/v1/runs", "", "Host: other.example", "Peer: 10.1.2.3:5", "X-User: ada").want(t, 421)
	for _, headers := range [][]string{
		{"Peer: 192.0.2.1:5", "X-User: ada"}, {"Peer: 10.1.2.3:5"}, {"Peer: 10.1.2.3:5", "X-User: ada", "X-User: bob"}, {"Peer: 10.1.2.3:5", "X-User: a:b"},
	} {
		w.ask(t, "GET", "/v1/runs", "", append(headers, host)...).want(t, 401)
	}
	if _, err := server.ProxyAccess(server.Proxy{Header: "X-User"}); runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
		t.Errorf("a proxy without addresses: %v", err)
	}
}

// An address whose logins fail has to wait; others do not, and neither do callers without a token.
func TestAccess_FailedLogins_AreLimitedByAddress(t *testing.T) {
	t.Parallel()
	access, err := server.TokenAccess(server.Token{Name: "ci", Hash: server.HashToken("right"), Scopes: server.Scopes()})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, &server.Options{Access: access})
	from := func(peer, token string) *answer {
		return w.ask(t, "GET", "/v1/runs", "", "Peer: "+peer, "Authorization: Bearer "+token)
	}
	for i := range server.LoginBurst {
		from("192.0.2.1:1", fmt.Sprint("wrong", i)).want(t, 401)
		from("[2001:db8::"+fmt.Sprint(i+1)+"]:1", fmt.Sprint("wrong", i)).want(t, 401) // one customer has many addresses
	}
	locked := from("192.0.2.1:2", "right")
	locked.want(t, 429, `"code":"too_many_logins"`)
	if locked.header.Get("Retry-After") != "6" {
		t.Errorf("Retry-After is %q", locked.header.Get("Retry-After"))
	}
	from("[2001:db8::ffff]:1", "right").want(t, 429)
	from("[2001:db8:0:1::1]:1", "right").want(t, 200)
	from("192.0.2.1:2", "right").want(t, 200) // let in from elsewhere meanwhile: it is no guess
	from("192.0.2.1:2", "another").want(t, 429)
	from("192.0.2.2:1", "right").want(t, 200)
	w.ask(t, "GET", "/v1/runs", "", "Peer: 192.0.2.1:1").want(t, 401)
	for i := range 5000 { // more addresses than are remembered cost nothing but the memory of the others
		from(fmt.Sprintf("198.51.%d.%d:1", i/256, i%256), "wrong").want(t, 401)
	}
}

func TestAccess_OtherErrors_AreFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &server.Options{Access: func(r *http.Request) (server.Access, error) {
		if r.Header.Get("Panic") != "" {
			panic("of the application")
		}
		return server.Access{}, errors.New("the directory does not answer: secret")
	}})
	for _, header := range []string{"A: b", "Panic: yes"} {
		got := w.ask(t, "GET", "/v1/runs", "", header)
		got.want(t, 500, `"code":"internal_error"`)
		if strings.Contains(got.text, "secret") {
			t.Error("an answer has the text of an error")
		}
	}
	if !strings.Contains(w.log.String(), "the directory does not answer") || !strings.Contains(w.log.String(), "a request panicked") {
		t.Errorf("the log: %s", w.log)
	}
}

// A token for no environment, written down and read again, is one for no environment: none at all would mean everywhere.
func TestToken_ForNoEnvironment_StaysSo(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(server.Token{Name: "a", Environments: []runlane.Environment{}})
	if err != nil {
		t.Fatal(err)
	}
	var read server.Token
	if err := json.Unmarshal(text, &read); err != nil || read.Environments == nil {
		t.Errorf("%s: %v", text, err)
	}
}
