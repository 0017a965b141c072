package lambdatest_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
)

func deploy(t *testing.T, options lambdatest.Options) *lambdatest.Function {
	t.Helper()
	options.Program = filepath.Join(bin, "hello", "bootstrap")
	f := lambdatest.New(options)
	t.Cleanup(f.Close)
	return f
}

// processes waits until so many live.
func processes(t *testing.T, f *lambdatest.Function, n int) {
	t.Helper()
	until(t, fmt.Sprint(n, " processes"), func() bool { return len(f.Processes()) == n })
}

func TestInvoke_OneAfterTheOther_SharesAProcess(t *testing.T) {
	t.Parallel()
	f := deploy(t, lambdatest.Options{Timeout: 30 * time.Second})
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
		"error": {lambdatest.FailureUnhandled, "as asked", true},
		"panic": {lambdatest.FailureUnhandled, "as asked", false},
		"exit":  {lambdatest.FailureExit, "exit status 4", false},
		"hang":  {lambdatest.FailureTimeout, "Task timed out after 3.00 seconds", false},
	} {
		t.Run(event, func(t *testing.T) {
			t.Parallel()
			f := deploy(t, lambdatest.Options{Timeout: 3 * time.Second})
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
	f := deploy(t, lambdatest.Options{Timeout: 10 * time.Second, Concurrency: 3})
	var hanging sync.WaitGroup
	for range 3 {
		hanging.Go(func() { _, _ = f.Invoke(t.Context(), []byte(`"hang"`)) })
	}
	processes(t, f, 3)
	if _, err := f.Invoke(t.Context(), []byte(`"one more"`)); !errors.Is(err, lambdatest.ErrThrottled) {
		t.Errorf("error is %v", err)
	}
	hanging.Wait()
	if n := len(f.Processes()); n != 0 {
		t.Errorf("%d processes survived their timeout", n)
	}
}

func TestMappings_Stop_WaitsForTheInvocationsUnderWay(t *testing.T) {
	t.Parallel()
	f := deploy(t, lambdatest.Options{Timeout: time.Second})
	failed := make(chan error, 1)
	m := &lambdatest.Mappings{Failed: func(err error) { failed <- err }}
	invoked := false
	m.Go(func(ctx context.Context) error {
		<-ctx.Done()
		_, err := lambdatest.Handler[string, string](f)(ctx, "hang")
		invoked = true
		return err
	})
	m.Stop()
	m.Stop()
	if err := <-failed; !invoked || !strings.Contains(err.Error(), lambdatest.FailureTimeout) {
		t.Errorf("the invocation ended with %v", err)
	}
	if text, err := lambdatest.Handler[string, string](f)(t.Context(), "one"); err != nil || !strings.HasPrefix(text, "one from ") {
		t.Errorf("the response is %q, %v", text, err)
	}
}

func TestVariables_LeaveOutWhatIsEmpty(t *testing.T) {
	t.Parallel()
	d := &lambdatest.Deployment{Role: "bridge", Table: "runs", Endpoint: "http://localhost", Queues: map[runlane.QueueName]string{"b": "url", "a": "url"}}
	equal(t, "variables", d.Variables(map[string]string{"AWS_REGION": "", "AWS_ACCESS_KEY_ID": "key", "MORE": "1"}), []string{
		"AWS_ACCESS_KEY_ID=key", "AWS_EC2_METADATA_DISABLED=true", "AWS_ENDPOINT_URL=http://localhost", "AWS_NEW_RETRIES_2026=true",
		"AWS_SECRET_ACCESS_KEY=test", "MORE=1", "RUNLANE_FUNCTION=bridge", "RUNLANE_QUEUES=a=url,b=url", "RUNLANE_TABLE=runs",
	})
}

func TestSignal_ReachesIdleProcesses(t *testing.T) {
	t.Parallel()
	f := deploy(t, lambdatest.Options{})
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
	f := deploy(t, lambdatest.Options{Environment: []string{"HELLO=exits"}})
	if answer := invoke(t, f, "one"); answer.Failure != lambdatest.FailureExit || string(answer.Payload) != "exit status 3" {
		t.Errorf("answer is %q %s", answer.Failure, answer.Payload)
	}
}
