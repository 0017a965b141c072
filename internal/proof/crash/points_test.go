package crash_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata/points.txt")

// exceptions are calls that lead to effects and that no scenario comes to, with the reason.
var exceptions = map[string]string{
	"core.(*Runs).OrphanedBodies > lane.BodyStore.Delete":                      bodies,
	"core.(*bodyStorage).AppendRunEvents > lane.Storage.AppendRunEvents":       bodies,
	"core.(*bodyStorage).ClaimRunLease > lane.Storage.ClaimRunLease":           bodies,
	"core.(*bodyStorage).HeartbeatRunLease > lane.Storage.HeartbeatRunLease":   bodies,
	"core.(*bodyStorage).KeepRecord > lane.Storage.KeepRecord":                 bodies,
	"core.(*bodyStorage).NotifyEnd > lane.Storage.NotifyEnd":                   bodies,
	"core.(*bodyStorage).PruneRuns > core.(*bodyStorage).remove":               bodies,
	"core.(*bodyStorage).PruneRuns > lane.Storage.PruneRuns":                   bodies,
	"core.(*bodyStorage).ReserveRunDispatch > lane.Storage.ReserveRunDispatch": bodies,
	"core.(*bodyStorage).SendSignal > lane.Storage.SendSignal":                 bodies,
	"core.(*bodyStorage).remove > lane.BodyStore.Delete":                       bodies,
	"core.(*calling).cancelPart > core.(*calling).cancelPart (1)":              halved,
	"core.(*calling).cancelPart > core.(*calling).cancelPart (2)":              halved,
	// Real time: the first heartbeat is written 16 s after an attempt began, the first extension of a message 20 s after it came.
	"core.(*execution).beat > core.(*execution).keep":                               heartbeat,
	"core.(*execution).keep > core.(*execution).renew":                              heartbeat,
	"core.(*execution).renew > lane.Storage.HeartbeatRunLease":                      heartbeat,
	"core.(*executionSet).sweep > core.(*execution).beat":                           heartbeat,
	"core.(*codedStorage).HeartbeatRunLease > lane.Storage.HeartbeatRunLease (1)":   heartbeat,
	"core.(*codedStorage).HeartbeatRunLease > lane.Storage.HeartbeatRunLease (2)":   heartbeat,
	"core.(*observedStorage).HeartbeatRunLease > lane.Storage.HeartbeatRunLease":    heartbeat,
	"dynamostore.(*Store).HeartbeatRunLease > dynamostore.(*Store).AppendRunEvents": heartbeat,
	"sqstransport.(*keeper).extend > sqstransport.(*Transport).changeVisibility":    "an extension makes a message come again later, and nothing else",
	"sqstransport.(*keeper).run > sqstransport.(*keeper).extend":                    "as the one above",
	"sqstransport.(*receiver).run > sqstransport.(*keeper).run":                     "as the one above",
	"core.(*execution).ReportProgress > core.(*execution).flushNotes":               "a second after a note; the note at the end of an attempt is the same write",

	"core.(*execution).Checkpoint > core.(*execution).flushCheckpoints": "a second after a checkpoint; the one at the end of an attempt is the same write",

	"core.(*attemptLog).Write > core.(*attemptLog).flushLater": lineLater,
	"core.(*attemptLog).flushLater > core.(*attemptLog).flush": lineLater,

	// What an attempt remembers first keeps the version of its task before; in the scenarios that is a step.
	"core.(*execution).Began > core.(*execution).load":                versioned,
	"core.(*execution).Checkpoint > core.(*execution).noteCheckpoint": versioned,
	"core.(*execution).Restore > core.(*execution).load":              versioned,
	"core.(*execution).Snapshots > core.(*execution).load":            versioned,
	"core.(*execution).noteCheckpoint > core.(*execution).load":       versioned,

	"core.(*execution).keptLimit > core.(*execution).load":    versioned,
	"core.(*execution).lookFor > core.(*execution).keptLimit": versioned,

	// Real time: a run's second reservation is made two minutes after its first.
	"core.(*delivery).deliver > core.(*delivery).giveBackSlot":                           givenBack,
	"core.(*delivery).take > core.(*delivery).wantSlot":                                  askedAgain,
	"core.(*delivery).wantSlot > core.(*Runtime).requestDelivery":                        askedAgain,
	"core.(*delivery).wantSlot > core.(*Runtime).reserveFreed":                           askedAgain,
	"core.(*delivery).giveBackSlot > core.(*Runtime).handOver":                           givenBack,
	"core.(*delivery).giveBackSlot > lane.Storage.ReleaseRunDispatch":                    givenBack,
	"dynamostore.(*Store).ReleaseRunDispatch > dynamostore/internal/ddb.(*Table).Delete": givenBack,

	// Rates: real time passes between the scenarios' wakeups, so none is late, and no line is long.
	"core.(*Runtime).create > core.(*Runtime).commitCreation (2)":     "a run for later in a bounded queue: one commit, as of a run that finds no slot",
	"core.(*Runtime).create > core.(*Runtime).commitCreation (3)":     lined,
	"core.(*Runtime).reserve > core.(*Runtime).takeTicket":            lined,
	"dynamostore.(*Store).create > dynamostore.(*Store).creationSlot": "a run that executes at once at a rate: as before a claim",
	"core.(*Runtime).sendTicketed > core.(*Runtime).send":             "as publishing without tickets",
	"core.(*Runtime).wants > core.(*Runtime).reserveFreed":            lined,
	"core.(*delivery).late > core.(*Runtime).publishReserved":         lateStart,
	"core.(*delivery).late > core.(*Runtime).requestDelivery":         lateStart,
	"core.(*delivery).late > core.(*Runtime).reserveFor":              lateStart,
	"core.(*delivery).late > core.(*Runtime).sendDelayed":             lateStart,
	"core.(*delivery).late > core.(*Runtime).takeTicket":              lateStart,
	"core.(*delivery).offerTicket > core.(*Runtime).offerNext":        lined,
	"core.(*delivery).take > core.(*delivery).late":                   lateStart,
	"core.(*delivery).take > core.(*delivery).offerTicket":            lined,
	"dynamostore.(*Store).creationSlot > dynamostore.(*Store).start":  "a start that is counted and not used costs an interval, as before a claim",

	// The writes of an operator's pruning, which a scenario comes to.
	"core.(*tick).prune > core.(*looking).look":                               pruned,
	"core.(*looking).look > core.(*looking).passes":                           pruned,
	"core.(*looking).passes > core.(*looking).pass":                           pruned,
	"core.(*looking).pass > lane.Storage.PruneRuns":                           pruned,
	"core.(*looking).look > core.(*tick).pruneFlows":                          pruned,
	"core.(*looking).look > lane.Storage.PutKeep":                             lookedAt,
	"dynamostore.(*Store).PutKeep > dynamostore/internal/ddb.(*Table).Update": lookedAt,
	"core.(*tick).pruneFlows > core.(*pruning).flows":                         pruned,

	// Races: another process is faster between two requests of this process. The write that follows is one that scenarios come to.
	"core.(*Runtime).announce > core.(*Runtime).reserveFreed":                  "a slot was freed after the trigger had found none",
	"core.(*Runtime).reserveFreed > core.(*Runtime).reserveAndPublish":         "a slot was freed after the trigger had found none",
	"core.(*tick).request > core.(*Runtime).failAbandoned":                     "an attempt was abandoned after the stage that fails such runs",
	"core.(*execution).finish > core.(*execution).ended (2)":                   "an answer was lost, and its outcome found",
	"dynamostore.(*Store).ReserveRunDispatch > dynamostore.(*Store).refuse":    "the slot that the scan saw was taken",
	"dynamostore.(*Store).acquire > dynamostore.(*Store).refuse":               "the slot that the commit wanted was taken",
	"dynamostore.(*Store).complete > dynamostore/internal/ddb.(*Table).Update": "another process completed a later occurrence",
	"core.(*delivery).suspect > core.(*Runtime).sendDelayed":                   "another suspect is executing just then; it is the send of a wakeup that comes early",
	"core.(*delivery).judge > core.(*delivery).suspect":                        "as the one above",
	"core.(*delivery).deliver > core.(*delivery).judge (1)":                    "as the one above",
	"core.(*delivery).deliver > core.(*delivery).judge (2)":                    "as the one above",
	"core.(*execution).once > core.(*execution).finish (2)":                    "a signal came between look and suspension, and the attempt's time was over just then",
	"core.(*codedStorage).SendSignal > lane.Storage.SendSignal (3)":            "with a codec, a signal that ends a wait; without one it is the same call",
	"core.(*batch).run > core.(*batch).run":                                    "the code of an item panicked; the others go on by the same calls",

	"core/internal/schedule.(*evaluation).claimFirst > core/internal/schedule.(*evaluation).skipBlocked":       passed,
	"core/internal/schedule.(*evaluation).fire > core/internal/schedule.(*evaluation).skipBlocked":             passed,
	"core/internal/schedule.(*evaluation).skipBlocked > core/internal/schedule.(*evaluation).put":              passed,
	"core/internal/schedule.(*evaluation).evaluate > core/internal/schedule.(*evaluation).keepPendingAgain":    pendsAgain,
	"core/internal/schedule.(*evaluation).keepPendingAgain > core/internal/schedule.(*evaluation).keepPending": pendsAgain,
	"core/internal/schedule.(*evaluation).evaluate > core/internal/schedule.(*evaluation).takeOver":            tookOver,
	"core/internal/schedule.(*evaluation).takeOver > core/internal/schedule.(*evaluation).put":                 tookOver,

	// Calls: what a scenario comes to by another way of the same calls.
	"core.(*Runtime).CallRuns > core.(*Runtime).Trigger":                    "the trigger of an application, which has its scenarios",
	"core.(*Runtime).appendEvent > core.(*Runtime).notifyIfPending":         "the end of a called run by a tick; it is told by the same call as that by a cancellation",
	"core.(*codedStorage).NotifyEnd > lane.Storage.NotifyEnd (2)":           "with a codec, an end that ends a wait; without one it is the same call",
	"core.(*observedStorage).NotifyEnd > lane.Storage.NotifyEnd":            "with hooks; without them it is the same call",
	"core.(*delivery).take > core.(*Runtime).appendEvent":                   "one commit: a called run that was made after the cancellation of its caller is cancelled",
	"core.(*tick).notifyEnds > lane.Storage.ListRunsToNotify":               "it reads, and moves no marker",
	"dynamostore.(*Store).ListRunsToNotify > dynamostore.(*Store).scanRefs": "as the one above",

	// Clients.
	"core.(*Claim).Block > core.(*Claim).end":                                byClient,
	"core.(*Claim).CallRuns > core.(*Claim).callSuspending":                  byClient,
	"core.(*Claim).CallRuns > core.(*execution).CallRuns":                    byClient,
	"core.(*Claim).Signal > core.(*execution).Signal":                        byClient,
	"core.(*Claim).SignalNode > core.(*execution).SignalNode":                byClient,
	"core.(*Claim).Snapshot > core.(*Claim).record":                          byClient,
	"core.(*Claim).StartFlow > core.(*Runtime).startFlow":                    byClient,
	"core.(*Runtime).startFlow > core/internal/flow.(*Flows).Start (2)":      "the same call, with a tracer",
	"core.(*Claim).Trigger > core.(*execution).Trigger":                      byClient,
	"core.(*Claim).record > core.(*Claim).callSuspending":                    byClient,
	"core.(*Claim).record > core.(*execution).Remember":                      byClient,
	"core.(*Runtime).Claim > core.(*claiming).takeNow":                       byClient,
	"core.(*claiming).takeNow > core.(*delivery).deliver":                    byClient,
	"core.(*claiming).takeNow > core.(*delivery).next":                       byClient,
	"core.(*Claim).Complete > core.(*Claim).end":                             byClient,
	"core.(*Claim).Fail > core.(*Claim).end":                                 byClient,
	"core.(*Claim).Heartbeat > core.(*Claim).end":                            byClient,
	"core.(*Claim).Heartbeat > core.(*execution).keep":                       byClient,
	"core.(*Claim).Keep > core.(*Claim).record":                              byClient,
	"core.(*Claim).Progress > core.(*execution).ReportProgress":              byClient,
	"core.(*Claim).Release > core.(*Claim).end (1)":                          byClient,
	"core.(*Claim).Release > core.(*Claim).end (2)":                          byClient,
	"core.(*Claim).Sleep > core.(*Claim).callSuspending":                     byClient,
	"core.(*Claim).Sleep > core.(*execution).Sleep":                          byClient,
	"core.(*Claim).Wait > core.(*Claim).callSuspending":                      byClient,
	"core.(*Claim).Wait > core.(*execution).Wait":                            byClient,
	"core.(*Claim).end > core.(*execution).finish":                           byClient,
	"core.(*Claim).returnOrRelease > core.(*Claim).Release":                  byClient,
	"core.(*Claim).callSuspending > core.(*Claim).end":                       byClient,
	"core.(*Runtime).Claim > core.(*claiming).answer":                        byClient,
	"core.(*Runtime).Claim > core/internal/remote.(*Search).Run":             byClient,
	"core.(*claiming).Look > core.(*delivery).next":                          byClient,
	"core.(*claiming).Receive > core.(*delivery).deliver":                    byClient,
	"core.(*claiming).Receive > lane.Receiver.Receive":                       byClient,
	"core.(*claiming).answer > core.(*Claim).returnOrRelease":                byClient,
	"core.(*claiming).takeNow > core.(*claiming).answer":                     byClient,
	"core/internal/remote.(*Search).Run > core/internal/remote.Host.Look":    byClient,
	"core/internal/remote.(*Search).Run > core/internal/remote.Host.Receive": byClient,
	"core.(*Runtime).Maintain > core.(*Runtime).tickLoop":                    ticksAlone,

	// Flows.
	"core/internal/flow.(*Flow).decide > core/internal/flow.Host.CancelWaiting (1)": "a dependent that a teller cancels faster than the sweep of a cancelled flow, by the same commit",
	"core/internal/flow.(*Flow).sweep > core/internal/flow.(*Flow).judge":           "what goes after runs that were never made; the rest is judged by the tellers of the cancelled ones, by the same call",
	"core/internal/flow.(*Flow).sweep > core/internal/flow.(*Flow).finish":          "the teller of the last end has written it, by the same call",

	// Looks that move a marker: in a tick the stage of cancellations has looked at the same rows before.
	"core.(*tick).deliver > core.(*tick).scan":                                       looked,
	"core.(*tick).failAbandoned > core.(*tick).scan":                                 looked,
	"core.(*tick).redeliver > lane.Storage.ListRunsNeedingRedelivery":                looked,
	"core.(*tick).scan > lane.Storage.ListRunsNeedingDelivery":                       looked,
	"core.(*tick).sendAhead > lane.Storage.ListRunsNeedingDelivery":                  looked,
	"dynamostore.(*Store).ListRunsNeedingDelivery > dynamostore.(*Store).scanRefs":   looked,
	"dynamostore.(*Store).ListRunsNeedingRedelivery > dynamostore.(*Store).scanRefs": looked,

	// Sizes.
	"core.(*batch).trigger > core.(*batch).publish":                                "after a hundred wakeups of one batch; the rest of a batch is published by the same call",
	"dynamostore.(*Store).ListRunsNeedingDispatch > dynamostore.(*Store).saveWalk": "after hundreds of full partitions: where the next scan begins, which may be anywhere",
	"dynamostore.(*Store).saveWalk > dynamostore/internal/ddb.(*Table).Update":     "as the one above",

	// Not on this lane, or not by the engine.
	"core.(*Runtime).offerSlot > lane.Storage.ListRunsNeedingDispatch":          "asks for one key, and then nothing is moved",
	"core.(*Runtime).rest > core/internal/schedule.(*Scheduler).Fire":           "where one process alone has the state",
	"core.(*Runtime).tickLoop > core.(*Runtime).rest":                           "as the one above",
	"dynamostore.(*Store).RequeueDeadLetters > dynamostore.(*Store).moveMarker": "the runtime requeues by a new delivery request; the method is the lane's",
	"dynamostore.(*Store).RequeueDeadLetters > dynamostore.(*Store).updateRow":  "as the one above",
	"sqstransport.(*Transport).send > sqstransport.(*Transport).sendBatch (2)":  "to a FIFO queue, the same request",
	"functions.Start > functions.newHandler":                                    "chooses a function; package lambdatest kills the programs themselves",
	"functions.newHandler > functions.bridge":                                   "as the one above",
	"functions.Bridge > functions.bridge":                                       "as the one above",
	"functions.newHandler > functions.Relay":                                    "as the one above",
	"functions.newHandler > functions.Tick":                                     "as the one above",

	// Forwards that the compiler may put into their callers, so that no stack shows them.
	"core.(*Runs).RerunAll > core.(*Runs).repeatAll": "passes its arguments on",
	"core.(*Runs).RetryAll > core.(*Runs).repeatAll": "passes its arguments on",
}

