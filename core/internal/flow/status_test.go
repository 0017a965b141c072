package flow

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// The table of docs/internals/contract.md, Flows: every flow of up to three runs, in every order, whether it was cancelled or not.
func TestFlow_StatusTable(t *testing.T) {
	t.Parallel()
	kinds := map[string]*runlane.Run{
		"missing":   nil,
		"waits":     {Status: runlane.StatusScheduled, Waiting: &runlane.Waiting{For: []runlane.WaitingFor{runlane.WaitingEnds}}},
		"asks":      {Status: runlane.StatusReleased, Waiting: &runlane.Waiting{For: []runlane.WaitingFor{runlane.WaitingSignal}}},
		"blocked":   {Status: runlane.StatusReleased, Waiting: &runlane.Waiting{For: []runlane.WaitingFor{runlane.WaitingBlocked}}},
		"input":     {Status: runlane.StatusReleased, Waiting: &runlane.Waiting{For: []runlane.WaitingFor{runlane.WaitingInput, runlane.WaitingTime}}},
		"calls":     {Status: runlane.StatusReleased, Waiting: &runlane.Waiting{For: []runlane.WaitingFor{runlane.WaitingChildren}}},
		"sleeps":    {Status: runlane.StatusReleased},
		"queued":    {Status: runlane.StatusQueued},
		"delayed":   {Status: runlane.StatusScheduled},
		"running":   {Status: runlane.StatusRunning},
		"stopping":  {Status: runlane.StatusCancellationRequested},
		"retrying":  {Status: runlane.StatusRetrying},
		"succeeded": {Status: runlane.StatusSucceeded},
		"failed":    {Status: runlane.StatusFailed},
		"cancelled": {Status: runlane.StatusCancelled},
	}
	for _, status := range runlane.Statuses() {
		f, run := &Flow{record: &lane.FlowRecord{}}, &runlane.Run{Status: status}
		if got := f.deriveNode(run); (got == runlane.FlowActive) != status.Active() {
			t.Errorf("a node whose run is %s is %s", status, got)
		}
	}
	active, waiting := "calls sleeps queued delayed running stopping retrying", "asks blocked input"
	has := func(nodes []string, of string) bool {
		for _, n := range nodes {
			if strings.Contains(" "+of+" ", " "+n+" ") {
				return true
			}
		}
		return false
	}
	want := func(nodes []string, closed bool) runlane.FlowStatus {
		switch {
		case !closed && !has(nodes, "waits "+active+" "+waiting+" succeeded failed cancelled"):
			return runlane.FlowPending
		case has(nodes, active):
			return runlane.FlowActive
		case has(nodes, waiting):
			return runlane.FlowWaiting
		case has(nodes, "waits"), !closed && has(nodes, "missing"):
			return runlane.FlowActive
		case closed:
			return runlane.FlowCancelled
		case has(nodes, "failed"):
			return runlane.FlowFailed
		case has(nodes, "succeeded"):
			return runlane.FlowCompleted
		default:
			return runlane.FlowCancelled
		}
	}
	seen := map[runlane.FlowStatus]int{}
	for a := range kinds {
		for b := range kinds {
			for c := range kinds {
				for closed := range 2 {
					f := &Flow{record: &lane.FlowRecord{Closed: closed}, graph: &graph{}}
					runs, nodes := map[int]*runlane.Run{}, []string{a, b, c}
					for i, name := range nodes {
						f.plan.Nodes = append(f.plan.Nodes, plannedNode{Name: fmt.Sprint(i)})
						if kinds[name] != nil {
							runs[i] = kinds[name]
						}
					}
					got := f.deriveStatus(runs)
					seen[got]++
					if want := want(nodes, closed > 0); got != want {
						t.Errorf("%v, cancelled %d times: %s, want %s", nodes, closed, got, want)
					}
				}
			}
		}
	}
	for _, status := range runlane.FlowStatuses() {
		if seen[status] == 0 {
			t.Errorf("no flow is %s", status)
		}
	}
}
