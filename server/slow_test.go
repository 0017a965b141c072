package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go/server"
)

// pipes is a listener without a network, whose time is that of a bubble.
type pipes struct {
	come chan net.Conn
	done chan struct{}
	once sync.Once
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.come:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

// Addr implements net.Listener.
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// call connects and sends a text. It waits until the server accepts, and reads, the text.
func (p *pipes) call(text string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	p.come <- theirs
	if text == "" { // a pipe wants a reader for nothing, too, and the server may have hung up
		return ours, nil
	}
	_, err := io.WriteString(ours, text)
	return ours, err
}

// onPipes serves until the test ends.
func onPipes(t *testing.T) *pipes {
	t.Helper()
	w, l := newWorld(t, nil), &pipes{come: make(chan net.Conn), done: make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { // ends with ctx
		ended <- server.Serve(ctx, l, w.Runtime, &server.Options{Access: byScope, Logger: discard}, time.Second)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l
}

// Who connects and does not go on is cut off: 5 seconds for headers, a minute for a body, and a minute between two requests.
func TestServe_SlowCallers_AreCutOff(t *testing.T) {
	t.Parallel()
	const head = " HTTP/1.1\r\nHost: localhost\r\n"
	for name, c := range map[string]struct {
		sends string
		has   time.Duration
	}{
		"nothing":          {"", 5 * time.Second},
		"half of a header": {"GET /v1/runs" + head + "X-Slow: a", 5 * time.Second},
		"half of a body":   {"POST /v1/runs" + head + "Content-Type: application/json\r\nContent-Length: 99\r\n\r\n{", time.Minute},
		"one request":      {"GET /healthz" + head + "\r\n", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, began := onPipes(t), time.Now()
				caller, err := l.call(c.sends)
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(caller) // ends when the server hangs up
				if took := time.Since(began); err != nil || took < c.has || took > c.has+time.Second {
					t.Errorf("cut off after %s (%v): %s", took, err, text)
				}
				if err := caller.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Ten thousand callers that send half of a header each take no more than the connections there are, and make room for who asks
// properly: at once, however many they are.
func TestServe_TenThousandSlowCallers_KeepOutNoOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, tenThousand)
}

func tenThousand(t *testing.T) {
	const callers = 10_000
	l := onPipes(t)
	var cut sync.WaitGroup
	var open atomic.Int64
	for i := range callers {
		cut.Go(func() { // ends when the server hangs up
			caller, err := l.call("")
			if err != nil {
				t.Error(err)
				return
			}
			open.Add(1)
			_, _ = fmt.Fprintf(caller, "GET /v1/runs HTTP/1.1\r\nX-Caller: %d", i) // or it was hung up on
			_, _ = io.Copy(io.Discard, caller)
			open.Add(-1)
			_ = caller.Close()
		})
	}
	synctest.Wait()
	if open := open.Load(); open != server.MaxConnections {
		t.Errorf("%d of %d connections are open, want %d", open, callers, server.MaxConnections)
	}
	began := time.Now()
	for _, path := range []string{"/healthz", "/v1/runs"} {
		caller, err := l.call("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(caller); err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 200") {
			t.Errorf("a proper caller got %v: %s", err, text)
		}
		_ = caller.Close()
	}
	if took := time.Since(began); took != 0 { // of the bubble: they do not wait for anyone
		t.Errorf("proper callers were answered after %s", took)
	}
	cut.Wait()
	if took := time.Since(began); took > 6*time.Second {
		t.Errorf("the last ones were cut off after %s", took)
	}
}
