package functions_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/memlane"

	"github.com/runlane/runlane-go/core"
)

// invoke gives the bridge a minute, as Lambda would.
func invoke(t *testing.T, p *program, records ...events.SQSMessage) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	response, err := functions.Bridge(p.Runtime)(ctx, events.SQSEvent{Records: records})
	if err != nil {
		t.Fatal(err)
	}
	return failures(response)
}

func TestHazard18_StandardBatch_SharesNoDeadlineInTurn(t *testing.T) {
	t.Parallel()
	var together sync.WaitGroup
	together.Add(10)
	p := open(t, func(ctx context.Context, _ string) error {
		together.Done()
		together.Wait() // none returns before all are here
		return nil
	})
	var records []events.SQSMessage
	var ids []runlane.RunID
	for range 10 {
		id := p.trigger(t, greet.With("you"))
		ids = append(ids, id)
		records = append(records, message(string(id), wakeup(id), standardARN, 1))
	}
	equal(t, "failures", invoke(t, p, records...), []string{})
	for _, id := range ids {
		equal(t, "status", p.status(t, id), runlane.StatusSucceeded)
	}
	equal(t, "hand backs", len(p.transport.calls), 0)
}

func TestHazard18_MixedBatch_ReportsAloneWhatCannotBeHandled(t *testing.T) {
	t.Parallel()
	p := open(t, func(_ context.Context, name string) error {
		if name == "grumpy" {
			return errors.New("no")
		}
		return nil
	})
	good, grumpy, other := p.trigger(t, greet.With("you")), p.trigger(t, greet.With("grumpy")), p.trigger(t, unknown.With("you"))
	equal(t, "failures", invoke(t, p,
		message("malformed", "hello", standardARN, 1),
		message("good", wakeup(good), standardARN, 1),
		message("foreign", body("staging", good), standardARN, 3),
		message("grumpy", wakeup(grumpy), standardARN, 1), // its failure is the run's, recorded
		message("no handler", wakeup(other), standardARN, 9),
		message("gone", wakeup("run_never"), standardARN, 2), // nothing to do
	), []string{"malformed", "foreign", "no handler"})
	equal(t, "status of the good one", p.status(t, good), runlane.StatusSucceeded)
	equal(t, "status of the failing one", p.status(t, grumpy), runlane.StatusFailed)
	equal(t, "status without a handler", p.status(t, other), runlane.StatusQueued)
	equal(t, "hand backs", p.transport.calls, []handBack{{standardARN, map[string]time.Duration{
		"malformed": 10 * time.Second, "foreign": 40 * time.Second, "no handler": 5 * time.Minute,
	}}})
}

func TestBridge_RecordThatComesTwice_ExecutesOnce(t *testing.T) {
	t.Parallel()
	p := open(t, nil)
	id := p.trigger(t, greet.With("you"))
	for _, message := range []events.SQSMessage{message("first", wakeup(id), standardARN, 1), message("again", wakeup(id), standardARN, 2)} {
		equal(t, "failures", invoke(t, p, message), []string{})
	}
	equal(t, "executions", len(p.greeted), 1)
}

func TestHazard18_FIFO_GroupStopsAtItsFirstFailureAndOthersGoOn(t *testing.T) {
	t.Parallel()
	p := open(t, nil)
	a1, a3 := p.trigger(t, greet.With("a1")), p.trigger(t, greet.With("a3"))
	b1, b2 := p.trigger(t, greet.With("b1")), p.trigger(t, greet.With("b2"))
	other := p.trigger(t, unknown.With("a2"))
	equal(t, "failures", invoke(t, p,
		message("a1", wakeup(a1), fifoARN, 1, "a"),
		message("b1", wakeup(b1), fifoARN, 1, "b"),
		message("a2", wakeup(other), fifoARN, 2, "a"),
		message("a3", wakeup(a3), fifoARN, 1, "a"),
		message("b2", wakeup(b2), fifoARN, 1, "b"),
		message("a4", "malformed", fifoARN, 7, "a"),
	), []string{"a2", "a3", "a4"})
	for id, want := range map[runlane.RunID]runlane.Status{
		a1: runlane.StatusSucceeded, b1: runlane.StatusSucceeded, b2: runlane.StatusSucceeded, a3: runlane.StatusQueued,
	} {
		equal(t, "status of "+string(id), p.status(t, id), want)
	}
	if slices.Index(p.greeted, "b1") > slices.Index(p.greeted, "b2") {
		t.Errorf("group b ran as %v", p.greeted)
	}
	// All of the group come again together, when its failed record does.
	equal(t, "hand backs", p.transport.calls, []handBack{{fifoARN, map[string]time.Duration{
		"a2": 20 * time.Second, "a3": 20 * time.Second, "a4": 20 * time.Second,
	}}})
}

