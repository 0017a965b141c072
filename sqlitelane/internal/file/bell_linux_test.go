package file

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// A user who may write the file but does not own it rings, too. A test of another user rings as its own alone.
func TestRing_AnyUserWhoMayWrite(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "a.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{filepath.Dir(folder), folder, path} { // for all users
		if err := os.Chmod(place, 0o777); err != nil { // it is empty
			t.Fatal(err)
		}
	}
	users := []int{os.Getuid()}
	if os.Getuid() == 0 {
		users = append(users, 65534)
	}
	for _, user := range users {
		b, err := newBell(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := as(user, func() error { return ring(path) }); err != nil {
			t.Errorf("user %d: %v", user, err)
		} else if err := b.wait(); err != nil {
			t.Errorf("user %d: %v", user, err)
		}
		if err := b.close(); err != nil {
			t.Error(err)
		}
	}
}

// as calls do with a user's rights to files.
func as(user int, do func() error) error {
	done := make(chan error, 1)
	go func() { // ends with its thread, which has these rights from then on
		runtime.LockOSThread()
		if err := syscall.Setfsuid(user); err != nil {
			done <- err
			return
		}
		done <- do()
	}()
	return <-done
}
