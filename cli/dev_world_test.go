package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
	"github.com/runlane/runlane-go/memlane"
)

// stream keeps what is written and lets a test wait for it.
type stream struct {
	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{} // closed and replaced at every write
}

func newStream() *stream { return &stream{changed: make(chan struct{})} }

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
	return s.text.Write(p)
}

func (s *stream) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// await waits for a text.
func (s *stream) await(t *testing.T, text string) {
	t.Helper()
	s.awaitTimes(t, text, 1)
}

// awaitTimes waits until a text is there so often.
func (s *stream) awaitTimes(t *testing.T, text string, times int) {
	t.Helper()
	late := time.After(patience.Limit)
	for {
		s.mu.Lock()
		there, changed := strings.Count(s.text.String(), text) >= times, s.changed
		s.mu.Unlock()
		if there {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("waited in vain for %q:\n%s", text, s)
		}
	}
}

// session is a dev that runs in the background.
type session struct {
	*world

	folder    string
	out, news *stream
	interrupt context.CancelFunc
	ended     chan struct{}
	code      int // once ended
}

// lasting is a transport that outlives its runtimes.
type lasting struct{ *memlane.Transport }

func (lasting) Close(context.Context) error { return nil }

// startDev runs dev in a folder until the test ends.
func startDev(t *testing.T, w *world, folder string, args ...string) *session {
	t.Helper()
	ctx, interrupt := context.WithCancel(context.Background())
	w.shared = lasting{memlane.NewTransport(nil)}
	s := &session{world: w, folder: folder, out: newStream(), news: newStream(), interrupt: interrupt, ended: make(chan struct{})}
	go func() { // ends with the interrupt
		defer close(s.ended)
		s.code = runWith(ctx, w, &cli.Options{Args: append([]string{"dev"}, args...), Folder: folder, Stdout: s.out, Stderr: s.news}).code
	}()
	t.Cleanup(func() {
		interrupt()
		<-s.ended
	})
	if args == nil {
		s.news.await(t, "an interrupt stops it")
	} else {
		s.out.await(t, `"state":"started"`)
	}
	return s
}

// stop interrupts and returns the exit code.
func (s *session) stop(t *testing.T) int {
	t.Helper()
	s.interrupt()
	s.await(t)
	return s.code
}

func (s *session) await(t *testing.T) {
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(patience.Limit):
		t.Fatalf("dev does not end:\n%s%s", s.out, s.news)
	}
}

// away calls a command as another process does that works on the same storage.
func (s *session) away(t *testing.T, args ...string) result {
	t.Helper()
	return runWith(t.Context(), s.world, &cli.Options{Args: args})
}

func write(t *testing.T, content string, path ...string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(path...), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
