package server_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
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
	// What begins the stream is an id without an event: next would pass over it.
	begun := bufio.NewScanner(get(t, client, url+"/events").body)
	begun.Scan()
	if begun.Text() != "retry: 2000" || !begun.Scan() || !strings.HasPrefix(begun.Text(), "id: ") {
		t.Fatalf("the stream begins with %q", begun.Text())
	}
	last := strings.TrimPrefix(begun.Text(), "id: ")
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
		w.ask(t, "GET", "/events?after="+after, "").want(t, 400, "is no cursor of this request")
	}
}

// withoutFeed is a storage that keeps no order of commits.
type withoutFeed struct{ lane.Storage }

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
