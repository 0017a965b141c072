package server

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
)

// Access describes a caller. Its actor is kept with the events that the caller causes.
type Access struct {
	// Actor is the caller. The zero value means runlane.OperatorActor.
	Actor runlane.Actor
	// Environments the caller may reach. nil means the runtime's.
	Environments []runlane.Environment
	// Scopes the caller has.
	Scopes []Scope
}

// Scope permits a kind of request. No scope includes another one.
type Scope string

const (
	// ScopeRead reads everything except the data of runs: that also takes ScopePayloads.
	ScopeRead Scope = "read"
	// ScopePayloads lets callers read payloads, outputs and results of steps. Workers get the payload of a claim
	// without it.
	ScopePayloads Scope = "payloads"
	// ScopeTrigger creates runs.
	ScopeTrigger Scope = "trigger"
	// ScopeWork executes runs.
	ScopeWork Scope = "work"
	// ScopeOperate changes runs, schedules, wakeups and keys, and removes runs.
	ScopeOperate Scope = "operate"
)

// Scopes lists all scopes.
func Scopes() []Scope {
	return []Scope{ScopeRead, ScopePayloads, ScopeTrigger, ScopeWork, ScopeOperate}
}

// Errors of [Options].Access. Any other error is answered with 500, and logged.
var (
	// ErrUnauthenticated is answered with 401.
	ErrUnauthenticated = errors.New("server: not authenticated")
	// ErrForbidden is answered with 403.
	ErrForbidden = errors.New("server: forbidden")
)

// Token is a bearer token in storable form: it holds a hash, not the token itself.
type Token struct {
	// Name becomes the actor of requests with this token. Required; the rules of ids apply.
	Name string `json:"name"`
	// Hash is [HashToken] of the token.
	Hash string `json:"hash"`
	// Scopes the token grants, at least one.
	Scopes []Scope `json:"scopes"`
	// Environments in which the token is valid. nil means all.
	Environments []runlane.Environment `json:"environments,omitzero"`
}

// HashToken returns the SHA-256 of a token in hex. This is safe for long random tokens, like from "runlane token",
// but not for passwords.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// TokenAccess returns an Access function for requests with the header "Authorization: Bearer TOKEN". Invalid tokens are
// runlane.ErrConfigurationInvalid, which names each problem.
func TokenAccess(tokens ...Token) (func(*http.Request) (Access, error), error) {
	var faults []error
	hashes := make([][]byte, len(tokens))
	for i, token := range tokens {
		hash, err := hex.DecodeString(token.Hash)
		if err != nil || len(hash) != sha256.Size {
			faults = append(faults, invalid(
				fmt.Sprintf("the hash of token %q is not a SHA-256 in hex", token.Name),
				"make it with HashToken, or with \"runlane token\""),
			)
		}
		hashes[i] = hash
		if err := runlane.RunID(token.Name).Validate(); err != nil { // the rules of ids hold for actors too
			faults = append(faults, invalid(
				fmt.Sprintf("%q cannot name a token", token.Name),
				"use printable text without ':'"),
			)
		}
		if len(token.Scopes) == 0 {
			faults = append(faults, invalid(
				fmt.Sprintf("token %q has no scope", token.Name),
				"give it one of "+scopeWords()),
			)
		}
		for _, scope := range token.Scopes {
			if !slices.Contains(Scopes(), scope) {
				faults = append(faults, invalid(
					fmt.Sprintf("token %q has a scope %q", token.Name, scope),
					"scopes are "+scopeWords()),
				)
			}
		}
	}
	if len(tokens) == 0 {
		faults = append(faults, invalid("there are no tokens", "make one with \"runlane token\""))
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return func(r *http.Request) (Access, error) {
		scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return Access{}, ErrUnauthenticated
		}
		hash := sha256.Sum256([]byte(strings.TrimSpace(given)))
		found := -1
		for i := range hashes { // all of them, so that timing does not reveal a near match
			if subtle.ConstantTimeCompare(hash[:], hashes[i]) == 1 {
				found = i
			}
		}
		if found < 0 {
			return Access{}, ErrUnauthenticated
		}
		return Access{
			Actor:        runlane.Actor{Type: runlane.ActorOperator, ID: tokens[found].Name},
			Environments: tokens[found].Environments,
			Scopes:       tokens[found].Scopes,
		}, nil
	}, nil
}

func scopeWords() string {
	var words []string
	for _, scope := range Scopes() {
		words = append(words, string(scope))
	}
	return strings.Join(words, ", ")
}

// Proxy is a reverse proxy that authenticates callers and names them in a header.
type Proxy struct {
	// From holds the proxy's addresses. Requests from elsewhere are not authenticated.
	From []netip.Prefix
	// Header carries the name of the caller, which becomes the actor. The proxy must remove it from incoming requests.
	Header string
	// Scopes of the proxy's callers.
	Scopes []Scope
}

// ProxyAccess returns an Access function for requests through the proxy. A missing field is
// runlane.ErrConfigurationInvalid.
func ProxyAccess(proxy Proxy) (func(*http.Request) (Access, error), error) {
	if len(proxy.From) == 0 || proxy.Header == "" || len(proxy.Scopes) == 0 {
		return nil, invalid(
			"a proxy needs addresses, a header and scopes",
			"name the header that only the proxy can set",
		)
	}
	return func(r *http.Request) (Access, error) {
		peer, ok := peerOf(r)
		inside := func(p netip.Prefix) bool { return p.Contains(peer) }
		names := r.Header.Values(proxy.Header)
		if !ok || !slices.ContainsFunc(proxy.From, inside) || len(names) != 1 {
			return Access{}, ErrUnauthenticated
		}
		if runlane.RunID(names[0]).Validate() != nil {
			return Access{}, ErrUnauthenticated
		}
		return Access{
			Actor:  runlane.Actor{Type: runlane.ActorOperator, ID: names[0]},
			Scopes: proxy.Scopes,
		}, nil
	}, nil
}

func peerOf(r *http.Request) (netip.Addr, bool) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, false
	}
	return peer.Addr().Unmap().WithZone(""), true
}

// nameOfCaller names the caller for the log: the actor, or the address if the actor has no ID.
func nameOfCaller(caller *Access, r *http.Request) string {
	if peer, ok := peerOf(r); ok && caller.Actor.ID == "" {
		return peer.String()
	}
	return cmp.Or(caller.Actor.ID, r.RemoteAddr)
}

// proxyHeaders lists headers that proxies add. A request with one of them came from another machine, even over loopback.
var proxyHeaders = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"}

// onThisMachine allows everything to callers over loopback.
func onThisMachine(r *http.Request) (Access, error) {
	peer, ok := peerOf(r)
	if !ok || !peer.IsLoopback() {
		return Access{}, ErrForbidden
	}
	for _, header := range proxyHeaders {
		if len(r.Header.Values(header)) > 0 {
			return Access{}, ErrForbidden
		}
	}
	return Access{Actor: runlane.OperatorActor, Scopes: Scopes()}, nil
}

var loopbackNames = []string{"localhost", "127.0.0.1", "::1"}

// hostOf returns the host of a request without its port.
func hostOf(r *http.Request) string {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.Trim(strings.TrimSuffix(host, "."), "[]"))
}
