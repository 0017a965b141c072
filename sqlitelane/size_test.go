package sqlitelane_test

import (
	"os"
	"testing"
	"time"

	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/sqlitelane"
)

// A finished run takes at most 1,200 bytes of the file, and the file is small again once they are pruned.
func TestFile_BytesOfAFinishedRun_AndAfterPruning(t *testing.T) {
	t.Parallel()
	const n = 300
	path := newPath(t)
	// closed is the size of the file with the whole log in it.
	closed := func(work func(s *sqlitelane.Storage)) int64 {
		t.Helper()
		s := started(t, path, 0)
		work(s)
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	empty := closed(func(*sqlitelane.Storage) {})
	full := closed(func(s *sqlitelane.Storage) {
		d := &deeds{t: t, s: s, f: lanetest.NewFactory(deedsEnvironment), ack: func(string) {}}
		for range n {
			commit, err := d.create(lanetest.RunOptions{Payload: noise(200)})
			if err != nil {
				t.Fatal(err)
			}
			run, err := d.claim(commit.Run)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.append(run, lanetest.Succeeded(run, nil)); err != nil {
				t.Fatal(err)
			}
		}
	})
	if each := (full - empty) / n; each > 1200 || each < 200 {
		t.Errorf("a finished run takes %d bytes", each)
	}
	pruned := closed(func(s *sqlitelane.Storage) {
		progress, err := s.PruneRuns(t.Context(), &lane.PruneCommand{
			PageQuery: lane.PageQuery{Environment: deedsEnvironment, Limit: n}, OlderThan: time.Now().Add(time.Hour),
		})
		if err != nil || progress.Pruned != n {
			t.Fatal(progress, err)
		}
	})
	if pruned-empty > (full-empty)/5 {
		t.Errorf("%d bytes when empty, %d with runs, %d after pruning", empty, full, pruned)
	}
	t.Log("bytes when empty, with runs, after pruning:", empty, full, pruned)
}
