package sqlitelane_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/runlane/runlane-go"
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

// A file that may be read but not written, and a folder in which no log can be made, are refused and left as they are.
func TestOpen_ReadOnly_IsRefusedAndLeftAsItIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, folder os.FileMode
	}{
		"a file":           {0o444, 0o777},
		"a folder":         {0o666, 0o555},
		"a file in both":   {0o444, 0o555},
		"a file of others": {0o000, 0o777},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := withRuns(t, 3)
			before := content(t, path)
			folder := filepath.Dir(path)
			if err := errors.Join(
				os.Chmod(path, c.file), os.Chmod(folder, c.folder), os.Chmod(filepath.Dir(folder), 0o755), // another user goes there
			); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := errors.Join(os.Chmod(path, 0o600), os.Chmod(folder, 0o700)); err != nil {
					t.Error(err)
				}
				if content(t, path) != before {
					t.Error("the file was changed")
				}
			}()
			asAnother(t, func() {
				_, err := sqlitelane.Open(t.Context(), path, nil)
				e, ok := errors.AsType[*runlane.Error](err)
				if !ok || e.Code != runlane.ErrConfigurationInvalid || e.Hint == "" || !strings.Contains(e.Message, "cannot be written") {
					t.Error(err)
				}
			})
		})
	}
}
