package lambdatest_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/functions/eventsource"
	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
)

const (
	// shortTimeout leaves a handler the 5 s that it must have, and a lease that is over 5 s after the deadline.
	shortTimeout = 9 * time.Second
	// shortVisibility lets a message come again when that lease is over. (Deployed queues wait for six timeouts.)
	shortVisibility = 16 * time.Second
)

// An invocation ends in the middle of a handler, each time in another way. Its message comes again, and the run is executed once
// more by the process that gets it, after the lease of the dead process is over.
func TestInvocation_EndsInTheMiddle_RunIsExecutedAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		do      string
		signal  syscall.Signal // sent when the handler has begun
		failure string         // what Lambda says of the invocation
	}{
		"killed at its deadline, because the process hangs": {lambdatest.Wait, syscall.SIGSTOP, lambdatest.FailureTimeout},
		"SIGTERM":                {lambdatest.Wait, syscall.SIGTERM, lambdatest.FailureExit},
		"out of memory":          {lambdatest.Wait, syscall.SIGKILL, lambdatest.FailureExit},
		"handler ends the world": {lambdatest.Die, 0, lambdatest.FailureExit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := install(t, installOptions{visibility: shortVisibility})
			bridge := i.deploy("program", functions.RoleBridge, lambdatest.Options{Timeout: shortTimeout}, nil)
			id := i.act(lambdatest.Play, lambdatest.Act{Name: "a", Do: tc.do}, nil)
			bystander := i.act(lambdatest.Play, lambdatest.Act{Name: "b"}, nil)
			event := i.receive(2)
			answers := make(chan *lambdatest.Answer, 1)
			go func() { answers <- invoke(t, bridge, event) }() // ends with the invocation
			if tc.signal != 0 {
				until(t, "both handlers have begun", func() bool { return len(i.attempts()) == 2 })
				i.succeeds(bystander) // of the same batch
				bridge.Signal(tc.signal)
			}
			answer := <-answers
			if answer.Failure != tc.failure {
				t.Errorf("the invocation ended with %q: %s", answer.Failure, answer.Payload)
			}
			i.mapQueue(bridge, eventsource.QueueOptions{Timeout: shortTimeout})
			i.succeeds(id, bystander)
			if got := i.attempts(); !slices.Contains(got, "a 2") || slices.Contains(got, "a 3") {
				t.Errorf("attempts were %v", got)
			}
			attempts, err := i.Runs().Attempts(t.Context(), id)
			if err != nil || len(attempts) != 2 || attempts[0].Status != runlane.AttemptAbandoned {
				t.Errorf("attempts are %+v, %v", attempts, err)
			}
			i.sound()
		})
	}
}

// The bridge does not wait for such a handler until Lambda kills it: it answers in time, and the attempt has timed out.
func TestHandler_IgnoresItsContext_InvocationAnswersInTime(t *testing.T) {
	t.Parallel()
	i := install(t, installOptions{})
	bridge := i.deploy("program", functions.RoleBridge, lambdatest.Options{Timeout: shortTimeout}, nil)
	id := i.act(lambdatest.Play, lambdatest.Act{Name: "a", Do: lambdatest.Ignore}, nil)
	answer := invoke(t, bridge, i.receive(1))
	if answer.Failure != "" || answer.Took >= shortTimeout {
		t.Fatalf("after %s: %q %s", answer.Took, answer.Failure, answer.Payload)
	}
	if !strings.Contains(bridge.Log(), "handler did not return when its context ended") {
		t.Error("no log tells of the handler")
	}
	processes := bridge.Processes()
	i.mapQueue(bridge, eventsource.QueueOptions{Timeout: shortTimeout, Concurrency: 1})
	i.succeeds(id)
	equal(t, "attempts", i.attempts(), []string{"a", "a 2"})
	equal(t, "processes, the goroutine left behind in one", bridge.Processes(), processes)
	attempts, err := i.Runs().Attempts(t.Context(), id)
	if err != nil || len(attempts) != 2 || attempts[0].Failure.Code != runlane.ErrTaskTimedOut {
		t.Errorf("attempts are %+v, %v", attempts, err)
	}
	i.sound()
}
