package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
	"github.com/runlane/runlane-go/server"
)

// listening serves a world on a port of this machine. stop ends it and returns what Serve returned.
func listening(t *testing.T, w *world, options *server.Options) (url string, client *http.Client, stop func() error) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l, w.Runtime, options, patience.Limit) }() // ends with ctx
	transport := &http.Transport{}
	ended := false
	stop = func() error {
		if ended {
			return nil
		}
		ended = true
		cancel()
		return <-served
	}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return "http://" + l.Addr().String(), &http.Client{Transport: transport, Timeout: patience.Limit}, stop
}

// got is an answer whose body may go on.
type got struct {
	status int
	header http.Header
	body   io.Reader
}

func get(t *testing.T, client *http.Client, url string, headers ...string) *got {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return &got{status: response.StatusCode, header: response.Header, body: response.Body}
}

// next reads the next event of a stream: its id and its type; ok is false at the end.
func next(t *testing.T, lines *bufio.Scanner) (id, kind string, ok bool) {
	t.Helper()
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			return id, kind, true
		}
	}
	return "", "", false
}

// A stream has each event as it comes, ends behind the last one, and is resumed where it broke off.
func TestStream_FollowsARunAndResumes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	url, client, _ := listening(t, w, nil)
	w.trigger(t, welcome, "one", false)
	response := get(t, client, url+"/events?run=one")
	if kind := response.header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("%d %s", response.status, kind)
	}
	lines := bufio.NewScanner(response.body)
	var ids, kinds []string
	read := func() bool {
		id, kind, ok := next(t, lines)
		if ok {
			ids, kinds = append(ids, id), append(kinds, kind)
		}
		return ok
	}
	for range 2 { // made, and a wakeup is asked for: the stream is open before the rest happens
		read()
	}
	if _, err := w.Runs().Cancel(t.Context(), "one", nil); err != nil {
		t.Fatal(err)
	}
	for read() {
	}
	if got := strings.Join(ids, " "); got != "1 2 3" {
		t.Errorf("ids are %s", got)
	}
	if kinds[0] != "run.created" || kinds[2] != "run.cancelled" {
		t.Errorf("events are %v", kinds)
	}
	resumed := bufio.NewScanner(get(t, client, url+"/events?run=one&after=0", "Last-Event-ID: 2").body)
	if id, kind, ok := next(t, resumed); id != "3" || kind != "run.cancelled" || !ok {
		t.Errorf("resumed with %s %s", id, kind)
	}
	if _, _, ok := next(t, resumed); ok {
		t.Error("the stream goes on behind the last event")
	}
	if seen := get(t, client, url+"/events?run=one", "Last-Event-ID: 3"); seen.status != http.StatusNoContent {
		t.Errorf("everything was seen: %d", seen.status)
	}
}

// The end of the server ends streams at once, and lets requests finish.
func TestServe_EndsInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	arrived := make(chan bool, 1)
	url, client, stop := listening(t, w, &server.Options{Access: func(r *http.Request) (server.Access, error) {
		if r.URL.Query().Has("wait") {
			arrived <- true
		}
		return byScope(r)
	}})
	w.trigger(t, welcome, "one", false)
	lines := bufio.NewScanner(get(t, client, url+"/events?run=one").body)
	next(t, lines)
	next(t, lines)
	waited := make(chan string, 1)
	go func() { // ends when the run does
		response, err := client.Get(url + "/v1/runs/one?wait=20s")
		if err != nil {
			waited <- err.Error()
			return
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		waited <- string(text)
	}()
	<-arrived
	ended := make(chan error, 1)
	go func() { ended <- stop() }() // ends with the requests
	if _, _, ok := next(t, lines); ok {
		t.Error("the stream goes on")
	}
	if _, err := w.Runs().Cancel(context.Background(), "one", nil); err != nil {
		t.Fatal(err)
	}
	if text := <-waited; !strings.Contains(text, `"status":"cancelled"`) {
		t.Errorf("a request in progress got %s", text)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := w.Runs().Get(t.Context(), "one"); err != nil {
		t.Errorf("the runtime: %v", err)
	}
}

// Where other machines reach it, a server without tokens does not start.
func TestServe_WithoutTokens_OnlyOnLoopback(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	err = server.Serve(t.Context(), l, w.Runtime, nil, 0)
	if runlane.CodeOf(err) != runlane.ErrConfigurationInvalid || !strings.Contains(err.Error(), "give tokens or a proxy") {
		t.Errorf("it starts: %v", err)
	}
	if _, err := l.Accept(); err == nil {
		t.Error("the listener is open")
	}
	for address, reachable := range map[string]bool{"127.0.0.1:1": false, "[::1]:1": false, "0.0.0.0:1": true, "[::]:1": true, "192.0.2.1:1": true, "127.0.0.9:1": false} {
		at, err := net.ResolveTCPAddr("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Reachable(at, nil); (err != nil) != reachable {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// Of connections that are busy, so many are open at once: another one waits until one of them ends.
func TestServe_BusyConnections_AreBounded(t *testing.T) {
	t.Parallel()
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := server.NewBounded(inner, 2)
	accepted := make(chan net.Conn, 3)
	go func() { // ends when the listener is closed
		for {
			c, err := l.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- c
		}
	}()
	for range 3 {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	first, second := <-accepted, <-accepted
	select {
	case <-accepted:
		t.Fatal("a third one is accepted beside two")
	default:
	}
	for range 2 { // closing twice gives one place back
		_ = first.Close()
	}
	third := <-accepted
	_ = l.Close()
	if _, open := <-accepted; open {
		t.Error("a fourth one is accepted")
	}
	_, _ = second.Close(), third.Close()
}

func TestServe_HugeHeaders_AreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	url, client, _ := listening(t, w, nil)
	response := get(t, client, url+"/v1/runs", "X-Large: "+strings.Repeat("x", 64<<10))
	if response.status != http.StatusRequestHeaderFieldsTooLarge {
		t.Error(response.status)
	}
	if got := get(t, client, url+"/v1/runs", "X-Small: "+fmt.Sprint(1)); got.status != http.StatusOK {
		t.Error(got.status)
	}
}
