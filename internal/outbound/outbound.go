// Package outbound makes requests to addresses that users configure: webhooks and the targets of tasks.
package outbound

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"syscall"
	"time"
)

// ErrAddress is the cause of a request that was refused because of its resolved address.
var ErrAddress = errors.New("the address is not one that requests may reach")

const (
	// MaxRetryAfter keeps a receiver from delaying its requests forever.
	MaxRetryAfter = 6 * time.Hour

	idleTime  = time.Minute
	maxHeader = 32 << 10
)

// Options of [NewClient].
type Options struct {
	// Timeout of a request, with its answer.
	Timeout time.Duration
	// Private allows this machine and private networks.
	Private bool
	// TLS allows public addresses. Never set it for http.
	TLS bool
	// Connections limits the connections to one host. 0 means no limit.
	Connections int
}

// NewClient returns a client for allowed addresses only. It checks the resolved address of each connection, follows no
// redirects and uses no proxy, which would connect elsewhere.
func NewClient(o Options) *http.Client {
	dialer := &net.Dialer{Timeout: o.Timeout, ControlContext: o.Control}
	return &http.Client{
		Timeout:       o.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			DisableCompression:     true,
			ForceAttemptHTTP2:      true,
			IdleConnTimeout:        idleTime,
			MaxConnsPerHost:        o.Connections,
			MaxResponseHeaderBytes: maxHeader,
		},
	}
}

// Control checks the resolved address before each connection.
func (o Options) Control(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return ErrAddress
	}
	if public := IsPublic(at.Addr()); public && o.TLS || !public && o.Private {
		return nil
	}
	return ErrAddress
}

// unpublic are networks among the unicast addresses that are not public, or that translate to others.
var unpublic = func() (found []netip.Prefix) {
	for _, text := range []string{
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
		"192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
		"224.0.0.0/3", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	} {
		found = append(found, netip.MustParsePrefix(text))
	}
	return found
}()

var global = netip.MustParsePrefix("2000::/3")

// IsPublic reports whether an address is one of the public internet.
func IsPublic(at netip.Addr) bool {
	at = at.Unmap().WithZone("")
	if at.Is6() && !global.Contains(at) {
		return false
	}
	for _, network := range unpublic {
		if network.Contains(at) {
			return false
		}
	}
	return true
}

// RetryAfter reads both forms of RFC 9110, seconds and a date, up to [MaxRetryAfter]. 0 means no delay.
func RetryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, uint64(MaxRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return max(0, min(at.Sub(now), MaxRetryAfter))
}
