package browser

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/console/internal/world"
	"github.com/runlane/runlane-go/core"
)

func (o *operator) pausesSchedule() {
	paused := func() (is bool) {
		for s, err := range o.Schedules().List(o.t.Context()) {
			if err != nil {
				o.t.Fatal(err)
			}
			is = is || s.ID == "nightly" && s.Paused
		}
		return is
	}
	o.open("/schedules")
	o.click("pause")
	o.until("the schedule is paused", `[...document.querySelectorAll("main td")].some((e) => e.innerText == "paused")`)
	if !paused() {
		o.t.Error("the schedule is not paused")
	}
	o.click("resume")
	o.until("the schedule is active", `[...document.querySelectorAll("main td")].some((e) => e.innerText == "active")`)
	if paused() {
		o.t.Error("the schedule is paused")
	}
}

func (o *operator) triggersSchedule() {
	o.open("/schedules")
	o.click("trigger")
	o.onPage("mail.welcome")
	o.badge("queued")
	if run := o.by(o.opened(), runlane.StatusQueued, ""); run.Source.ScheduleID != "nightly" {
		o.t.Errorf("its source is %+v", run.Source)
	}
}

// What a cancellation means stands beside its button, and what still runs is named.
func (o *operator) cancelsFlow() {
	o.open("/flows/" + string(o.WaitingFlow))
	o.onPage("Flow release-43")
	o.shows("Still to run, where their conditions are met: undo, tell.")
	o.fill("#reason-cancel", "wrong branch")
	o.click("Cancel")
	o.status("test/darwin", "cancelled")
	o.status("undo", "queued")
	o.by(o.node(o.WaitingFlow, "test/darwin"), runlane.StatusCancelled, "wrong branch")
	o.fill("#reason-cancel-everything", "it was undone by hand")
	o.click("Cancel everything")
	o.status("undo", "cancelled")
	o.badge("cancelled")
	o.by(o.node(o.WaitingFlow, "undo"), runlane.StatusCancelled, "it was undone by hand")
	if state, err := o.Flows().Get(o.t.Context(), o.WaitingFlow); err != nil || state.Status != runlane.FlowCancelled {
		o.t.Errorf("%+v, %v", state, err)
	}
}

// Its nodes are named before anything changes.
func (o *operator) retriesFlow() {
	failed := o.node(o.FailedFlow, "test/darwin")
	o.open("/flows/" + string(o.FailedFlow))
	o.onPage("Flow release-42")
	o.click("Retry what did not succeed…")
	o.onPage("Retry 4 nodes?")
	o.shows("deploy to all of the machines")
	if now := o.node(o.FailedFlow, "test/darwin"); now != failed {
		o.t.Errorf("the node's run is %s before it was sure, and was %s", now, failed)
	}
	o.fill("#reason", "the machine is back")
	o.click("They undid nothing: retry 4")
	o.onPage("Flow release-42")
	o.status("test/darwin", "queued")
	o.shows("Retried")
	now := o.node(o.FailedFlow, "test/darwin")
	if now == failed {
		o.t.Errorf("the node's run is still %s", failed)
	}
	o.by(now, runlane.StatusQueued, "the machine is back")
}

// node is the run of a node.
func (o *operator) node(flow runlane.FlowID, name string) runlane.RunID {
	o.t.Helper()
	state, err := o.Flows().Get(o.t.Context(), flow)
	if err != nil {
		o.t.Fatal(err)
	}
	node, ok := state.Node(name)
	if !ok {
		o.t.Fatalf("there is no node %s", name)
	}
	return node.RunID
}

func (o *operator) requeues() {
	o.refuses.Store(true)
	made, err := o.Trigger(o.t.Context(), world.Welcome.With([]byte(`1`)), nil)
	o.refuses.Store(false)
	if err != nil {
		o.t.Fatal(err)
	}
	run, dead := made.Run.ID, func() int {
		page, err := o.DeadLetters().List(o.t.Context(), nil)
		if err != nil {
			o.t.Fatal(err)
		}
		return len(page.Items)
	}
	if n := dead(); n != 1 {
		o.t.Fatalf("%d dead letters", n)
	}
	o.open("/deadletters")
	o.shows(string(run))
	o.shows("the queue takes none")
	o.click("Requeue")
	o.onPage("mail.welcome")
	o.badge("queued")
	o.by(run, runlane.StatusQueued, "")
	if n := dead(); n != 0 {
		o.t.Errorf("%d dead letters are left", n)
	}
	o.open("/deadletters")
	o.shows("There are none")
}

