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

// Access is a caller. The actor is kept with the events that the caller causes.
type Access struct {
	// Actor is who calls. The zero value means runlane.OperatorActor.
	Actor runlane.Actor
	// Environments that the caller may reach. nil means the runtime's.
	Environments []runlane.Environment
	// Scopes are what the caller may do.
	Scopes []Scope
}

// Scope is a kind of request. No scope includes another one.
type Scope string

// The scopes.
const (
	// ScopeRead reads what there is. Of runs it reads what happens to them, and not what they work on: that takes
	// ScopePayloads, too.
	ScopeRead Scope = "read"
	// ScopePayloads shows payloads and outputs of runs, and results of their steps, to who may read or change runs. A
	// worker gets the payload of its claim without it.
	ScopePayloads Scope = "payloads"
	// ScopeTrigger makes runs.
	ScopeTrigger Scope = "trigger"
	// ScopeWork executes runs.
	ScopeWork Scope = "work"
	// ScopeOperate changes runs, schedules, wakeups and keys, and removes runs.
	ScopeOperate Scope = "operate"
)

// Scopes lists all there are.
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

// Token is a bearer token as it may be stored: not the token itself, but its hash, and whose it is.
type Token struct {
	// Name is whose token it is; it becomes the actor of what is done with it. It is required, and the rules of ids
	// hold for it.
	Name string `json:"name"`
	// Hash is [HashToken] of the token.
	Hash string `json:"hash"`
	// Scopes are what it allows, at least one.
	Scopes []Scope `json:"scopes"`
	// Environments are where it holds. nil means everywhere.
	Environments []runlane.Environment `json:"environments,omitzero"`
}

// HashToken is the SHA-256 of a token, in hex. That is enough for tokens that are long and random, as those of "runlane
// token" are; words that people choose can be found from it.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// TokenAccess makes an Access for requests with one of the tokens, in the header "Authorization: Bearer TOKEN". Tokens
// that cannot be are runlane.ErrConfigurationInvalid, each problem named.
func TokenAccess(tokens ...Token) (func(*http.Request) (Access, error), error) {
	var faults []error
	hashes := make([][]byte, len(tokens))
	for i, token := range tokens {
		hash, err := hex.DecodeString(token.Hash)
		if err != nil || len(hash) != sha256.Size {
			faults = append(faults, invalid(
				fmt.Sprintf("the hash of token %q is no SHA-256 in hex", token.Name),
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
		for i := range hashes { // all of them, so that the time does not tell which one was near
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

// Proxy is a reverse proxy that knows who calls, and says so in a header.
type Proxy struct {
	// From are the addresses of the proxy. A request from another one is not authenticated, whatever its header says.
	From []netip.Prefix
	// Header has the name of the caller, which becomes the actor. The proxy has to remove it from what callers send.
	Header string
	// Scopes are what its callers may do.
	Scopes []Scope
}

// ProxyAccess makes an Access for requests that a proxy has authenticated. A proxy without addresses, header or scopes
// is runlane.ErrConfigurationInvalid.
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

// peerOf is the address from which a request came, without its port.
func peerOf(r *http.Request) (netip.Addr, bool) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, false
	}
	return peer.Addr().Unmap().WithZone(""), true
}

// nameOfCaller is who a line of the log names: the actor, or the address where the actor has no name.
func nameOfCaller(caller *Access, r *http.Request) string {
	if peer, ok := peerOf(r); ok && caller.Actor.ID == "" {
		return peer.String()
	}
	return cmp.Or(caller.Actor.ID, r.RemoteAddr)
}

// proxied are headers that a proxy adds: what comes with one is not from this machine, though its connection is.
var proxied = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"}

// onThisMachine allows everything to callers over loopback.
func onThisMachine(r *http.Request) (Access, error) {
	peer, ok := peerOf(r)
	if !ok || !peer.IsLoopback() {
		return Access{}, ErrForbidden
	}
	for _, header := range proxied {
		if len(r.Header.Values(header)) > 0 {
			return Access{}, ErrForbidden
		}
	}
	return Access{Actor: runlane.OperatorActor, Scopes: Scopes()}, nil
}

// loopbackNames are the hosts of requests to this machine.
var loopbackNames = []string{"localhost", "127.0.0.1", "::1"}

// hostOf is the host of a request without its port.
func hostOf(r *http.Request) string {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.Trim(strings.TrimSuffix(host, "."), "[]"))
}
