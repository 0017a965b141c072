package runlanetest_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// spy is a test that only writes down how it ends.
type spy struct {
	testing.TB // for the methods that are not called

	ctx      context.Context // it stands for a test, which has one
	mu       sync.Mutex
	cleanups []func()
	failures []string
	log      bytes.Buffer
}

// spyOn executes body as a test and returns what it failed with, "" when it passed.
func spyOn(t *testing.T, body func(t testing.TB)) string {
	t.Helper()
	text, _ := spyWithLog(t.Context(), body)
	return text
}

func spyWithLog(ctx context.Context, body func(t testing.TB)) (failures, log string) {
	ctx, cancel := context.WithCancel(ctx)
	s := &spy{ctx: ctx}
	done := make(chan struct{})
	go func() {
		defer close(done) // also when Fatalf ends the goroutine
		defer func() {
			cancel() // as the testing package does it
			for i := len(s.cleanups) - 1; i >= 0; i-- {
				s.cleanups[i]()
			}
		}()
		body(s)
	}()
	<-done
	return strings.Join(s.failures, "\n"), s.log.String()
}

func (s *spy) Helper()                  {}
func (s *spy) Context() context.Context { return s.ctx }
func (s *spy) Cleanup(f func())         { s.cleanups = append(s.cleanups, f) }
func (s *spy) Output() io.Writer        { return s }
func (s *spy) Error(args ...any)        { s.fail(fmt.Sprint(args...)) }
func (s *spy) Logf(format string, args ...any) {
	_, _ = fmt.Fprintf(s, format+"\n", args...)
}

func (s *spy) Errorf(format string, args ...any) { s.fail(fmt.Sprintf(format, args...)) }

func (s *spy) Fatalf(format string, args ...any) {
	s.fail(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (s *spy) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(b)
}

func (s *spy) fail(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, text)
}

// wantText compares a message as people read it.
func wantText(t *testing.T, got, want string) {
	t.Helper()
	if want = strings.TrimPrefix(want, "\n"); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
