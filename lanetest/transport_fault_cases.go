package lanetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Publishing: more attempts than one request takes, of two queues, and those that are
// refused at the edges and in the middle of requests.
func transportRefused(t *testing.T, h TransportHarness) {
	refused := map[int]bool{0: true, 7: true, 8: true, 20: true, 24: true}
	var attempts []lane.PublishAttempt
	var ids []runlane.RunID
	for n := range 25 {
		attempts = append(attempts, attempt(n, []runlane.QueueName{"alpha", "beta"}[n%2]))
		if refused[n] {
			ids = append(ids, attempts[n].RunID)
		}
	}
	transport := h.Refusing(t, ids, "alpha", "beta")
	outcomes := publish(t, transport, attempts...)
	if len(outcomes) != len(attempts) {
		t.Fatalf("%d outcomes of %d attempts", len(outcomes), len(attempts))
	}
	var taken []runlane.RunID
	for n, o := range outcomes {
		switch {
		case refused[n] && (o.Type != lane.PublishFailed || o.Failure.Code != runlane.ErrTransportPublishFailed):
			t.Errorf("attempt %d was refused, and its outcome is %+v", n, o)
		case !refused[n] && o.Type != lane.Published:
			t.Errorf("attempt %d was taken, and its outcome is %+v", n, o)
		case !refused[n]:
			taken = append(taken, attempts[n].RunID)
		}
	}
	if t.Failed() || !h.Receives {
		return
	}
	var arrived []runlane.RunID
	for _, w := range receive(t, transport, 4, accept, "alpha", "beta").take(len(taken)) {
		arrived = append(arrived, w.RunID)
	}
	equal(t, "runs whose wakeups arrived", taken, arrived)
}

// docs/internals/contract.md, Publishing: either the operation fails, or each attempt does, with the code that counts
// for no attempt.
func transportDown(t *testing.T, h TransportHarness) {
	transport := h.Down(t, "alpha", "beta")
	var attempts []lane.PublishAttempt
	for n := range 25 {
		attempts = append(attempts, attempt(n, []runlane.QueueName{"alpha", "beta"}[n%2]))
	}
	check := func(what string, n int, outcomes []lane.PublishOutcome, err error) {
		t.Helper()
		if err != nil {
			wantError(t, err, runlane.ErrTransportUnavailable)
			return
		}
		if len(outcomes) != n {
			t.Fatalf("%s: %d outcomes of %d attempts", what, len(outcomes), n)
		}
		for i, o := range outcomes {
			if o.Type != lane.PublishFailed || o.Failure.Code != runlane.ErrTransportUnavailable || o.Permanent {
				t.Errorf("%s: outcome %d is %+v", what, i, o)
			}
		}
	}
	outcomes, err := transport.PublishWakeups(t.Context(), &lane.PublishCommand{Attempts: attempts})
	check("publishing", len(attempts), outcomes, err)
	if h.Capabilities.NativeDelay {
		outcomes, err = transport.SendWakeups(t.Context(), []lane.DelayedWakeup{{Wakeup: attempts[0].Wakeup}})
		check("sending", 1, outcomes, err)
	}
}

// docs/internals/contract.md, Publishing: it can never be accepted, and says so.
func transportOversize(t *testing.T, h TransportHarness) {
	transport := h.New(t, "alpha")
	attempts := []lane.PublishAttempt{attempt(0, "alpha"), attempt(1, "alpha"), attempt(2, "alpha")}
	attempts[1].TraceCarrier = map[string]string{"baggage": strings.Repeat("x", h.MaxBytes)}
	outcomes := publish(t, transport, attempts...)
	if len(outcomes) != 3 || outcomes[0].Type != lane.Published || outcomes[2].Type != lane.Published {
		t.Fatalf("outcomes are %+v, want the first and the last published", outcomes)
	}
	if o := outcomes[1]; o.Type != lane.PublishFailed || !o.Permanent ||
		o.Failure.Code != runlane.ErrTransportPublishFailed {
		t.Fatalf("outcome of a wakeup that is too large: %+v", o)
	}
	if h.Receives {
		got := receive(t, transport, 2, accept, "alpha").take(2)
		equal(t, "runs whose wakeups arrived", []runlane.RunID{"run_000", "run_002"}, []runlane.RunID{
			got[0].RunID,
			got[1].RunID,
		})
	}
}

