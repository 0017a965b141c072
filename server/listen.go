package server

import (
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

// Bounds of connections. A body is read within the time of ReadTimeout, or the connection is closed.
const (
	readHeaderTime = 5 * time.Second
	readTime       = 60 * time.Second
	writeTime      = MaxTimeout + 30*time.Second
	idleTime       = 60 * time.Second
	maxHeader      = 32 << 10
	// maxConnections are open at once; others wait to be accepted. Idle ones are closed after idleTime.
	maxConnections = 4096
)

// Serve answers requests that come to a listener, which it closes, until ctx ends. Then it lets requests finish for the
// grace, ends streams and what is left, and returns nil. The runtime stays open. A listener that other machines reach,
// without Access in the options, is runlane.ErrConfigurationInvalid: nothing would tell callers apart.
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
	s := &http.Server{
		Handler:           a.guarded(),
		ConnContext:       withTLS,
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
			_ = s.Close() // what did not finish is cut off
		}
	}()
	defer func() {
		stop()
		<-stopped
	}()
	err = s.Serve(newBounded(l, maxConnections))
	if ctx.Err() != nil {
		return nil
	}
	return err
}

type tlsKey struct{}

// withTLS remembers a connection of TLS, which net/http does not see behind the one that counts.
func withTLS(ctx context.Context, c net.Conn) context.Context {
	if behind, ok := c.(*counted); ok {
		if secured, ok := behind.Conn.(*tls.Conn); ok {
			return context.WithValue(ctx, tlsKey{}, secured)
		}
	}
	return ctx
}

// seeTLS gives a request the state of its connection, as net/http does. It was read, so the handshake is over.
func seeTLS(r *http.Request) {
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

// bounded accepts so many connections at once.
type bounded struct {
	net.Listener

	free chan struct{}
	done chan struct{}
	once sync.Once
}

func newBounded(l net.Listener, most int) *bounded {
	return &bounded{Listener: l, free: make(chan struct{}, most), done: make(chan struct{})}
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.free <- struct{}{}:
	case <-b.done:
		return nil, net.ErrClosed
	}
	connection, err := b.Listener.Accept()
	if err != nil {
		<-b.free
		return nil, err
	}
	return &counted{Conn: connection, release: func() { <-b.free }}, nil
}

// Close implements net.Listener.
func (b *bounded) Close() error {
	b.once.Do(func() { close(b.done) })
	return b.Listener.Close()
}

// counted gives its place back once.
type counted struct {
	net.Conn

	once    sync.Once
	release func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.release)
	return err
}
