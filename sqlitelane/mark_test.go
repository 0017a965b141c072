package sqlitelane_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/sqlitelane"
)

// later is an environment that withRuns has not: its runs have the same ids.
const later = "later"

// add commits runs.
func add(t *testing.T, s *sqlitelane.Storage, n int) (ids []runlane.RunID) {
	t.Helper()
	f := lanetest.NewFactory(later)
	for range n {
		c := f.Creation(t, noon, lanetest.RunOptions{Payload: noise(3000)})
		if _, err := s.AppendRunEvents(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, c.Projected.ID)
	}
	return ids
}

// put writes a file as cp does.
func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// remains is a file as a killed process leaves it, with a log that is not in the file, and copies of it.
type remains struct {
	path         string
	early, saved string // contents of copies: made by cp while it was closed, and by CopyTo
	last         []runlane.RunID
}

func newRemains(t *testing.T) remains {
	t.Helper()
	live := withRuns(t, 20)
	k := remains{path: newPath(t), early: content(t, live)}
	s := started(t, live, 0)
	copied := newPath(t)
	if _, err := s.CopyTo(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	k.saved = content(t, copied)
	k.last = add(t, s, 20)
	for _, ending := range []string{"", "-wal", "-mark"} {
		put(t, k.path+ending, content(t, live+ending))
	}
	return k
}

// A log is carried only into the file that it was written for: another one in its place is refused, and nothing changes.
func TestOpen_FileThatWasReplacedBesideItsLog_IsRefused(t *testing.T) {
	t.Parallel()
	k := newRemains(t)
	whole := content(t, k.path)
	for name, other := range map[string]string{
		"a copy by backup": k.saved, "a copy by cp, from before": k.early, "another file": content(t, withRuns(t, 3)), "an empty file": "",
	} {
		put(t, k.path, other)
		log := content(t, k.path+"-wal")
		_, err := sqlitelane.Open(t.Context(), k.path, nil)
		e, ok := errors.AsType[*runlane.Error](err)
		if !ok || e.Code != runlane.ErrConfigurationInvalid || !strings.Contains(e.Message, "was replaced") || !strings.Contains(e.Hint, "restore") {
			t.Errorf("%s: %v", name, err)
		}
		if content(t, k.path) != other || content(t, k.path+"-wal") != log {
			t.Errorf("%s: something was changed", name)
		}
	}
	put(t, k.path, whole)
	s := started(t, k.path, 0)
	if runs, err := s.GetRuns(t.Context(), &lane.RunsQuery{Environment: later, IDs: k.last}); err != nil || len(runs) != len(k.last) {
		t.Errorf("%d of %d runs, %v", len(runs), len(k.last), err)
	}
}

// Without the log a copy is a file like any other, and so is a file whose mark is lost.
func TestOpen_WithoutALogOrAMark(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(k *remains) error{
		"a copy, the log removed": func(k *remains) error {
			put(t, k.path, k.saved)
			return os.Remove(k.path + "-wal")
		},
		"the mark removed": func(k *remains) error { return os.Remove(k.path + "-mark") },
		"an empty mark":    func(k *remains) error { return os.Truncate(k.path+"-mark", 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newRemains(t)
			if err := change(&k); err != nil {
				t.Fatal(err)
			}
			started(t, k.path, 0)
			if mark := content(t, k.path+"-mark"); strings.Count(mark, "\n") != 1 || len(mark) < 10 {
				t.Errorf("the mark is %q", mark)
			}
		})
	}
}

// A process that dies while it begins an epoch leaves a mark of two: either is the file's, and the next one settles it.
func TestOpen_EpochThatWasHalfBegun_IsNoReplacement(t *testing.T) {
	t.Parallel()
	k := newRemains(t)
	now := content(t, k.path+"-mark")
	put(t, k.path+"-mark", "AN-EPOCH-THAT-NEVER-BEGAN\n"+now)
	s := started(t, k.path, 0)
	if mark := content(t, k.path+"-mark"); mark != now {
		t.Errorf("the mark is %q, it was %q", mark, now)
	}
	if runs, err := s.GetRuns(t.Context(), &lane.RunsQuery{Environment: later, IDs: k.last}); err != nil || len(runs) != len(k.last) {
		t.Errorf("%d of %d runs, %v", len(runs), len(k.last), err)
	}
}

// A program whose file is moved, replaced or removed under it refuses to write, and loses nothing that it acknowledged.
func TestWrite_FileIsNotWhereItWas_IsRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(path string) error{
		"moved":           func(path string) error { return os.Rename(path, path+".moved") },
		"removed":         os.Remove,
		"its log removed": func(path string) error { return os.Remove(path + "-wal") },
		"linked":          func(path string) error { return os.Link(path, path+".linked") },
		"moved, and a link in its place": func(path string) error {
			return errors.Join(os.Rename(path, path+".moved"), os.Symlink(path+".moved", path))
		},
		"replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".new", nil, 0o600), os.Rename(path+".new", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := withRuns(t, 3)
			s := sqlitelane.NewStorage(path, 0)
			if err := s.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer s.Close(t.Context())
			add(t, s, 1)
			if err := change(path); err != nil {
				t.Fatal(err)
			}
			c := lanetest.NewFactory("after").Creation(t, noon, lanetest.RunOptions{})
			_, err := s.AppendRunEvents(t.Context(), c)
			e, ok := errors.AsType[*runlane.Error](err)
			if !ok || e.Code != runlane.ErrStorageUnavailable || e.Meta["outcome"] != "not committed" || e.Hint == "" {
				t.Error(err)
			}
		})
	}
}

// Who may write the file has to read and write its mark: it has the same mode, also where that changed since.
func TestMark_HasTheModeOfItsFile(t *testing.T) {
	t.Parallel()
	path := withRuns(t, 1)
	for _, mode := range []os.FileMode{0o660, 0o640, 0o600} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		s := started(t, path, 0)
		if info, err := os.Stat(path + "-mark"); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%o: %v %v", mode, info.Mode(), err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// Files are for their user alone, and a copy is not put beside the log of a file that was removed.
func TestFiles_RightsAndLogsLeftBehind(t *testing.T) {
	t.Parallel()
	path := withRuns(t, 3)
	s := started(t, path, 0)
	add(t, s, 1)
	for _, ending := range []string{"", "-wal", "-shm", "-mark"} {
		if info, err := os.Stat(path + ending); err != nil || info.Mode().Perm() != 0o600 {
			t.Error(ending, info, err)
		}
	}
	for _, ending := range []string{"-wal", "-shm", "-journal"} {
		copied := newPath(t)
		put(t, copied+ending, "left")
		if _, err := s.CopyTo(t.Context(), copied); runlane.CodeOf(err) != runlane.ErrValidationFailed {
			t.Error(ending, err)
		}
	}
}
