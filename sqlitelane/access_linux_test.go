package sqlitelane_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
	"github.com/runlane/runlane-go/sqlitelane"
)

// asAnother calls as a user who owns nothing, where the tests run as root: a thread changes its user, and ends with its
// goroutine.
func asAnother(t *testing.T, call func()) {
	t.Helper()
	if os.Getuid() != 0 {
		call()
		return
	}
	done := make(chan syscall.Errno)
	go func() {
		runtime.LockOSThread() // and never unlocked
		const another = 65534
		_, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, another, another, another)
		if errno == 0 {
			call()
		}
		done <- errno
	}()
	if errno := <-done; errno != 0 {
		t.Fatal(errno)
	}
}

// A file that may be read and not written, or is in such a folder, is read, whether others have it open or not. What
// would write is refused, and nothing is changed.
func TestOpen_ReadOnly_IsReadAndLeftAsItIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, folder os.FileMode
		used, hidden bool
	}{
		"a file":              {file: 0o444, folder: 0o777},
		"a folder":            {file: 0o666, folder: 0o555},
		"a file in both":      {file: 0o444, folder: 0o555},
		"a file that is used": {file: 0o444, folder: 0o555, used: true},
		"a file of others":    {file: 0o000, folder: 0o777, hidden: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := withRuns(t, 3)
			want := 3
			if c.used {
				l, err := sqlitelane.Open(t.Context(), path, nil)
				if err = errors.Join(err, l.Start(t.Context(), lane.StartOptions{})); err != nil {
					t.Fatal(err)
				}
				defer func() { _ = l.Close(context.Background()) }()
				made := lanetest.NewFactory("default").Creation(t, noon, lanetest.RunOptions{ID: "run_fresh"}) // in the log alone
				if _, err := l.Storage.AppendRunEvents(t.Context(), made); err != nil {
					t.Fatal(err)
				}
				want++
			}
			folder := filepath.Dir(path)
			shared, _ := filepath.Glob(path + "-*")
			for _, beside := range shared {
				if err := os.Chmod(beside, c.file); err != nil {
					t.Fatal(err)
				}
			}
			before, names := content(t, path), beside(t, folder)
			if err := errors.Join(
				os.Chmod(path, c.file), os.Chmod(folder, c.folder), os.Chmod(filepath.Dir(folder), 0o755), // another user goes there
			); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := errors.Join(os.Chmod(path, 0o600), os.Chmod(folder, 0o700)); err != nil {
					t.Error(err)
				}
				if content(t, path) != before || !slices.Equal(beside(t, folder), names) {
					t.Errorf("the file was changed, or what is beside it: %q, now %q", names, beside(t, folder))
				}
			}()
			asAnother(t, func() {
				refused := func(doing string, err error) {
					e, ok := errors.AsType[*runlane.Error](err)
					if !ok || e.Code != runlane.ErrConfigurationInvalid || e.Hint == "" || !strings.Contains(e.Message, "cannot be") {
						t.Errorf("%s: %v", doing, err)
					}
				}
				l, err := sqlitelane.Open(t.Context(), path, nil)
				if c.hidden {
					refused("open", err)
					return
				}
				if err == nil {
					err = l.Start(t.Context(), lane.StartOptions{})
				}
				if err != nil {
					t.Error(err)
					return
				}
				page, err := l.Storage.ListRuns(t.Context(), &lane.RunQuery{PageQuery: lane.PageQuery{Environment: "default"}})
				if err != nil || len(page.Items) != want {
					t.Errorf("%+v, %v: want %d runs", page, err, want)
				}
				_, err = l.Storage.AppendRunEvents(t.Context(), lanetest.NewFactory("default").Creation(t, noon, lanetest.RunOptions{}))
				refused("a write", err)
				refused("receiving", l.Transport.(lane.Receiver).Receive(t.Context(), []runlane.QueueName{"mail"}, 1, nil))
				if err := l.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// beside are the names of a folder.
func beside(t *testing.T, folder string) (names []string) {
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
