package crashtest

import (
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/awstest"
)

// account is what a world looks like in the end.
type account struct {
	w       *world
	items   map[string][]map[string]types.AttributeValue // by partition key
	runs    map[runlane.RunID]*runlane.Run
	entries map[entry]int
	lost    []runlane.RunID
	faults  []string
}

func (a *account) fault(format string, arguments ...any) {
	a.faults = append(a.faults, fmt.Sprintf(format, arguments...))
}

// settle judges a world in which two ticks have passed: promised runs are there, each run has ended or waits for something that has a
// name, nothing was executed more often than attempts began, no slot and no owner is held by anything that has ended.
func (w *world) settle(promised []runlane.RunID) *account {
	w.t.Helper()
	a := &account{w: w, faults: w.faults}
	a.read()
	for _, id := range promised {
		if a.runs[id] == nil && !w.gone[id] {
			a.lost = append(a.lost, id)
			a.fault("run %s was promised, and is not there", id)
		}
	}
	for id, run := range a.runs {
		a.judge(id, run)
	}
	for e, times := range a.entries {
		if times > 1 {
			a.fault("attempt %d of %s had its side effect %d times", e.attempt, e.run, times)
		}
		if run := a.runs[e.run]; run == nil && !w.gone[e.run] {
			a.fault("an attempt of %s executed, and the run is not there", e.run)
		} else if run != nil && e.attempt > run.Counters.Attempts {
			a.fault("attempt %d of %s executed, of %d", e.attempt, e.run, run.Counters.Attempts)
		}
	}
	a.slots()
	a.check()
	return a
}

// read takes the items of the environment and the runs among them.
func (a *account) read() {
	w := a.w
	w.t.Helper()
	a.items, a.runs = map[string][]map[string]types.AttributeValue{}, map[runlane.RunID]*runlane.Run{}
	in := &dynamodb.ScanInput{TableName: &w.table, ConsistentRead: aws.Bool(true)}
	var ids []runlane.RunID
	for {
		out, err := w.client.Scan(w.t.Context(), in)
		w.must(err)
		for _, item := range out.Items {
			pk, ok := strings.CutPrefix(textOf(item["pk"]), string(w.environment)+":")
			if !ok {
				continue
			}
			a.items[pk] = append(a.items[pk], item)
			if id, ok := strings.CutPrefix(pk, "run:"); ok && textOf(item["sk"]) == "run" {
				ids = append(ids, runlane.RunID(id))
			}
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			break
		}
	}
	for _, id := range ids {
		run, err := w.rt.Runs().Get(w.t.Context(), id)
		w.must(err)
		a.runs[id] = run
	}
	var err error
	a.entries, err = readLedger(w.ledger)
	w.must(err)
}

func textOf(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

func (a *account) judge(id runlane.RunID, run *runlane.Run) {
	w := a.w
	if run.Status.Active() {
		explained, err := w.rt.Runs().Explain(w.t.Context(), id)
		w.must(err)
		switch explained.Wait {
		case core.WaitTime:
			if !explained.Until.After(w.now()) {
				a.fault("%s waits for a time that is over", id)
			}
		default: // whatever that is, two ticks and all messages should have dealt with it
			a.lost = append(a.lost, id)
			a.fault("%s is %s and waits for %s until %s: %s", id, run.Status, explained.Wait, explained.Until.Format(time.RFC3339), explained.Next)
		}
		return
	}
	executed := 0
	for attempt := range run.Counters.Attempts {
		executed += a.entries[entry{id, attempt + 1}]
	}
	if run.Status == runlane.StatusSucceeded && a.entries[entry{id, run.Counters.Attempts}] != 1 {
		a.fault("%s succeeded by attempt %d, which had no side effect", id, run.Counters.Attempts)
	}
	if executed > run.Counters.Attempts {
		a.fault("%s executed %d times in %d attempts", id, executed, run.Counters.Attempts)
	}
}

// executed counts the side effects of all runs.
func (a *account) executed() int {
	n := 0
	for _, times := range a.entries {
		n += times
	}
	return n
}

// executions counts the side effects of each run.
func (a *account) executions() map[runlane.RunID]int {
	all := map[runlane.RunID]int{}
	for e, times := range a.entries {
		all[e.run] += times
	}
	return all
}

// slots finds those that are held although no run has them: of a run that ended, without an end or with one that lies ahead.
func (a *account) slots() {
	for pk, items := range a.items {
		if !strings.HasPrefix(pk, "slot:") {
			continue
		}
		for _, item := range items {
			holder := runlane.RunID(textOf(item["ru"]))
			if run := a.runs[holder]; run == nil || run.Status.Terminal() {
				if until, reserved := item["un"].(*types.AttributeValueMemberN); reserved && until.Value <= fmt.Sprint(a.w.now().UnixMilli()) {
					continue // a reservation that is over
				}
				a.fault("a slot is held by %s, which has ended", holder)
			}
		}
	}
}

// check asks the storage for broken invariants.
func (a *account) check() {
	a.w.t.Helper()
	found, err := awstest.Violations(a.w.t.Context(), a.w.storage, a.w.environment)
	a.w.must(err)
	for _, violation := range found {
		a.fault("%s: %s: %s", violation.RunID, violation.Rule, violation.Detail)
	}
}

// Judgements of scenarios.

// all wants every run to have ended so.
func (a *account) all(status runlane.Status) {
	for id, run := range a.runs {
		if run.Status != status {
			a.fault("%s is %s, not %s", id, run.Status, status)
		}
	}
}

// count wants so many runs.
func (a *account) count(want int) {
	if len(a.runs) != want {
		a.fault("there are %d runs, not %d", len(a.runs), want)
	}
}

// tries wants runs to have had at most so many attempts.
func (a *account) tries(most int) {
	for id, run := range a.runs {
		if run.Counters.Attempts > most {
			a.fault("%s had %d attempts", id, run.Counters.Attempts)
		}
	}
}

// noItems wants nothing to be left under a partition key.
func (a *account) noItems(prefix string) {
	for pk := range a.items {
		if strings.HasPrefix(pk, prefix) {
			a.fault("%d items are left under %s", len(a.items[pk]), pk)
		}
	}
}