// More than a hundred want their number.
func (o *operator) cancelsMany() {
	const many = 101
	items := slices.Repeat([]core.BatchItem{{
		Call:    world.Welcome.With([]byte(`1`)),
		Options: &runlane.TriggerOptions{Queue: runlane.Queue{Name: "crowd"}, Delay: time.Hour},
	}}, many)
	if _, err := o.TriggerBatch(o.t.Context(), items); err != nil {
		o.t.Fatal(err)
	}
	o.asks("crowd", "Cancel", many)
	o.fill("#count", "100")
	o.click("cancel 101")
	o.shows("Type the number of runs, 101, to go on.")
	o.are("crowd", runlane.StatusScheduled, many)
	o.fill("#count", "101")
	o.fill("#reason", "wrong list")
	o.click("cancel 101")
	o.onPage("Runs")
	o.shows("cancelled")
	o.by(o.are("crowd", runlane.StatusCancelled, many)[0], runlane.StatusCancelled, "wrong list")
}

func (o *operator) resumesMany() {
	for range 2 {
		o.runNow(world.Later.With([]byte(`1`)), "quota")
	}
	o.asks("quota", "Resume", 2)
	o.are("quota", runlane.StatusReleased, 2)
	o.fill("#reason", "the quota is higher")
	o.click("resume 2")
	o.onPage("Runs")
	o.shows("queued")
	for _, run := range o.are("quota", runlane.StatusQueued, 2) {
		o.by(run, runlane.StatusQueued, "the quota is higher")
	}
}

func (o *operator) retriesMany() {
	o.repeatsMany(world.Broken.With([]byte(`1`)), "lost", "Retry", runlane.StatusFailed)
}

func (o *operator) rerunsMany() {
	o.repeatsMany(world.Welcome.With([]byte(`1`)), "sent", "Rerun", runlane.StatusSucceeded)
}

// repeatsMany has two runs that ended repeated: there are two more then, which name their sources.
func (o *operator) repeatsMany(call runlane.Call, queue runlane.QueueName, title string, ended runlane.Status) {
	o.t.Helper()
	for range 2 {
		o.runNow(call, queue)
	}
	o.asks(queue, title, 2)
	o.are(queue, runlane.StatusQueued, 0)
	o.fill("#reason", "once more")
	o.click(strings.ToLower(title) + " 2")
	o.onPage("Runs")
	o.shows("queued")
	old := o.are(queue, ended, 2)
	for _, run := range o.are(queue, runlane.StatusQueued, 2) {
		if made := o.by(run, runlane.StatusQueued, "once more"); !slices.Contains(old, made.Source.RunID) {
			o.t.Errorf("its source is %+v", made.Source)
		}
	}
}

// asks opens the runs of a queue, and what is asked before all of them are changed.
func (o *operator) asks(queue runlane.QueueName, title string, n int) {
	o.t.Helper()
	o.open("/runs")
	o.onPage("Runs")
	o.fill("#filter-queue", string(queue))
	o.click("Filter")
	o.until("the filter is in the address", fmt.Sprintf(`location.search.includes("queue=%s")`, queue))
	o.onPage("Runs")
	o.click(title + " all…")
	o.onPage(fmt.Sprintf("%s %d runs?", title, n))
}

// are the runs of a queue in a status: so many.
func (o *operator) are(queue runlane.QueueName, status runlane.Status, n int) (runs []runlane.RunID) {
	o.t.Helper()
	filter := core.RunFilter{Queue: queue, Statuses: []runlane.Status{status}}
	for run, err := range o.Runs().All(o.t.Context(), &core.ListOptions{RunFilter: filter}) {
		if err != nil {
			o.t.Fatal(err)
		}
		runs = append(runs, run.ID)
	}
	if len(runs) != n {
		o.t.Fatalf("%d runs of queue %s are %s, not %d", len(runs), queue, status, n)
	}
	return runs
}

func (o *operator) checks() {
	o.open("/doctor")
	o.onPage("Doctor")
	o.shows("Nothing has been checked yet.")
	o.click("Check everything")
	o.shows("Findings")
	found := says[map[string]string](o.person, `Object.fromEntries(
		[...document.querySelectorAll("main tbody tr")].map((r) => [r.cells[1].innerText, r.cells[0].innerText]))`)
	for _, check := range []string{"durability", "reading", "writing", "queues", "work that waits", "dead letters"} {
		want := "ok"
		if check == "durability" && !o.Lane().ProductionDurable {
			want = "warning"
		}
		if found[check] != want {
			o.t.Errorf("%s: %q, not %q", check, found[check], want)
		}
	}
}

func (o *operator) pausesQueue() {
	pauses := func() int {
		found, err := o.Queues().Pauses(o.t.Context())
		if err != nil {
			o.t.Fatal(err)
		}
		return len(found)
	}
	o.open("/queues")
	o.click("pause")
	o.until("the queue is paused", `[...document.querySelectorAll("main td button")].some((e) => e.innerText == "resume")`)
	if n := pauses(); n != 1 {
		o.t.Errorf("%d pauses", n)
	}
	o.click("resume")
	o.until("no queue is paused", `[...document.querySelectorAll("main td button")].every((e) => e.innerText == "pause")`)
}
