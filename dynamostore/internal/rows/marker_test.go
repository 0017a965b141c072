package rows

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// layoutTable reads a table of docs/internals/layout.md: of each row the cells behind the first one. header is how the table begins.
func layoutTable(t *testing.T, header string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/internals/layout.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "\n"+header)
	if !found {
		t.Fatalf("the layout has no table that begins with %q", header)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string][]string{}
	for _, line := range strings.Split(table, "\n")[2:] {
		cells := strings.Split(strings.Trim(line, "| "), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if _, twice := rows[cells[0]]; twice {
			t.Fatalf("the layout has the row %q twice", cells[0])
		}
		rows[cells[0]] = cells[1:]
	}
	return rows
}

var kindInText = regexp.MustCompile("`([qoxwdple])`")

// kindsIn are the kinds of markers that a text names, in its order.
func kindsIn(text string) (kinds []MarkerKind) {
	for _, match := range kindInText.FindAllStringSubmatch(text, -1) {
		kinds = append(kinds, MarkerKind(match[1]))
	}
	return kinds
}

const (
	rowTime   = Millis(1_700_000_000_000) // when a commit or an inspection happens
	rowSecond = Millis(1000)
	rowHour   = 3600 * rowSecond
)

var rowKey = lane.RunKey{Environment: "test", RunID: "run_1"}

// rowRun is a run of the queue "default", updated just now, with a marker.
func rowRun(status runlane.Status, m Marker, changes ...func(*Run)) *Run {
	r := &Run{
		PK:        RunPK(rowKey),
		SK:        RunSK,
		Sequence:  7,
		Status:    string(status),
		Queue:     "default",
		CreatedAt: rowTime,
		UpdatedAt: rowTime,
	}
	for _, change := range changes {
		change(r)
	}
	if m != (Marker{}) {
		due := r.DueKey(m, Shards{Write: DefaultShards})
		r.DueP, r.DueA = due.Partition, due.Sort
	}
	return r
}

func leasedUntil(at Millis) func(*Run)   { return func(r *Run) { r.LeaseUntil = at } }
func runnableFrom(at Millis) func(*Run)  { return func(r *Run) { r.RunAt = at } }
func reservedUntil(at Millis) func(*Run) { return func(r *Run) { r.DispatchExpiresAt = at } }

// commitCase is a commit: the run before and after it, and what the change says beside.
type commitCase struct {
	before   *Run
	after    *Run
	last     runlane.EventBody
	bounded  bool
	byWakeup bool
	claimed  bool // the writer publishes the delivery itself
	at       Millis
}

// marker is the marker of the run once the commit is made; ok is false where it has none.
func (c *commitCase) marker() (m Marker, ok bool) {
	change := &Change{
		Transition: &lane.Transition{
			Events: []runlane.Event{{Body: c.last}},
			Projected: &runlane.Run{
				ID:                rowKey.RunID,
				Environment:       rowKey.Environment,
				Status:            c.after.State(),
				DispatchExpiresAt: c.after.DispatchExpiresAt.Time(),
			},
			Queue: runlane.Queue{Name: "default"},
		},
		Before:   c.before,
		ByWakeup: c.byWakeup,
		Shards:   Shards{Write: DefaultShards},
	}
	if c.bounded {
		change.Queue.Concurrency = 1
	}
	if c.claimed {
		change.Initial.ClaimUntil = rowTime.Time().Add(30 * time.Second)
	}
	change.setMarker(c.after)
	m, _, ok = c.after.Due().Parse()
	return m, ok
}

