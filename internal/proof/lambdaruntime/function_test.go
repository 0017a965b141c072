package lambdaruntime_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/runlane/runlane-go/internal/proof/lambdaruntime"
)

var program string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "hello")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(folder, "bootstrap")
	if out, err := exec.Command("go", "build", "-tags", "lambda.norpc", "-o", program, "./testdata/hello").CombinedOutput(); err != nil {
		panic(string(out))
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	if err := goleak.Find(); err != nil && code == 0 {
		_, _ = os.Stderr.WriteString(err.Error())
		code = 1
	}
	os.Exit(code)
}

func deploy(t *testing.T, options lambdaruntime.Options) *lambdaruntime.Function {
	t.Helper()
	options.Program = program
	f := lambdaruntime.New(options)
	t.Cleanup(f.Close)
	return f
}

func invoke(t *testing.T, f *lambdaruntime.Function, event string) *lambdaruntime.Answer {
	t.Helper()
	answer, err := f.InvokeJSON(t.Context(), event)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// processes waits until so many live.
func processes(t *testing.T, f *lambdaruntime.Function, n int) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(10 * time.Second); len(f.Processes()) != n; <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("%d processes live, not %d", len(f.Processes()), n)
		}
	}
}

func TestInvoke_OneAfterTheOther_SharesAProcess(t *testing.T) {
	t.Parallel()
	f := deploy(t, lambdaruntime.Options{Timeout: 30 * time.Second})
	first, second := invoke(t, f, "one"), invoke(t, f, "two")
	if !first.Cold || second.Cold || first.Failure+second.Failure != "" {
		t.Errorf("answers are %+v, %+v", first, second)
	}
	if !strings.HasPrefix(string(second.Payload), `"two from `) || string(first.Payload)[5:] != string(second.Payload)[5:] {
		t.Errorf("payloads are %s and %s", first.Payload, second.Payload)
	}
	if got := string(invoke(t, f, "deadline").Payload); got != `"30s"` {
		t.Errorf("time left is %s", got)
	}
	if starts := f.Starts(); len(starts) != 1 || starts[0] <= 0 || !strings.Contains(f.Log(), "hello") {
		t.Errorf("starts %v, log %q", starts, f.Log())
	}
}

func TestInvoke_Failures_AreToldApart(t *testing.T) {
	t.Parallel()
	for event, want := range map[string]struct {
		failure, says string
		survives      bool // the process
	}{
		"error": {lambdaruntime.FailureUnhandled, "as asked", true},
		"panic": {lambdaruntime.FailureUnhandled, "as asked", false},
		"exit":  {lambdaruntime.FailureExit, "exit status 4", false},
		"hang":  {lambdaruntime.FailureTimeout, "Task timed out after 0.50 seconds", false},
	} {
		t.Run(event, func(t *testing.T) {
			t.Parallel()
			f := deploy(t, lambdaruntime.Options{Timeout: 500 * time.Millisecond})
			answer := invoke(t, f, event)
			if answer.Failure != want.failure || !strings.Contains(string(answer.Payload), want.says) {
				t.Errorf("answer is %q %s", answer.Failure, answer.Payload)
			}
			if lives := len(f.Processes()) == 1; lives != want.survives {
				t.Errorf("the process lives: %t", lives)
			}
			if next := invoke(t, f, "next"); next.Failure != "" || next.Cold == want.survives {
				t.Errorf("the next invocation: %+v", next)
			}
		})
	}
}

func TestInvoke_SideBySide_EachHasItsProcess(t *testing.T) {
	t.Parallel()
	f := deploy(t, lambdaruntime.Options{Timeout: 3 * time.Second, Concurrency: 3})
	var hanging sync.WaitGroup
	for range 3 {
		hanging.Go(func() { _, _ = f.Invoke(t.Context(), []byte(`"hang"`)) })
	}
	processes(t, f, 3)
	if _, err := f.Invoke(t.Context(), []byte(`"one more"`)); !errors.Is(err, lambdaruntime.ErrThrottled) {
		t.Errorf("error is %v", err)
	}
	hanging.Wait()
	if n := len(f.Processes()); n != 0 {
		t.Errorf("%d processes survived their timeout", n)
	}
}

func TestSignal_ReachesIdleProcesses(t *testing.T) {
	t.Parallel()
	f := deploy(t, lambdaruntime.Options{})
	invoke(t, f, "one")
	if n := f.Signal(syscall.SIGTERM); n != 1 {
		t.Fatalf("%d processes", n)
	}
	processes(t, f, 0)
	if answer := invoke(t, f, "two"); !answer.Cold || answer.Failure != "" {
		t.Errorf("answer is %+v", answer)
	}
}

func TestInvoke_ProgramThatDoesNotStart_IsAFailureOfItsStart(t *testing.T) {
	t.Parallel()
	f := deploy(t, lambdaruntime.Options{Environment: []string{"HELLO=exits"}})
	if answer := invoke(t, f, "one"); answer.Failure != lambdaruntime.FailureExit || string(answer.Payload) != "exit status 3" {
		t.Errorf("answer is %q %s", answer.Failure, answer.Payload)
	}
}
