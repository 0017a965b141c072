package server

import (
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// A caller whose logins fail may try loginBurst times, then once each loginEvery. Only loginAddresses are remembered:
// when there are more, what is over is forgotten, and then everything.
const (
	loginBurst     = 10
	loginEvery     = 6 * time.Second
	loginAddresses = 4096
)

// logins counts failed logins by address. An IPv6 network of 64 bits counts as one address, since one customer has it.
type logins struct {
	now func() time.Time

	mu    sync.Mutex
	until map[netip.Prefix]time.Time // when the failures of an address will be forgiven
}

func newLogins(now func() time.Time) *logins {
	return &logins{now: now, until: map[netip.Prefix]time.Time{}}
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

// locked reports whether the address has failed too often.
func (l *logins) locked(r *http.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until[loginKey(r)].Sub(l.now()) > (loginBurst-1)*loginEvery
}

// failed counts a failed login.
func (l *logins) failed(r *http.Request) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.until) >= loginAddresses {
		for key, until := range l.until {
			if !until.After(now) {
				delete(l.until, key)
			}
		}
		if len(l.until) >= loginAddresses {
			clear(l.until)
		}
	}
	key := loginKey(r)
	from := l.until[key]
	if from.Before(now) {
		from = now
	}
	l.until[key] = from.Add(loginEvery)
}