const (
	bodies     = "no lane of a scenario has a store of bodies; TestBodies_DeathInBetween_LeavesOrphans has the order of the writes"
	heartbeat  = "a heartbeat is a commit of one event by the owner, like an outcome"
	byClient   = "the write of a handler's attempt, which has its scenarios: between two requests of a client no process keeps anything"
	ticksAlone = "the ticks of a worker"
	passed     = "a process with a wrong clock completed a later occurrence; it is the write of a schedule's mark, as after every evaluation"
	pendsAgain = "of several missed occurrences of queue_latest, the later ones: the same write as of the first"
	tookOver   = "a program with other times; it is the write of a schedule's mark, as after every evaluation"
	givenBack  = "one deletion, which changes no run; time frees the slot otherwise"
	askedAgain = "one commit, by which a run whose slot was given back waits for one like any other; then the tick reserves by the same calls"
	lined      = "a ticket and a reservation, as the tick makes them for runs in line"
	lateStart  = "a ticket, then one commit and its wakeup; the tick does the same when the reservation is over"
	halved     = "a damaged run among those to be asked: the same reading of fewer, and no run is damaged by a death"
	lineLater  = "a second after a line; the lines at the end of an attempt are the same write"
	versioned  = "the same write as before a step"
	lookedAt   = "how far a look is: without it the next look does the same again"
	pruned     = "the deletions of an operator's pruning, which has its scenario"
	looked     = "the same move, of a row that the first look has left"
)

