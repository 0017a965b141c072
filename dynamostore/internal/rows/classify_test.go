package rows

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// statusCase is a run of a row of the table of statuses, which has something to be done from one instant on.
type statusCase struct {
	run     *Run
	row     *Delivery
	bounded bool
	due     Millis     // 0: never by itself
	kind    MarkerKind // until then; "" for a row that says nothing of that
	until   Millis     // at which the marker stands, where due does not say it
}

func outboxRow(status lane.OutboxStatus, change func(*Delivery)) *Delivery {
	d := &Delivery{Status: string(status), AvailableAt: rowTime, RequestedAt: rowTime}
	if change != nil {
		change(d)
	}
	return d
}

func statusCases() map[string][]statusCase {
	end, later := rowTime+60*rowSecond, rowTime+rowHour
	first := rowTime + Millis(RedeliverFirst/time.Millisecond)
	failed := outboxRow(lane.OutboxFailed, func(d *Delivery) { d.NextAt = later })
	soon := outboxRow(lane.OutboxFailed, func(d *Delivery) { d.NextAt = end })
	claimed := outboxRow(lane.OutboxClaimed, func(d *Delivery) { d.ClaimUntil = end })
	sent := outboxRow(lane.OutboxPublished, func(d *Delivery) { d.Published = rowTime })
	dead := outboxRow(lane.OutboxDeadLettered, func(d *Delivery) { d.DeadAt = rowTime - rowHour })
	ahead := outboxRow(lane.OutboxPending, func(d *Delivery) { d.AvailableAt = later })
	run := func(s runlane.Status, changes ...func(*Run)) *Run { return rowRun(s, Marker{}, changes...) }
	queued, scheduled := runlane.StatusQueued, runlane.StatusScheduled
	return map[string][]statusCase{
		"cancellation requested": {{run: run(runlane.StatusCancellationRequested, leasedUntil(end)), due: end, kind: Leased}},
		"running": {
			{run: run(runlane.StatusRunning, leasedUntil(end)), due: end, kind: Leased},
			{run: run(runlane.StatusRunning, leasedUntil(end)), bounded: true, due: end, kind: Leased},
		},
		"scheduled, in a queue without a limit, its row not published": {
			{run: run(scheduled, runnableFrom(later)), row: ahead, due: later, kind: Waiting},
			{run: run(scheduled, runnableFrom(rowTime)), row: failed, due: later, kind: Unpublished},
			{run: run(scheduled, runnableFrom(rowTime)), row: claimed, due: end, kind: Unpublished},
			{run: run(scheduled, runnableFrom(rowTime)), row: dead, kind: DeadLetter, until: rowTime - rowHour},
		},
		"scheduled, any other": {
			{run: run(scheduled, runnableFrom(later)), row: sent, due: later, kind: Waiting},
			{run: run(scheduled, runnableFrom(later)), due: later, kind: Waiting},
			{run: run(scheduled, runnableFrom(later)), row: ahead, bounded: true, due: later, kind: Waiting},
		},
		"queued, due, no live reservation, in a queue with a limit": {
			{run: run(queued), bounded: true, due: rowTime},
			{run: run(queued, reservedUntil(end)), row: sent, bounded: true, due: end},
		},
		"queued, due, no live reservation, its last one over or without a row": {
			{run: run(queued, reservedUntil(end)), row: sent, due: end},
			{run: run(queued), due: rowTime},
		},
		"queued, its row not published": {
			{run: run(queued), row: failed, due: later, kind: Unpublished},
			{run: run(queued), row: claimed, due: end, kind: Unpublished},
			{run: run(queued), row: dead, kind: DeadLetter, until: rowTime - rowHour},
			{run: run(queued, reservedUntil(later)), row: soon, bounded: true, due: end, kind: Unpublished},
			{run: run(queued, reservedUntil(end)), row: failed, bounded: true, kind: Leased, until: end},
		},
		"queued, its row published": {
			{run: run(queued), row: sent, due: first, kind: Parked},
			{run: run(queued, reservedUntil(end)), row: sent, bounded: true, kind: Leased, until: end},
			{run: run(queued, reservedUntil(later)), row: sent, bounded: true, kind: Parked, until: first},
		},
		"queued, without a row": {
			{run: run(queued, runnableFrom(later)), due: later, kind: Deliverable},
			{run: run(queued, reservedUntil(end)), kind: Leased, due: end},
		},
		"retrying, released": {
			{run: run(runlane.StatusRetrying, runnableFrom(later)), due: later, kind: Waiting},
			{run: run(runlane.StatusReleased, runnableFrom(later)), bounded: true, due: later, kind: Waiting},
		},
	}
}

// thenStage is the stage that the last column of the table names.
func thenStage(then string, c *statusCase) Stage {
	recovering := Delivering
	if c.bounded {
		recovering = Dispatching
	}
	return map[string]Stage{
		"the cancellation is finished": Finalizing,
		"it is recovered":              recovering,
		"the row is published":         Publishing,
		"it gets a slot":               Dispatching,
		"its wakeup is sent again":     Redelivering,
	}[then]
}

