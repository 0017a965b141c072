package sqlitelane_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/crash"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/sqlitelane"
	"github.com/runlane/runlane-go/sqlitelane/internal/powerloss"
	sqlite3 "modernc.org/sqlite/lib"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func isConflict(err error) bool { return errors.Is(err, runlane.ErrStorageConflict) }

// alter changes a file behind the lane's back.
func alter(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

// withRuns is a file with runs, which no process uses.
func withRuns(t *testing.T, n int) (path string) {
	t.Helper()
	path = newPath(t)
	s := sqlitelane.NewStorage(path, 0)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := lanetest.NewFactory("default")
	for range n {
		if _, err := s.AppendRunEvents(t.Context(), f.Creation(t, noon, lanetest.RunOptions{Payload: noise(3000)})); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return path
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestOpen_RefusesWhatItCannotUseAndLeavesItAsItIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path func(t *testing.T) string
		says string
	}{
		"a newer format": {func(t *testing.T) string {
			t.Helper()
			path := withRuns(t, 1)
			alter(t, path, "PRAGMA user_version=2")
			return path
		}, "is of format 2, this program reads up to 1"},
		"another program's file": {func(t *testing.T) string {
			t.Helper()
			path := newPath(t)
			alter(t, path, "CREATE TABLE theirs(x)")
			return path
		}, "another program's"},
		"no SQLite file": {func(t *testing.T) string {
			t.Helper()
			path := newPath(t)
			if err := os.WriteFile(path, []byte(strings.Repeat("no database\n", 1000)), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}, "not a SQLite file"},
		"a damaged head": {func(t *testing.T) string {
			t.Helper()
			path := withRuns(t, 20)
			damage(t, path, 0)
			return path
		}, "is damaged"},
		"no folder": {func(t *testing.T) string { t.Helper(); return filepath.Join(t.TempDir(), "none", "runlane.db") }, "does not exist"},
		"a folder":  {func(t *testing.T) string { t.Helper(); return t.TempDir() }, "not a regular file"},
		"no path":   {func(*testing.T) string { return "" }, "no path"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := c.path(t)
			before := ""
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				before = content(t, path)
			}
			l, err := sqlitelane.Open(t.Context(), path, nil)
			if err == nil {
				t.Fatal("it opens", l)
			}
			e, ok := errors.AsType[*runlane.Error](err)
			if !ok || e.Code != runlane.ErrConfigurationInvalid || e.Hint == "" || !strings.Contains(e.Message, c.says) {
				t.Fatalf("%v", err)
			}
			if before != "" && content(t, path) != before {
				t.Error("the file was changed")
			}
		})
	}
}

func TestOpen_UnknownSyncIsRefused(t *testing.T) {
	t.Parallel()
	_, err := sqlitelane.Open(t.Context(), newPath(t), &sqlitelane.Options{Sync: "sometimes"})
	if runlane.CodeOf(err) != runlane.ErrConfigurationInvalid {
		t.Fatal(err)
	}
}

// damage overwrites a page.
func damage(t *testing.T, path string, page int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	offset := page * 4096
	if page == 0 {
		offset = 100 // behind the head, which says that it is a database
	}
	if _, err := f.WriteAt([]byte(strings.Repeat("\xff", 3000)), offset); err != nil {
		t.Fatal(err)
	}
}

// A damaged page is an error of what needs it, and of nothing else; nothing is written over it.
func TestDamagedPage_IsAnErrorOfWhatNeedsIt(t *testing.T) {
	t.Parallel()
	path := withRuns(t, 40)
	last := int64(len(content(t, path))/4096) - 1
	damage(t, path, last)   // of a payload, or of a table's leaf
	damage(t, path, last-2) // what a start reads lies before them
	s := started(t, path, 0)
	readable, damaged := 0, 0
	f := lanetest.NewFactory("default")
	for range 40 {
		_, err := s.GetRun(t.Context(), lane.RunKey{Environment: "default", RunID: f.NewRunID()})
		switch e, _ := errors.AsType[*runlane.Error](err); {
		case err == nil:
			readable++
		case e != nil && e.Code == runlane.ErrStorageUnavailable && !e.Retryable && strings.Contains(e.Message, "damaged") && e.Hint != "":
			damaged++
		case e != nil && e.Code == runlane.ErrInvariantViolation && e.Hint != "": // what is there does not decode
			damaged++
		default:
			t.Fatal(err)
		}
	}
	if readable == 0 || damaged == 0 {
		t.Fatalf("%d runs can be read, %d cannot: want some of each", readable, damaged)
	}
}