func TestBridge_FIFO_MalformedRecord_HoldsItsGroupBack(t *testing.T) {
	t.Parallel()
	p := open(t, nil)
	id := p.trigger(t, greet.With("you"))
	equal(t, "failures", invoke(t, p,
		message("malformed", "{}", fifoARN, 1, "a"), message("behind", wakeup(id), fifoARN, 1, "a"),
	), []string{"malformed", "behind"})
	equal(t, "executions", len(p.greeted), 0)
}

// Nothing before them used the time: at once they would come five times in a moment, and be given up.
func TestHazard18_NoTimeLeft_IsHandedBackWithADelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, noTimeLeft)
}

func noTimeLeft(t *testing.T) {
	p := open(t, nil)
	id := p.trigger(t, greet.With("you"))
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	response, err := functions.Bridge(p.Runtime)(ctx, events.SQSEvent{Records: []events.SQSMessage{
		message("late", wakeup(id), standardARN, 4), message("late in a group", wakeup(id), fifoARN, 4, "a"),
		message("behind it", wakeup(id), fifoARN, 1, "a"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "failures", failures(response), []string{"late", "late in a group", "behind it"})
	equal(t, "status", p.status(t, id), runlane.StatusQueued)
	delays := map[string]time.Duration{}
	for _, call := range p.transport.calls {
		for id, d := range call.Delays {
			delays[id] = d
		}
	}
	equal(t, "delays", delays, map[string]time.Duration{"late": 80 * time.Second, "late in a group": 80 * time.Second, "behind it": 80 * time.Second})
}

func TestBridge_VisibilityCannotBeChanged_StillReports(t *testing.T) {
	t.Parallel()
	p := open(t, nil)
	p.transport.err = errScripted
	equal(t, "failures, the request failing", invoke(t, p, message("m", "hello", standardARN, 1)), []string{"m"})

	bare := &program{Runtime: openOn(t, memlane.NewStorage(nil), memlane.NewTransport(nil), &core.Options{})}
	equal(t, "failures, without the ability", invoke(t, bare, message("m", "hello", standardARN, 1)), []string{"m"})
}

func TestBridge_RecordWithoutID_CannotBeJudged(t *testing.T) {
	t.Parallel()
	p := open(t, nil)
	id := p.trigger(t, greet.With("you"))
	_, err := functions.Bridge(p.Runtime)(t.Context(), events.SQSEvent{Records: []events.SQSMessage{
		message("good", wakeup(id), standardARN, 1), {Body: wakeup(id)},
	}})
	if !errors.Is(err, runlane.ErrValidationFailed) {
		t.Fatalf("error is %v", err)
	}
	equal(t, "status", p.status(t, id), runlane.StatusQueued)
}

func TestBridge_Response_IsAListAlsoWhenEmpty(t *testing.T) {
	t.Parallel()
	response, err := functions.Bridge(open(t, nil).Runtime)(t.Context(), events.SQSEvent{})
	if err != nil {
		t.Fatal(err)
	}
	if text := string(marshal(t, response)); !strings.Contains(text, `"batchItemFailures":[]`) {
		t.Errorf("response is %s", text)
	}
}