func TestClassify(t *testing.T) {
	t.Parallel()
	table, cases := layoutTable(t, "| Status | Decided by |"), statusCases()
	for row := range table {
		if len(cases[row]) == 0 {
			t.Errorf("no case classifies %q", row)
		}
	}
	for row, runs := range cases {
		cells, ok := table[row]
		if !ok {
			t.Errorf("the table has no row %q", row)
			continue
		}
		var reached []MarkerKind
		for i := range runs {
			c := &runs[i]
			if c.row != nil {
				c.run.DeliveryLog = 1
			}
			if c.kind != "" {
				reached = append(reached, c.kind)
				before, want := rowTime+30*rowSecond, Marker{c.kind, c.due}
				if c.until != 0 {
					want.At = c.until
				}
				if got := Classify(c.run, c.row, before, c.bounded); got.Stage != NoStage || got.Marker != want {
					t.Errorf("%s (%d) before: %+v, want %v", row, i, got, want)
				}
			}
			stage := thenStage(cells[2], c)
			if got := Classify(c.run, c.row, c.due, c.bounded); c.due != 0 && (!got.Concerns(stage) || got.Since != c.due) {
				t.Errorf("%s (%d) when due: %+v, want %q (stage %d) since %d", row, i, got, cells[2], stage, c.due)
			}
		}
		for _, kind := range kindsIn(cells[1]) {
			if !slices.Contains(reached, kind) {
				t.Errorf("%s: no case has the marker `%s`", row, kind)
			}
		}
		for _, kind := range reached {
			if !slices.Contains(kindsIn(cells[1]), kind) {
				t.Errorf("%s: the table does not have the marker `%s` of a case", row, kind)
			}
		}
	}
}

// inspectionCase is an inspection of a run by a stage, at rowTime.
type inspectionCase struct {
	run     *Run
	row     *Delivery
	bounded bool
	stage   Stage
	at      Millis // of the marker afterwards
}

func inspectionCases() map[string][]inspectionCase {
	end, later, past := rowTime+60*rowSecond, rowTime+rowHour, rowTime-rowHour
	q, o, d := Marker{Deliverable, past}, Marker{Unpublished, past}, Marker{Slotless, past}
	queued, scheduled, running := runlane.StatusQueued, runlane.StatusScheduled, runlane.StatusRunning
	published := func(at Millis) *Delivery {
		return outboxRow(lane.OutboxPublished, func(d *Delivery) { d.AvailableAt, d.Published = at, at })
	}
	next := func(at Millis) Millis { return at + Millis(RedeliverFirst/time.Millisecond) }
	pending := outboxRow(lane.OutboxPending, func(d *Delivery) { d.AvailableAt = past })
	return map[string][]inspectionCase{
		"an inspection finds the latest row claimed · failed and not due · dead": {
			{run: rowRun(queued, q), row: outboxRow(lane.OutboxClaimed, func(d *Delivery) { d.ClaimUntil = end }), stage: Publishing, at: end},
			{run: rowRun(queued, q), row: outboxRow(lane.OutboxFailed, func(d *Delivery) { d.NextAt = later }), stage: Publishing, at: later},
			{run: rowRun(queued, q), row: outboxRow(lane.OutboxDeadLettered, func(d *Delivery) { d.DeadAt = past }), stage: Publishing, at: past},
		},
		"an inspection finds a live lease or reservation · a published queued run · a due bounded run without slot, " +
			"also when a claim or a reservation is refused for it": {
			{run: rowRun(running, q, leasedUntil(end)), stage: Delivering, at: end},
			{run: rowRun(queued, q), row: published(rowTime), stage: Redelivering, at: next(rowTime)},
			// the third is what dispatching does where a slot is refused: TestSlotMarkers
		},
		"an inspection for cancellations, or for what needs a delivery, finds in `q` a run whose redelivery is due: " +
			"that may be put off while its queue is behind": {
			{run: rowRun(queued, q), row: published(past), stage: Finalizing, at: next(past)},
			{run: rowRun(queued, q), row: published(past), stage: Delivering, at: next(past)},
		},
		"an inspection finds in `d`, of a queue without a limit, a run whose wakeup was never handed over": {
			{run: rowRun(queued, d), row: pending, stage: Delivering, at: past},
		},
		"an inspection finds in `o` a run that is due for another stage than publishing, which does not read `o`: " +
			"to be delivered · to be redelivered, once its reservation has been over for a minute": {
			{run: rowRun(scheduled, o, runnableFrom(past)), row: published(past), stage: Publishing, at: past},
			{run: rowRun(queued, o, reservedUntil(rowTime-60*rowSecond)), row: pending, stage: Publishing, at: past},
		},
	}
}

func TestNextMarker(t *testing.T) {
	t.Parallel()
	cases, isInspection := inspectionCases(), func(row string) bool { return strings.HasPrefix(row, "an inspection ") }
	walkMarkerTable(t, cases, isInspection, func(row, says string, c *inspectionCase) {
		to, moves := NextMarker(c.run, Classify(c.run, c.row, rowTime, c.bounded), c.stage, rowTime)
		if want := (Marker{kindsIn(says)[0], c.at}); !moves || to != want {
			t.Errorf("%s: %v, %t, the table says %q: %v", row, to, moves, says, want)
		}
	})
}