// uncovered wants every call that leads to an effect to have been on the stack of one, or to be an exception with its reason.
func uncovered(sites []site, seen map[string]bool, exceptions map[string]string) []string {
	var faults []string
	known := map[string]bool{}
	for _, s := range sites {
		known[s.name] = true
		if !seen[s.name] && exceptions[s.name] == "" {
			faults = append(faults, fmt.Sprintf("no scenario comes to %s (%s:%d): an effect without a point", s.name, s.file, s.first))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(exceptions)) {
		if !known[name] {
			faults = append(faults, fmt.Sprintf("the exception %s is no call that leads to an effect any more", name))
		}
	}
	return faults
}

func TestUncovered_EffectWithoutScenario_IsFound(t *testing.T) {
	t.Parallel()
	sites := []site{{name: "core.a > core.b", file: "core/a.go", first: 7}, {name: "core.b > UpdateItem"}, {name: "core.c > UpdateItem"}}
	got := uncovered(sites, map[string]bool{"core.b > UpdateItem": true},
		map[string]string{"core.c > UpdateItem": "a reason", "core.gone > core.b": "a reason"})
	want := []string{
		"no scenario comes to core.a > core.b (core/a.go:7): an effect without a point",
		"the exception core.gone > core.b is no call that leads to an effect any more",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The list of sites is generated from the source, so that a new effect is seen by the reviewer of the change.
func TestPoints_ListIsThatOfTheSource(t *testing.T) {
	t.Parallel()
	sites, err := scan(moduleFolder(t))
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	fmt.Fprintln(&text, "# Every call of the engine that leads to an effect. Generated: go test ./internal/proof/crash -run TestPoints -update")
	for _, s := range sites {
		fmt.Fprintln(&text, s.name)
	}
	golden := filepath.Join("testdata", "points.txt")
	if *update {
		if err := os.WriteFile(golden, text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Errorf("the source has other effects than testdata/points.txt (-list +source); give each new one a scenario, then -update:\n%s", diff)
	}
}

func moduleFolder(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return folder
}