// docs/internals/contract.md, Receiving: within a group in the order of publication, one after the other, also when one
// has to come again.
func transportGroups(t *testing.T, h TransportHarness) {
	transport := h.New(t, "alpha")
	if !transport.Ordered("alpha") {
		t.Error("queue alpha is not said to be ordered, so core does not keep its order")
	}
	const groups, each = 3, 4
	var attempts []lane.PublishAttempt
	groupOf := map[runlane.RunID]string{}
	want := map[string][]runlane.RunID{}
	for n := range groups * each {
		a := attempt(n, "alpha")
		a.GroupKey = fmt.Sprint("customer:", n%groups)
		attempts = append(attempts, a)
		groupOf[a.RunID] = a.GroupKey
		want[a.GroupKey] = append(want[a.GroupKey], a.RunID)
	}
	for part := range slices.Chunk(attempts, 5) { // published by several calls
		wantPublished(t, publish(t, transport, part...), len(part))
	}
	again := attempts[groups].RunID // the second of the first group comes twice
	want["customer:0"] = slices.Insert(want["customer:0"], 1, again)

	var mu sync.Mutex
	busy, order, refusedOnce := map[string]bool{}, map[string][]runlane.RunID{}, false
	r := receive(t, transport, groups+1, func(w lane.Wakeup) error {
		group := groupOf[w.RunID]
		mu.Lock()
		overlap := busy[group]
		busy[group] = true
		order[group] = append(order[group], w.RunID)
		mu.Unlock()
		if overlap {
			t.Errorf("two wakeups of %s were handled at once", group)
		}
		mu.Lock()
		defer mu.Unlock()
		busy[group] = false
		if w.RunID == again && !refusedOnce {
			refusedOnce = true
			return errors.New("not now")
		}
		return nil
	}, "alpha")
	r.take(groups*each + 1)
	mu.Lock()
	defer mu.Unlock()
	equal(t, "order within groups", want, order)
}

// docs/internals/contract.md, Publishing: a publisher that lost the answer publishes again. Two rows of one run are two
// wakeups.
func transportDeduplicates(t *testing.T, h TransportHarness) {
	transport := h.New(t, "alpha")
	attempts := []lane.PublishAttempt{attempt(0, "alpha"), attempt(1, "alpha")}
	second := attempt(0, "alpha")
	second.OutboxRef.ID, second.RequestedAt = "another row", second.RequestedAt.Add(time.Minute)
	attempts = append(attempts, second)
	for range 3 {
		wantPublished(t, publish(t, transport, attempts...), len(attempts))
	}
	last := attempt(2, "alpha")
	last.GroupKey = second.GroupKey // comes after all of the group
	wantPublished(t, publish(t, transport, last), 1)
	r := receive(t, transport, 1, accept, "alpha")
	var got []runlane.RunID
	for _, w := range r.take(len(attempts) + 1) {
		got = append(got, w.RunID)
	}
	equal(t, "runs whose wakeups arrived", []runlane.RunID{"run_000", "run_000", "run_001", "run_002"}, got)
	r.none()
}

// docs/internals/contract.md, Delayed wakeups.
func transportNoDelay(t *testing.T, h TransportHarness) {
	transport := h.New(t, "alpha")
	if longest := transport.MaxDelay("alpha"); longest != 0 {
		t.Fatalf("the longest delay is %s, want none", longest)
	}
	outcomes, err := transport.SendWakeups(t.Context(), []lane.DelayedWakeup{
		{Wakeup: attempt(0, "alpha").Wakeup, Delay: time.Second},
	})
	if errors.Is(err, runlane.ErrCapabilityUnsupported) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(outcomes) != 1 || outcomes[0].Type != lane.PublishFailed || outcomes[0].Failure.IsZero() {
		t.Fatalf("outcomes are %+v, want one that failed", outcomes)
	}
}
