package lambdatest_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/functions"
	"github.com/runlane/runlane-go/functions/eventsource"
	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
)

// A payload that kills its process whenever it is executed, in one batch with ten others. All eleven leases end together, their messages
// come again together, and meet in the next batches. The poison fails after its third death; each of the others is executed once more, and
// succeeds.
func TestPoison_TakesItsBatchAlongOnce_AndCostsItsNeighboursTimeAlone(t *testing.T) {
	t.Parallel()
	const (
		neighbors  = 10
		timeout    = 15 * time.Second
		visibility = 22 * time.Second // when the leases, which end 5 s after the deadline, are over
	)
	i := install(t, installOptions{visibility: visibility})
	bridge := i.deploy("program", functions.RoleBridge, lambdatest.Options{Timeout: timeout}, nil)
	poison := i.act(lambdatest.Play, lambdatest.Act{Name: "poison", Do: lambdatest.Poison, Party: neighbors + 1}, nil)
	var others []runlane.RunID
	for n := range neighbors {
		others = append(others, i.act(lambdatest.Play, lambdatest.Act{Name: fmt.Sprint(n), Do: lambdatest.Linger}, nil))
	}
	if answer := invoke(t, bridge, i.receive(neighbors+1)); answer.Failure != lambdatest.FailureExit {
		t.Fatalf("the process survived: %q %s", answer.Failure, answer.Payload)
	}
	equal(t, "attempts before the first death", len(i.attempts()), neighbors+1)

	i.mapQueue(bridge, eventsource.QueueOptions{Timeout: timeout, Concurrency: 1})
	i.tickEvery(i.deploy("program", functions.RoleTick, lambdatest.Options{}, nil), 5*time.Second)
	i.succeeds(others...)
	for _, id := range others {
		statuses := i.attemptStatuses(id)
		if !slices.Equal(statuses, []runlane.AttemptStatus{runlane.AttemptAbandoned, runlane.AttemptSucceeded}) {
			t.Errorf("%s: attempts %v, want one that the poison took along and one that succeeded", id, statuses)
		}
	}
	run := i.end(poison)
	if run.Status != runlane.StatusFailed || run.Failure.Code != runlane.ErrLeaseExpired || run.Counters.Attempts != runlane.DefaultMaxAbandoned {
		t.Errorf("the poison is %s: %+v, %+v", run.Status, run.Failure, run.Counters)
	}
	entries, err := lambdatest.ReadLedger(i.ledger)
	if err != nil {
		t.Fatal(err)
	}
	killed := map[int]bool{}
	for _, e := range entries {
		if e.Name == "poison" {
			killed[e.Process] = true
		}
	}
	equal(t, "processes that the poison killed", len(killed), runlane.DefaultMaxAbandoned)
	i.sound()
}

func (i *installation) attemptStatuses(id runlane.RunID) []runlane.AttemptStatus {
	i.t.Helper()
	attempts, err := i.Runs().Attempts(i.t.Context(), id)
	if err != nil {
		i.t.Fatal(err)
	}
	var statuses []runlane.AttemptStatus
	for _, a := range attempts {
		statuses = append(statuses, a.Status)
	}
	return statuses
}
