package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/server"
)

// The stream of all runs has what is committed from its beginning on, and a caller that breaks off, even before the
// first event, resumes where it was.
func TestStream_OfAllRuns_MissesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	url, client, _ := listening(t, w, nil)
	w.trigger(t, welcome, "before", false)
	last, begins, _ := next(t, bufio.NewScanner(get(t, client, url+"/events").body))
	if last == "" || begins != "begin" {
		t.Fatalf("the stream begins with %q, %q", last, begins)
	}
	var want, found []string
	for n := range 5 {
		id := runlane.RunID(fmt.Sprint("run-", n))
		w.trigger(t, welcome, id, false)
		if _, err := w.Runs().Cancel(t.Context(), id, nil); err != nil {
			t.Fatal(err)
		}
		want = append(want, "run.created", "run.delivery_requested", "run.cancelled")
	}
	for len(found) < len(want) { // each connection reads two events
		lines := bufio.NewScanner(get(t, client, url+"/events", "Last-Event-ID: "+last).body)
		for range min(2, len(want)-len(found)) {
			id, kind, ok := next(t, lines)
			if !ok {
				t.Fatalf("the stream ends behind %v", found)
			}
			last, found = id, append(found, kind)
		}
	}
	if !slices.Equal(found, want) {
		t.Errorf("events are %v", found)
	}
	get(t, client, url+"/v1/runs") // requests go on beside it
	for _, after := range []string{"3", "x", strings.Repeat("A", 100)} {
		w.ask(t, "GET", "/events?after="+after, "").want(t, 400, "is not a cursor of this request")
	}
}

// Every blank line of a stream ends an event with an id and data, whatever keeps it open meanwhile.
func TestStream_HasNoEmptyEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		for path, run := range map[string]runlane.RunID{"/events": "any", "/events?run=one": "one"} {
			if _, err := w.Trigger(t.Context(), welcome.With(json.RawMessage("1")), &runlane.TriggerOptions{
				RunID: run, Delay: time.Hour,
			}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil)
			r.RemoteAddr = "127.0.0.1:1"
			got, ended := httptest.NewRecorder(), make(chan bool)
			go func() { w.handler.ServeHTTP(got, r); close(ended) }()
			time.Sleep(20 * time.Second) // of the bubble: a sign of life is before the events
			if _, err := w.Runs().Resume(t.Context(), run, nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Second)
			cancel()
			<-ended
			text := strings.ReplaceAll(got.Body.String(), ": still here\n", "")
			for block := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
				if !strings.Contains("\n"+block, "\nid: ") || !strings.Contains(block, "\ndata: {") {
					t.Errorf("%s has an event without id or data: %q", path, block)
				}
			}
			if len(text) == got.Body.Len() || !strings.Contains(text, "event: run.resumed\n") {
				t.Errorf("%s has no sign of life, or no event:\n%s", path, got.Body)
			}
		}
	})
}

// withoutFeed is a storage that keeps no order of commits.
type withoutFeed struct{ lane.Storage }

func (s withoutFeed) Capabilities() lane.StorageCapabilities {
	c := s.Storage.Capabilities()
	c.FeedsCommits = false
	return c
}

func TestStream_OfAllRuns_WhereTheLaneKeepsNoOrder(t *testing.T) {
	t.Parallel()
	l, err := lane.New(withoutFeed{memlane.NewStorage(nil)}, memlane.NewTransport(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	metricsWorldOn(t, l, &server.Metrics{}).ask(t, "GET", "/events", "").
		want(t, 501, `"code":"capability_unsupported"`, `"hint":"follow single runs`)
}

// A thousand callers listen to all runs within 100 MB, their own ends of the connections included.
func TestStream_AThousandCallers_AreSmall(t *testing.T) { // not parallel: what other tests use would count
	w := newWorld(t, nil)
	url, _, _ := listening(t, w, nil)
	before := inUse()
	callers := make([]net.Conn, server.MaxStreams)
	for i := range callers {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := fmt.Fprintf(c, "%s /events HTTP/1.1\r\nHost: localhost\r\n\r\n", http.MethodGet); err != nil {
			t.Fatal(err)
		}
		callers[i] = c
	}
	buffer := make([]byte, 4096)
	await := func(text string) {
		t.Helper()
		for i, c := range callers {
			if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			for seen := ""; !strings.Contains(seen, text); {
				n, err := c.Read(buffer)
				if err != nil {
					t.Fatalf("caller %d: %v after %q", i, err, seen)
				}
				seen += string(buffer[:n])
			}
		}
	}
	await("id: ")
	w.trigger(t, welcome, "told", false)
	await("run.created")
	used := float64(inUse()-before) / 1e6
	t.Logf("%.1f MB", used)
	if used > 100 {
		t.Errorf("%d callers take %.1f MB", len(callers), used)
	}
}

// inUse is what heap and stacks take, in bytes.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
