package cli

import (
	"context"

	"github.com/runlane/runlane-go"
)

// Optional abilities of storages in files, found with lane.As.

// environmentLister is implemented by storages that can list their environments cheaply.
type environmentLister interface {
	// Environments returns the names of environments that have runs, sorted.
	Environments(ctx context.Context) ([]runlane.Environment, error)
}

// fileCopier is implemented by storages that can copy all environments into a file while in use.
type fileCopier interface {
	// CopyTo writes and checks the file at path in one step and returns its size in bytes. It never overwrites a file:
	// runlane.ErrValidationFailed. The copy is at least as new as every commit that returned before the call.
	CopyTo(ctx context.Context, path string) (size int64, err error)
}

// fileRestorer is implemented by storages in a file that can replace another such file, to go back to a copy.
type fileRestorer interface {
	// RestoreTo replaces the file at path, which may be missing, by a checked copy of this storage, in one step, and
	// returns its size in bytes. The old contents and log are lost. If any process has that file open, even this one,
	// it fails: runlane.ErrValidationFailed.
	RestoreTo(ctx context.Context, path string) (size int64, err error)
}
