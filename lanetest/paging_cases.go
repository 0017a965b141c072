package lanetest

import (
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// docs/internals/contract.md, Pages and cursors.
func pagingCases() []storageCase {
	return []storageCase{
		{"ScansCoverEverythingExactlyOnce", needsLeases, pagingScans},
		{"EventsCoverEverythingExactlyOnceBothWays", needsBoth(needsHistory, needsLeases), pagingEvents},
		{"RunsCoverEverythingExactlyOnce", needsBoth(needsHistory, needsLeases), pagingRuns},
		{"CursorsOfAnotherRequestAreRefused", needsBoth(needsHistory, needsLeases), pagingCursors},
		{"LimitsAreValidated", needsBoth(needsHistory, needsLeases), pagingLimits},
		{"CursorsOfEveryScanBelongToOneRequest", needsBoth(needsQueues, needsRedelivery), pagingScanCursors},
		{"EveryScanCoversEverythingBehindRowsThatItSkips", needsBoth(needsQueues, needsRedelivery), pagingEveryScan},
	}
}

// Rows of other queues lie between those that are wanted: they must neither fill pages nor end the list.
func pagingScans(t *testing.T, b *bundle) {
	end := noon.Add(time.Minute)
	var all, wanted []runlane.RunID
	for i := range 9 {
		queue := runlane.QueueName("skipped")
		if i%3 == 2 {
			queue = "wanted"
		}
		// some are due at the same instant
		run := b.running(noon, end.Add(time.Duration(i%4)*time.Second), RunOptions{Queue: queue})
		all = append(all, run.ID)
		if queue == "wanted" {
			wanted = append(wanted, run.ID)
		}
	}
	for limit := 1; limit <= len(all)+1; limit++ {
		for what, list := range map[string]scan{
			"runnable":         b.storage.ListRunnableRuns,
			"needing delivery": b.storage.ListRunsNeedingDelivery,
		} {
			q := b.due(noon.Add(time.Hour))
			q.Limit = limit
			b.eventually(func() string { return difference(sorted(all), sorted(refIDs(b.scanAll(list, q)))) })
			q.Queues = []runlane.QueueName{"wanted"}
			b.eventually(func() string { return difference(sorted(wanted), sorted(refIDs(b.scanAll(list, q)))) })
			if t.Failed() {
				t.Fatalf("scan for %s with limit %d", what, limit)
			}
		}
	}
}

func pagingEvents(t *testing.T, b *bundle) {
	run := b.running(noon, noon.Add(time.Minute), RunOptions{})
	beats := make([]runlane.EventBody, 3)
	for i := range beats {
		beats[i] = &runlane.RunLeaseHeartbeat{Lease: run.Lease}
	}
	run = b.push(run, noon, beats...)
	run = b.push(run, noon, Succeeded(run, nil))
	n := run.EventSequence
	for limit := 1; limit <= int(n)+1; limit++ {
		for _, descending := range []bool{false, true} {
			q := &lane.EventQuery{
				PageQuery:  lane.PageQuery{Environment: b.env, Limit: limit},
				RunID:      run.ID,
				Descending: descending,
			}
			events := collect(t, &q.PageQuery, func() (*runlane.Page[runlane.EventRecord], error) {
				return b.storage.ListRunEvents(b.ctx(), q)
			})
			if int64(len(events)) != n {
				t.Fatalf("limit %d, descending %t: %d events, want %d", limit, descending, len(events), n)
			}
			for i, e := range events {
				want := int64(i) + 1
				if descending {
					want = n - int64(i)
				}
				if e.Sequence != want {
					t.Fatalf(
						"limit %d, descending %t: event %d has sequence %d, want %d",
						limit,
						descending,
						i,
						e.Sequence,
						want,
					)
				}
			}
		}
	}
}

func pagingRuns(_ *testing.T, b *bundle) {
	var want []runlane.RunID
	for _, run := range b.everyStatus() {
		want = append(want, run.ID)
	}
	for limit := 1; limit <= len(want)+1; limit++ {
		q := &lane.RunQuery{PageQuery: lane.PageQuery{Environment: b.env, Limit: limit}}
		b.eventually(func() string { return difference(sorted(want), sorted(b.listRuns(q))) })
	}
}

func (b *bundle) listRuns(q *lane.RunQuery) []runlane.RunID {
	b.t.Helper()
	var ids []runlane.RunID
	for _, s := range collect(b.t, &q.PageQuery, func() (*runlane.Page[runlane.RunSummary], error) {
		return b.storage.ListRuns(b.ctx(), q)
	}) {
		ids = append(ids, s.ID)
	}
	return ids
}

func pagingCursors(t *testing.T, b *bundle) {
	run := b.running(noon, noon.Add(time.Minute), RunOptions{})
	other := b.running(noon, noon.Add(time.Minute), RunOptions{})
	at := noon.Add(time.Hour)
	page := lane.PageQuery{Environment: b.env, Limit: 1}

	refuse := func(what string, err error) {
		t.Helper()
		if runlane.CodeOf(err) != runlane.ErrValidationFailed {
			t.Errorf("%s: error is %v, want %q", what, err, runlane.ErrValidationFailed)
		}
	}
	events := func(
		id runlane.RunID, env runlane.Environment, descending bool, after runlane.Cursor,
	) (runlane.Cursor, error) {
		p, err := b.storage.ListRunEvents(b.ctx(), &lane.EventQuery{
			PageQuery: lane.PageQuery{Environment: env, Limit: 1, After: after}, RunID: id, Descending: descending,
		})
		if err != nil {
			return "", err
		}
		return p.Next, nil
	}
	next := must(events(run.ID, b.env, false, ""))(t)
	if next == "" {
		t.Fatal("no cursor for the second event")
	}
	refuseEvents := func(
		what string, id runlane.RunID, env runlane.Environment, descending bool, after runlane.Cursor,
	) {
		t.Helper()
		_, err := events(id, env, descending, after)
		refuse(what, err)
	}
	refuseEvents("events of another run", other.ID, b.env, false, next)
	refuseEvents("events in the other direction", run.ID, b.env, true, next)
	refuseEvents("events of another environment", run.ID, b.env+"-x", false, next)
	refuseEvents("events, with a cursor that was never one", run.ID, b.env, false, "not a cursor")
	refuseEvents("events, with a cursor cut short", run.ID, b.env, false, next[:len(next)-4])

	scanned := b.firstCursor(func() (runlane.Cursor, error) {
		p, err := b.storage.ListRunnableRuns(b.ctx(), &lane.DueQuery{PageQuery: page, At: at})
		if err != nil {
			return "", err
		}
		return p.Next, nil
	})
	page.After = scanned
	_, err := b.storage.ListRunnableRuns(b.ctx(), &lane.DueQuery{
		PageQuery: page,
		At:        at,
		Queues:    []runlane.QueueName{"another"},
	})
	refuse("scan of other queues", err)
	_, err = b.storage.ListRunsNeedingDelivery(b.ctx(), &lane.DueQuery{PageQuery: page, At: at})
	refuse("another scan", err)
	_, err = events(run.ID, b.env, false, scanned)
	refuse("events with a scan's cursor", err)

	listed := b.firstCursor(func() (runlane.Cursor, error) {
		p, err := b.storage.ListRuns(b.ctx(), &lane.RunQuery{PageQuery: lane.PageQuery{Environment: b.env, Limit: 1}})
		if err != nil {
			return "", err
		}
		return p.Next, nil
	})
	page.After = listed
	_, err = b.storage.ListRuns(b.ctx(), &lane.RunQuery{PageQuery: page, TaskID: "another"})
	refuse("runs with another filter", err)
	page.Environment = b.env + "-x"
	_, err = b.storage.ListRuns(b.ctx(), &lane.RunQuery{PageQuery: page})
	refuse("runs of another environment", err)
}

// firstCursor reads until there is a second page.
func (b *bundle) firstCursor(read func() (runlane.Cursor, error)) runlane.Cursor {
	b.t.Helper()
	var next runlane.Cursor
	b.eventually(func() string {
		if next = must(read())(b.t); next == "" {
			return "no cursor for the second page"
		}
		return ""
	})
	return next
}

func pagingLimits(t *testing.T, b *bundle) {
	run := b.create(noon, RunOptions{})
	for _, limit := range []int{-1, runlane.MaxPageLimit + 1} {
		page := lane.PageQuery{Environment: b.env, Limit: limit}
		_, err := b.storage.ListRunnableRuns(b.ctx(), &lane.DueQuery{PageQuery: page, At: noon})
		wantError(t, err, runlane.ErrValidationFailed)
		_, err = b.storage.ListRunsNeedingDelivery(b.ctx(), &lane.DueQuery{PageQuery: page, At: noon})
		wantError(t, err, runlane.ErrValidationFailed)
		_, err = b.storage.ListRunEvents(b.ctx(), &lane.EventQuery{PageQuery: page, RunID: run.ID})
		wantError(t, err, runlane.ErrValidationFailed)
		_, err = b.storage.ListRuns(b.ctx(), &lane.RunQuery{PageQuery: page})
		wantError(t, err, runlane.ErrValidationFailed)
	}
}
