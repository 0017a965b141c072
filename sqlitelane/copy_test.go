package sqlitelane_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/sqlitelane"
)

func names(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Copies are made while another process writes. Each is a lane, has all that was committed before it was asked for, and
// leaves nothing else behind.
func TestCopyTo_WhileAnotherWrites(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	writer, s := started(t, path, 0), started(t, path, 0)
	f := lanetest.NewFactory("default")
	ctx, stop := context.WithCancel(t.Context())
	var mu sync.Mutex
	var committed []runlane.RunID
	ended := make(chan error, 1)
	more := make(chan struct{}, 1)
	go func() { // ends with ctx
		for ctx.Err() == nil {
			c := f.Creation(t, noon, lanetest.RunOptions{Payload: noise(2000)})
			if _, err := writer.AppendRunEvents(context.WithoutCancel(ctx), c); err != nil {
				ended <- err
				return
			}
			mu.Lock()
			committed = append(committed, c.Projected.ID)
			mu.Unlock()
			select {
			case more <- struct{}{}:
			default:
			}
		}
		ended <- nil
	}()
	folder := t.TempDir()
	for _, name := range []string{"first.db", "second.db", "third.db"} {
		<-more
		mu.Lock()
		before := append([]runlane.RunID(nil), committed...)
		mu.Unlock()
		copied := filepath.Join(folder, name)
		size, err := s.CopyTo(t.Context(), copied)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(copied); err != nil || info.Size() != size || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		read := started(t, copied, 0)
		runs, err := read.GetRuns(t.Context(), &lane.RunsQuery{Environment: "default", IDs: before})
		if err != nil || len(runs) != len(before) {
			t.Errorf("%d of %d runs, %v", len(runs), len(before), err)
		}
		if err := read.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, left := range names(t, folder) {
		if left = strings.TrimSuffix(left, "-mark"); !strings.HasSuffix(left, ".db") || strings.Count(left, ".") > 1 {
			t.Errorf("%s is left", left)
		}
	}
}

func TestCopyTo_OverwritesNothing(t *testing.T) {
	t.Parallel()
	s := started(t, withRuns(t, 3), 0)
	folder := t.TempDir()
	there := filepath.Join(folder, "there")
	if err := os.WriteFile(there, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{there, folder, filepath.Join(folder, "absent", "copy.db")} {
		if _, err := s.CopyTo(t.Context(), path); !errors.Is(err, runlane.ErrValidationFailed) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if text, err := os.ReadFile(there); err != nil || string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
	if left := names(t, folder); len(left) != 1 {
		t.Errorf("left are %v", left)
	}
}

// A damaged page is no error of the look, and one of the copy.
func TestExamine_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	path := withRuns(t, 200)
	s := started(t, path, 0)
	findings, err := s.Examine(t.Context())
	if err != nil || len(findings) != 6 {
		t.Fatalf("%+v, %v", findings, err)
	}
	for _, f := range findings {
		if f.Broken || f.Detail == "" || f.Check == "" {
			t.Errorf("%+v", f)
		}
	}
	if !strings.Contains(findings[0].Detail, filepath.Base(path)+": format 1") {
		t.Error(findings[0].Detail)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt(make([]byte, 4096), info.Size()/2/4096*4096); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	s = started(t, path, 0)
	findings, err = s.Examine(t.Context())
	if err != nil || !findings[1].Broken || findings[1].Fix == "" {
		t.Errorf("%+v, %v", findings, err)
	}
	folder := t.TempDir()
	if _, err := s.CopyTo(t.Context(), filepath.Join(folder, "copy.db")); err == nil {
		t.Error("a copy of a damaged file is made")
	}
	if left := names(t, folder); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

// Locks of a file are its process's, and keep no other part of that out.
func TestRestoreTo_FileThatThisProcessUses_IsRefused(t *testing.T) {
	t.Parallel()
	path, s := newPath(t), started(t, withRuns(t, 3), 0)
	user := sqlitelane.NewStorage(path, 0)
	if err := user.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, link} {
		if _, err := s.RestoreTo(t.Context(), name); runlane.CodeOf(err) != runlane.ErrValidationFailed {
			t.Error(err)
		}
	}
	add(t, user, 2) // it is not replaced
	if err := user.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RestoreTo(t.Context(), link); err != nil {
		t.Error(err)
	}
}
