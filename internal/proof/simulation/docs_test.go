package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go/internal/tools/costs"
)

// The assumptions that people read are those of the program.
func TestDocument_NamesTheConstants(t *testing.T) {
	t.Parallel()
	rows := map[string]string{}
	for _, line := range strings.Split(source(t, "docs/simulation.md"), "\n") {
		if cells := strings.Split(strings.Trim(line, "|"), " | "); len(cells) == 3 {
			rows[strings.TrimSpace(cells[0])] = cells[1]
		}
	}
	ms := func(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }
	for row, want := range map[string]string{
		"writes and reads of a partition a second": number(partitionWrites) + " and " + number(partitionReads),
		"new on-demand table, and each index of it": fmt.Sprintf("%s writes a second, taken as %d partitions each",
			number(freshWrites), freshWrites/partitionWrites),
		"quota of an on-demand table, and of each index by itself": number(tableQuota) + " writes a second",
		"when a partition splits":                                  fmt.Sprintf("after %.0f min above half its writes, or of refusals", heatTime.Minutes()),
		"batches at once of a mapping": fmt.Sprintf("%d at first, %d more a minute while messages wait, %s at most, `MaximumConcurrency` up to %s",
			firstBatches, batchesAMinute, number4(mostBatches), number(mostConcurrency)),
		"new environments of a function": fmt.Sprintf("%s in %.0f s", number(newEnvironments), environmentsWindow.Seconds()),
		"environments of an account":     number(accountConcurrency),
		"messages in flight":             number(mostInFlight),
		"looks into a shard of a stream": fmt.Sprintf("%d a second", streamPolls),
		"a transaction, a write, a read, a query of an index, a send": strings.Join(
			[]string{ms(transactionTime), ms(writeTime), ms(readTime), ms(indexTime), ms(sendTime)}, ", ") + " ms",
		"a receipt, a cold start": ms(pollTime) + " ms, " + ms(coldStart) + " ms",
		"the handler":             ms(handlerTime) + " ms ± 20 %",
	} {
		if got, ok := rows[row]; !ok || got != want {
			t.Errorf("docs/simulation.md says %q of %q, the program %q", got, row, want)
		}
	}
	if heatShare != 0.5 {
		t.Error("docs/simulation.md says half")
	}
}

// number4 has a comma and all its digits.
func number4(n int) string { return fmt.Sprintf("%d,%03d", n/1000, n%1000) }

// What the document computes, it computes from the program's numbers.
func TestDocument_ComputesRightly(t *testing.T) {
	t.Parallel()
	text := strings.Join(strings.Fields(source(t, "docs/simulation.md")), " ")
	fresh := ceilings(freshDeployment(), handlerTime)
	bridge := func(handler time.Duration) string { return number(ceilings(freshDeployment(), handler)[limitBridge]) }
	for _, want := range []string{
		fmt.Sprintf("%d write units of a run fall on the table, %d on `due`, %d on `done`", tableUnits, dueUnits, doneUnits),
		fmt.Sprintf("a batch of ten takes %d ms", batchTime(handlerTime).Milliseconds()),
		number(fresh[limitTable]) + " a second",
		"8 shards: " + number(fresh[limitDueShard]),
		"the quota of the table: " + number(fresh[limitTableQuota]),
		"`BridgeConcurrency` 50: " + number(fresh[limitBridge]),
		"the account's concurrency: " + number(fresh[limitAccount]),
		fmt.Sprintf("50 batches carry %s runs a second with a handler of 100 ms, %s with one of a second, %s with one of ten seconds",
			bridge(handlerTime), bridge(time.Second), number(float64(int(ceilings(freshDeployment(), 10*time.Second)[limitBridge]+0.5)))),
		fmt.Sprintf("256 make $%.2f a month", costs.Use{Reads: idleTickReads * 256}.Units()*costs.TicksAMonth/1e6),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("docs/simulation.md does not say %q", want)
		}
	}
	if sum := create.table + acknowledge.table + claim.table + succeed.table; sum != tableUnits {
		t.Errorf("a simple run writes %d units to the table", sum)
	}
}
