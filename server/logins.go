package server

import (
	"crypto/sha256"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// A caller whose logins fail may try loginBurst times, then once each loginEvery. Only loginAddresses are remembered:
// when there are more, what is over is forgotten, and then everything.
const (
	loginBurst     = 10
	loginEvery     = 6 * time.Second
	loginAddresses = 4096
	// loginTokens is how many callers that were let in are remembered, by a sum each, and loginRefused how many of an
	// address that were not.
	loginTokens  = 4096
	loginRefused = 16
)

// logins counts failed logins by address. An IPv6 network of 64 bits counts as one address, since one customer has it.
type logins struct {
	now func() time.Time

	mu      sync.Mutex
	failing map[netip.Prefix]*failing
	known   map[said]bool // what was let in before: it is no guess
}

// failing is what failed from one address.
type failing struct {
	until   time.Time // when it will be forgiven
	refused []said    // the last ones: the same again is no other guess, such as a page that reads itself again
}

// said is a sum of what a request says of its caller.
type said [sha256.Size]byte

func newLogins(now func() time.Time) *logins {
	return &logins{now: now, failing: map[netip.Prefix]*failing{}, known: map[said]bool{}}
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

// locked reports whether the address has failed too often. A token that was let in before is not locked out by others
// of its address, such as those of one proxy, or one that was withdrawn.
func (l *logins) locked(r *http.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := l.failing[loginKey(r)]
	return from != nil && !l.known[saidBy(r)] && from.until.Sub(l.now()) > (loginBurst-1)*loginEvery
}

// refused reports that what the request says was refused before, from its address.
func (l *logins) refused(r *http.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	from := l.failing[loginKey(r)]
	return from != nil && slices.Contains(from.refused, saidBy(r))
}

// succeeded remembers what was let in.
func (l *logins) succeeded(r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.known) >= loginTokens {
		clear(l.known)
	}
	l.known[saidBy(r)] = true
}

func saidBy(r *http.Request) said {
	return sha256.Sum256([]byte(r.Header.Get("Authorization")))
}

// failed counts a failed login, once for each token of an address.
func (l *logins) failed(r *http.Request) {
	now, by, key := l.now(), saidBy(r), loginKey(r)
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

// forget makes room for another address.
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
