package lambdatest_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
)

func deploy(t *testing.T, options lambdatest.Options) *lambdatest.Function {
	t.Helper()
	options.Program = filepath.Join(bin, "hello", "bootstrap")
	f := lambdatest.New(options)
	t.Cleanup(f.Close)
	return f
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

func TestInvoke_ProgramThatDoesNotStart_IsAFailureOfItsStart(t *testing.T) {
	t.Parallel()
	f := deploy(t, lambdatest.Options{Environment: []string{"HELLO=exits"}})
	if answer := invoke(t, f, "one"); answer.Failure != lambdatest.FailureExit || string(answer.Payload) != "exit status 3" {
		t.Errorf("answer is %q %s", answer.Failure, answer.Payload)
	}
}
