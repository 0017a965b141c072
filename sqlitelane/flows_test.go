package sqlitelane_test

import (
	"maps"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane"
	"github.com/runlane/runlane-go/sqlitelane/internal/powerloss"
)

// flowLists are the ways in which flows are listed. Of so many flows of [sqlitelane.Storage.MultiplyFlows] some are
// before the moment.
func flowLists(n int) map[string]lane.FlowQuery {
	moment, page := flowsBegan.Add(time.Duration(n)*time.Millisecond*3/5), lane.PageQuery{Environment: deedsEnvironment}
	return map[string]lane.FlowQuery{
		"open":            {PageQuery: page},
		"to be tended":    {PageQuery: page, Before: moment},
		"finished":        {PageQuery: page, Finished: true},
		"finished before": {PageQuery: page, Finished: true, Before: moment},
	}
}

var flowsBegan = time.UnixMilli(1000)

// behind is the place behind so many flows of a list.
func behind(t *testing.T, s *sqlitelane.Storage, q lane.FlowQuery, n int) runlane.Cursor {
	t.Helper()
	for n > 0 {
		q.Limit = min(n, runlane.MaxPageLimit)
		page, err := s.ListFlows(t.Context(), &q)
		if err != nil {
			t.Fatal(err)
		}
		if q.After = page.Next; len(page.Items) < q.Limit || q.After == "" {
			t.Fatalf("the list ends after %d of %d flows", len(page.Items), q.Limit)
		}
		n -= q.Limit
	}
	return q.After
}

// What a page of flows costs is told by what SQLite reads from the file for it with nothing in its memory: it does not
// grow with the flows that there are, at the beginning of a list or in its middle.
func TestListFlows_ReadsNoMoreOfAFileOfManyFlows(t *testing.T) {
	t.Parallel()
	few, many := flowReads(t, 1_000), flowReads(t, 100_000)
	for list, reads := range few {
		if reads == 0 || many[list] > 2*reads {
			t.Errorf("%s: %d reads of a file of 1,000 flows, %d of one of 100,000", list, reads, many[list])
		}
	}
	t.Log("of 1,000 flows:", few, "of 100,000:", many)
}

// flowReads are the reads for a page of each list of a file with so many flows of each sort.
func flowReads(t *testing.T, n int) map[string]int64 {
	t.Helper()
	disk, err := powerloss.NewDisk()
	if err != nil {
		t.Fatal(err)
	}
	path, reads := newPath(t), map[string]int64{}
	open := func() *sqlitelane.Storage {
		t.Helper()
		s := sqlitelane.NewStorageOn(path, disk, true)
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		return s
	}
	end := func(s *sqlitelane.Storage) {
		t.Helper()
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s, lists := open(), flowLists(n)
	middles := map[string]lane.FlowQuery{}
	if err := s.MultiplyFlows(deedsEnvironment, n, flowsBegan); err != nil {
		t.Fatal(err)
	}
	for name, q := range lists {
		q.After = behind(t, s, q, n/2)
		middles[name+", middle"] = q
	}
	maps.Copy(lists, middles)
	end(s)
	for name, q := range lists {
		s, q.Limit = open(), 10
		before := disk.Reads()
		page, err := s.ListFlows(t.Context(), &q)
		if err != nil || len(page.Items) != q.Limit {
			t.Fatal(name, err, page)
		}
		reads[name] = disk.Reads() - before
		end(s)
	}
	return reads
}

// Flows of one moment are all listed, a page at a time, in the order of their ids.
func TestListFlows_OfOneMoment(t *testing.T) {
	t.Parallel()
	s := started(t, newPath(t), 0)
	const n = 7
	for i := range n {
		f := lane.FlowRecord{
			ID: runlane.FlowID('a' + rune((i*3)%n)), CreatedAt: noon, FinishedAt: noon.Add(time.Duration(i/6) * time.Hour),
			Status: runlane.FlowCompleted, Plan: []byte("{}"),
		}
		if _, err := s.PutFlow(t.Context(), &lane.FlowCommand{Environment: deedsEnvironment, Flow: f}); err != nil {
			t.Fatal(err)
		}
	}
	for limit := 1; limit <= n+1; limit++ {
		q, got := &lane.FlowQuery{PageQuery: lane.PageQuery{Environment: deedsEnvironment, Limit: limit}, Finished: true}, ""
		for {
			page, err := s.ListFlows(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range page.Items {
				got += string(f.ID)
			}
			if q.After = page.Next; q.After == "" {
				break
			}
		}
		if got != "eabcdfg" {
			t.Errorf("pages of %d: %s", limit, got)
		}
	}
}
