package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/runlane/runlane-go/core"
)

// Limits of connections. A body that takes longer than readTime to read closes its connection.
const (
	readHeaderTime = 5 * time.Second
	readTime       = 60 * time.Second
	writeTime      = MaxTimeout + 30*time.Second
	idleTime       = 60 * time.Second
	maxHeader      = 32 << 10
	// maxConnections are open at once. Idle ones are closed after idleTime, or earlier to make room.
	maxConnections = 4096
)

// Serve answers requests on a listener, which it closes, until ctx ends. Then it gives requests the grace to finish,
// ends streams and returns nil. The runtime stays open. A listener that other machines reach requires Access in the
// options, or the error is runlane.ErrConfigurationInvalid.
func Serve(ctx context.Context, l net.Listener, rt *core.Runtime, options *Options, grace time.Duration) error {
	if options == nil {
		options = &Options{}
	}
	if err := Reachable(l.Addr(), options); err != nil {
		return errors.Join(err, l.Close())
	}
	a, err := newAPI(rt, options)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	ctx, stop := context.WithCancel(ctx)
	a.ending = ctx.Done()
	connections := newBounded(l, maxConnections)
	s := &http.Server{
		Handler:           a.guarded(),
		ConnContext:       withTLS,
		ConnState:         connections.changed,
		BaseContext:       func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ErrorLog:          slog.NewLogLogger(a.logger.Handler(), slog.LevelDebug),
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		ReadHeaderTimeout: readHeaderTime,
		ReadTimeout:       readTime,
		WriteTimeout:      writeTime,
	}
	stopped := make(chan struct{})
	go func() { // ends with ctx, and Serve waits for it
		defer close(stopped)
		<-ctx.Done()
		finishing, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if s.Shutdown(finishing) != nil {
			_ = s.Close() // cut off the rest
		}
	}()
	defer func() {
		stop()
		<-stopped
	}()
	err = s.Serve(connections)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

type tlsKey struct{}

// withTLS stores a TLS connection in the context, because net/http cannot see it inside a counted connection.
func withTLS(ctx context.Context, c net.Conn) context.Context {
	if behind, ok := c.(*counted); ok {
		if secured, ok := behind.Conn.(*tls.Conn); ok {
			return context.WithValue(ctx, tlsKey{}, secured)
		}
	}
	return ctx
}

// setTLS sets r.TLS, as net/http would. The handshake is over, since the request was read.
func setTLS(r *http.Request) {
	if secured, ok := r.Context().Value(tlsKey{}).(*tls.Conn); ok && r.TLS == nil {
		state := secured.ConnectionState()
		r.TLS = &state
	}
}

// Reachable refuses options without Access for an address that other machines reach.
func Reachable(address net.Addr, options *Options) error {
	if options != nil && options.Access != nil {
		return nil
	}
	at, err := netip.ParseAddrPort(address.String())
	if err == nil && at.Addr().Unmap().IsLoopback() {
		return nil
	}
	return invalid("the server would listen on "+address.String()+", where other machines reach it, and has no tokens",
		"listen on 127.0.0.1, or give tokens or a proxy")
}

// bounded limits the open connections. At the limit it closes the one that has been idle longest, so that only requests
// in progress can keep a new caller waiting.
type bounded struct {
	net.Listener

	most int

	mu      sync.Mutex
	room    sync.Cond // signals a closed or newly idle connection, or a closed listener
	open    int
	waiting list.List // idle *counted, longest first
	closed  bool
}

func newBounded(l net.Listener, most int) *bounded {
	b := &bounded{Listener: l, most: most}
	b.room.L = &b.mu
	return b
}

func (b *bounded) Accept() (net.Conn, error) {
	connection, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &counted{Conn: connection, of: b}
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.open >= b.most && !b.closed {
		if longest := b.waiting.Front(); longest != nil {
			waits, _ := longest.Value.(*counted)
			b.drop(waits)
			waits.hangUp()
			continue
		}
		b.room.Wait()
	}
	if b.closed {
		c.hangUp()
		return nil, net.ErrClosed
	}
	b.open++
	c.open = true
	return c, nil
}

func (b *bounded) Close() error {
	b.mu.Lock()
	b.closed = true
	b.room.Broadcast()
	b.mu.Unlock()
	return b.Listener.Close()
}

// drop forgets a connection. The caller holds the lock.
func (b *bounded) drop(c *counted) {
	if c.waits != nil {
		b.waiting.Remove(c.waits)
		c.waits = nil
	}
	if c.open {
		c.open = false
		b.open--
		b.room.Broadcast()
	}
}

// changed is the server's ConnState hook: a connection is idle while it is new, and between two requests.
func (b *bounded) changed(connection net.Conn, state http.ConnState) {
	c, ok := connection.(*counted)
	if !ok {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	waits := state == http.StateNew || state == http.StateIdle
	switch {
	case waits && c.waits == nil && c.open:
		c.waits = b.waiting.PushBack(c)
		b.room.Broadcast()
	case !waits && c.waits != nil:
		b.waiting.Remove(c.waits)
		c.waits = nil
	}
}

// counted is a connection that occupies one place of its bounded until it is closed.
type counted struct {
	net.Conn

	of    *bounded
	open  bool          // it occupies a place
	waits *list.Element // nil while a request is in progress, and after close
}

func (c *counted) Close() error {
	err := c.Conn.Close()
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.drop(c)
	return err
}

// hangUp closes a connection without the TLS close message, on which a caller could block us. The server closes it,
// too.
func (c *counted) hangUp() {
	if secured, ok := c.Conn.(*tls.Conn); ok {
		_ = secured.NetConn().Close()
		return
	}
	_ = c.Conn.Close()
}