// What a disk refuses is an error that says so, whatever was committed stays, and writing goes on when the disk takes it
// again.
func TestRefusingDisk_LosesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refuse    func(*powerloss.Disk)
		says      string
		outcome   string // of a commit that the disk refused
		retryable bool
	}{
		"a full disk": {func(d *powerloss.Disk) { d.Fill(200_000) }, "is full", "not committed", true},
		"a file that became read-only": {
			func(d *powerloss.Disk) { d.Refuse(sqlite3.SQLITE_READONLY) }, "cannot be written", "unknown", false,
		},
		"a disk that fails": {
			func(d *powerloss.Disk) { d.Refuse(sqlite3.SQLITE_IOERR_WRITE) }, "cannot be read or written", "unknown", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk, err := powerloss.NewDisk()
			if err != nil {
				t.Fatal(err)
			}
			s := sqlitelane.NewStorageOn(newPath(t), disk, false)
			if err := s.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close(context.Background()) }()
			refused(t, s, func() { c.refuse(disk) }, runlane.Error{
				Message: c.says, Retryable: c.retryable, Meta: map[string]string{"outcome": c.outcome},
			}, func() {
				disk.Fill(-1)
				disk.Refuse(0)
			})
		})
	}
}

// refused creates runs until the disk takes no more, and goes on when it does.
func refused(t *testing.T, s *sqlitelane.Storage, refuse func(), want runlane.Error, allow func()) {
	t.Helper()
	f := lanetest.NewFactory("default")
	var there []runlane.RunID
	create := func() error {
		c := f.Creation(t, noon, lanetest.RunOptions{Payload: noise(3000)})
		_, err := s.AppendRunEvents(t.Context(), c)
		if err == nil {
			there = append(there, c.Projected.ID)
		}
		return err
	}
	for range 20 {
		if err := create(); err != nil {
			t.Fatal(err)
		}
	}
	refuse()
	var err error
	for err == nil && len(there) < 1000 {
		err = create()
	}
	e, ok := errors.AsType[*runlane.Error](err)
	if !ok || e.Code != runlane.ErrStorageUnavailable || !strings.Contains(e.Message, want.Message) || e.Hint == "" ||
		e.Retryable != want.Retryable || e.Meta["outcome"] != want.Meta["outcome"] {
		t.Fatalf("after %d runs: %+v", len(there), err)
	}
	check := func() {
		t.Helper()
		for _, id := range there {
			if _, err := s.GetRun(t.Context(), lane.RunKey{Environment: "default", RunID: id}); err != nil {
				t.Fatal(id, err)
			}
		}
		found, err := crash.Violations(t.Context(), s, "default")
		if err != nil || len(found) > 0 {
			t.Fatal(found, err)
		}
	}
	check()
	allow()
	if err := create(); err != nil {
		t.Fatal(err)
	}
	check()
	if fault, err := s.Sound(); err != nil || fault != "" {
		t.Error(fault, err)
	}
}

// onDisk is a storage on a disk that fails when it is told to.
func onDisk(t *testing.T) (*sqlitelane.Storage, *powerloss.Disk) {
	t.Helper()
	disk, err := powerloss.NewDisk()
	if err != nil {
		t.Fatal(err)
	}
	s := sqlitelane.NewStorageOn(newPath(t), disk, false)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s, disk
}

// A sync that fails leaves the outcome unknown, and the caller learns that. The next commit works.
func TestFailedSync_LeavesTheOutcomeUnknown(t *testing.T) {
	t.Parallel()
	s, disk := onDisk(t)
	f := lanetest.NewFactory("default")
	disk.FailSyncs(true)
	_, err := s.AppendRunEvents(t.Context(), f.Creation(t, noon, lanetest.RunOptions{}))
	e, ok := errors.AsType[*runlane.Error](err)
	if !ok || e.Code != runlane.ErrStorageUnavailable || e.Meta["outcome"] != "unknown" || !e.Retryable {
		t.Fatal(err)
	}
	disk.FailSyncs(false)
	if _, err := s.AppendRunEvents(t.Context(), f.Creation(t, noon, lanetest.RunOptions{})); err != nil {
		t.Fatal(err)
	}
	page, err := s.Check(t.Context(), &lane.PageQuery{Environment: "default"})
	if err != nil || len(page.Items) > 0 {
		t.Fatal(page, err)
	}
}

// Commits of callers at the same time share syncs.
func TestCommits_ShareASync(t *testing.T) {
	t.Parallel()
	disk, err := powerloss.NewDisk()
	if err != nil {
		t.Fatal(err)
	}
	disk.Slow = 2 * time.Millisecond
	s := sqlitelane.NewStorageOn(newPath(t), disk, false)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(context.Background()) }()
	f := lanetest.NewFactory("default")
	before := disk.Syncs()
	const commits = 320
	if err := spread(commits, 16, func() error {
		_, err := s.AppendRunEvents(t.Context(), f.Creation(t, noon, lanetest.RunOptions{}))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if syncs := disk.Syncs() - before; syncs > commits/2 {
		t.Fatalf("%d commits of 16 callers took %d syncs", commits, syncs)
	}
}
