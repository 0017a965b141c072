package sqlitelane_test

import (
	"os"
	"testing"

	"github.com/runlane/runlane-go/sqlitelane"
)

const (
	// memory is where Linux has a file system that is no disk.
	memory = "/dev/shm"
	// memoryRoom is what has to be free there. Containers have 64 MB as a rule: too little.
	memoryRoom = 1 << 30
)

// memoryFolder is a folder whose files are synced in no time, where the system has one, for tests that do not go by the
// disk: power is lost by package powerloss, which counts syncs itself, and a process that is killed takes nothing of the
// system with it. Thousands of files are opened, and a disk spends most of the time on their syncs.
func memoryFolder(t testing.TB) string {
	t.Helper()
	if free, known := sqlitelane.FreeBytes(memory); !known || free < memoryRoom {
		return t.TempDir()
	}
	folder, err := os.MkdirTemp(memory, "runlane-") // t.TempDir is on a disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	return folder
}
