package server

import (
	"crypto/sha256"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// After failed logins a caller has loginBurst tries, then one each loginEvery. At most loginAddresses are remembered.
// When there are more, expired ones are forgotten; if that is not enough, all.
const (
	loginBurst     = 10
	loginEvery     = 6 * time.Second
	loginAddresses = 4096
	// loginTokens limits the remembered credentials that were admitted (by hash), loginRefused those refused from one
	// address.
	loginTokens  = 4096
	loginRefused = 16
)

// logins counts failed logins by address. An IPv6 /64 counts as one address, since one customer owns it.
type logins struct {
	now func() time.Time

	mu      sync.Mutex
	failing map[netip.Prefix]*failing
	known   map[credential]bool // credentials admitted before, so not guesses
}

type failing struct {
	until   time.Time    // when all are forgiven
	refused []credential // the last ones; a repetition, such as a reloaded page, is not a new guess
}

type credential [sha256.Size]byte

func newLogins(now func() time.Time) *logins {
	return &logins{now: now, failing: map[netip.Prefix]*failing{}, known: map[credential]bool{}}
}

func loginKey(r *http.Request) netip.Prefix {
	peer, ok := peerOf(r)
	if !ok {
		return netip.Prefix{}
	}
	bits := 64
	if peer.Is4() {
		bits = 32
	}
	prefix, _ := peer.Prefix(bits) // both are in range
	return prefix
}

// locked reports whether the address has failed too often. A token that was admitted before is never locked out by
// other callers of its address.
func (l *logins) locked(r *http.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := l.failing[loginKey(r)]
	return from != nil && !l.known[credentialOf(r)] && from.until.Sub(l.now()) > (loginBurst-1)*loginEvery
}

// refused reports whether the same credentials from the same address were refused before.
func (l *logins) refused(r *http.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := l.failing[loginKey(r)]
	return from != nil && slices.Contains(from.refused, credentialOf(r))
}

func (l *logins) succeeded(r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.known) >= loginTokens {
		clear(l.known)
	}
	l.known[credentialOf(r)] = true
}

func credentialOf(r *http.Request) credential {
	return sha256.Sum256([]byte(r.Header.Get("Authorization")))
}

// failed counts a failed login, once for each token and address.
func (l *logins) failed(r *http.Request) {
	now, by, key := l.now(), credentialOf(r), loginKey(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, by)
	from := l.failing[key]
	if from == nil {
		l.forget(now)
		from = &failing{}
		l.failing[key] = from
	}
	if slices.Contains(from.refused, by) {
		return
	}
	if from.refused = append(from.refused, by); len(from.refused) > loginRefused {
		from.refused = slices.Delete(from.refused, 0, 1)
	}
	if from.until.Before(now) {
		from.until = now
	}
	from.until = from.until.Add(loginEvery)
}

func (l *logins) forget(now time.Time) {
	if len(l.failing) < loginAddresses {
		return
	}
	for key, from := range l.failing {
		if !from.until.After(now) {
			delete(l.failing, key)
		}
	}
	if len(l.failing) >= loginAddresses {
		clear(l.failing)
	}
}