// commitCases has the cases of each row of the marker table about commits, in the order of the row's alternatives; a row that says one
// thing has any number.
func commitCases() map[string][]commitCase {
	end, later := rowTime+60*rowSecond, rowTime+rowHour
	request, claim := &runlane.RunDeliveryRequested{}, &runlane.RunLeaseClaimed{}
	q, w, p := Marker{Deliverable, rowTime - rowSecond}, Marker{Waiting, rowTime - rowSecond}, Marker{Parked, later}
	called := func(r *Run) { r.SourceType = string(runlane.SourceCall) }
	calls, finished := func(r *Run) { r.Calls = 1 }, func(r *Run) { r.FinishedAt = rowTime }
	queued := func(changes ...func(*Run)) *Run { return rowRun(runlane.StatusQueued, Marker{}, changes...) }
	running := func(m Marker) *Run { return rowRun(runlane.StatusRunning, m, leasedUntil(end)) }
	unclaimed := func(m Marker) *Run { return rowRun(runlane.StatusQueued, m) }
	return map[string][]commitCase{
		"created: eager · deferred · scheduled · bounded without slot": {
			{after: queued(), last: request, claimed: true, at: rowTime},
			{after: queued(), last: request, at: rowTime},
			{after: rowRun(runlane.StatusScheduled, Marker{}, runnableFrom(later)), last: request, at: later},
			{after: queued(), last: &runlane.RunCreated{}, bounded: true, at: rowTime},
		},
		"created or reserved with a slot": {
			{after: queued(reservedUntil(end)), last: request, bounded: true, claimed: true, at: rowTime},
			{before: unclaimed(Marker{Slotless, rowTime - rowHour}), after: queued(reservedUntil(end)), last: request, bounded: true, claimed: true, at: rowTime},
		},
		"retry, release": {
			{before: running(q), after: rowRun(runlane.StatusRetrying, Marker{}, runnableFrom(later)), last: &runlane.RunRetryScheduled{}, at: later},
			{before: running(q), after: rowRun(runlane.StatusReleased, Marker{}, runnableFrom(later)), last: &runlane.RunReleased{}, at: later},
			{before: running(q), after: rowRun(runlane.StatusReleased, Marker{}, runnableFrom(later)), last: &runlane.RunReleased{}, bounded: true, at: later},
		},
		"claimed by a wakeup, from `q` or `w` with `da` not after the lease's end": {
			{before: unclaimed(q), after: running(Marker{}), last: claim, byWakeup: true},
			{before: unclaimed(w), after: running(Marker{}), last: claim, byWakeup: true},
			{before: unclaimed(Marker{Waiting, end}), after: running(Marker{}), last: claim, byWakeup: true},
		},
		"any other claim; run now": {
			{before: unclaimed(q), after: running(Marker{}), last: claim, at: end},
			{before: unclaimed(p), after: running(Marker{}), last: claim, byWakeup: true, at: end},
			{before: unclaimed(Marker{Unpublished, rowTime}), after: running(Marker{}), last: claim, byWakeup: true, at: end},
			{before: unclaimed(Marker{Waiting, end + 1}), after: running(Marker{}), last: claim, byWakeup: true, at: end},
			{after: running(Marker{}), last: claim, at: end},
		},
		"heartbeat, cancellation request": {
			{before: running(q), after: running(Marker{}), last: &runlane.RunLeaseHeartbeat{}},
			{before: running(Marker{Leased, rowTime}), after: running(Marker{}), last: &runlane.RunLeaseHeartbeat{}},
			{before: running(q), after: rowRun(runlane.StatusCancellationRequested, Marker{}, leasedUntil(end)), last: &runlane.RunCancellationRequested{}},
		},
		"delivery request of recovery, redelivery or an operator's requeueing": {
			{before: running(q), after: queued(), last: request, claimed: true, at: rowTime},
			{before: unclaimed(p), after: queued(), last: request, claimed: true, at: rowTime},
			{before: unclaimed(Marker{DeadLetter, rowTime - rowHour}), after: queued(), last: request, claimed: true, at: rowTime},
		},
		"resumed: with a delivery · in a bounded queue": {
			{before: rowRun(runlane.StatusReleased, w), after: queued(), last: request, claimed: true, at: rowTime},
			{before: rowRun(runlane.StatusReleased, w), after: queued(), last: &runlane.RunResumed{}, bounded: true, at: rowTime},
		},
		"an expired running run that gets no slot": {
			{before: running(q), after: queued(), last: request, bounded: true, at: rowTime},
		},
		"terminal, of a run that was called · cancelled, of one that calls": {
			{before: running(q), after: rowRun(runlane.StatusSucceeded, Marker{}, called, finished), last: &runlane.RunSucceeded{}, at: rowTime},
			{before: unclaimed(w), after: rowRun(runlane.StatusCancelled, Marker{}, calls, finished), last: &runlane.RunCancelled{}, at: rowTime},
		},
		"terminal": {
			{before: running(q), after: rowRun(runlane.StatusFailed, Marker{}, calls, finished), last: &runlane.RunFailed{}},
			{before: running(q), after: rowRun(runlane.StatusSucceeded, Marker{}), last: &runlane.RunSucceeded{}},
			{before: unclaimed(w), after: rowRun(runlane.StatusCancelled, Marker{}), last: &runlane.RunCancelled{}},
		},
	}
}

// byMarks are the rows about marks of outbox rows, which store and read: TestMarkerTable of dynamostore has them.
var byMarks = []string{
	"`RequeueDeadLetters`, which the runtime does not call",
	"publish acknowledged, from `q` or `w` · from `o`",
	"publish failed · given up",
	"told",
	"the same for a row that is superseded, or whose run is no longer queued or scheduled",
}

func TestMarkerAfter(t *testing.T) {
	t.Parallel()
	isCommit := func(row string) bool {
		return !slices.Contains(byMarks, row) && !strings.HasPrefix(row, "an inspection ")
	}
	walkMarkerTable(t, commitCases(), isCommit, func(row, says string, c *commitCase) {
		got, active := c.marker()
		var want Marker
		switch kinds := kindsIn(says); {
		case strings.HasPrefix(says, "as it was"):
			want = c.before.Marker()
		case len(kinds) > 0:
			want = Marker{kinds[0], c.at}
		}
		if got != want || active == (row == "terminal") {
			t.Errorf("%s: %v, the table says %q: %v", row, got, says, want)
		}
	})
}

// walkMarkerTable calls check for each case of each row, with what the row says of it. Each row that has to have cases
// has them, and each case has its row.
func walkMarkerTable[C any](
	t *testing.T, cases map[string][]C, needsCases func(row string) bool, check func(row, says string, c *C),
) {
	t.Helper()
	table := layoutTable(t, "| Commit or inspection | Marker afterwards |")
	for row := range table {
		if _, ok := cases[row]; !ok && needsCases(row) {
			t.Errorf("no case has the row %q", row)
		}
	}
	for row, inRow := range cases {
		cells, ok := table[row]
		if !ok {
			t.Errorf("the marker table has no row %q", row)
			continue
		}
		alternatives := strings.Split(cells[0], " · ")
		for i := range inRow {
			says := cells[0]
			if len(alternatives) > 1 {
				says = alternatives[i]
			}
			check(row, says, &inRow[i])
		}
	}
}
