package cli

import (
	"context"

	"github.com/runlane/runlane-go"
)

// What storages in files are able to do, found with lane.As.

// environmentLister is the optional ability of a storage to name its environments cheaply.
type environmentLister interface {
	// Environments are the names of those that have runs, in their order.
	Environments(ctx context.Context) ([]runlane.Environment, error)
}

// fileCopier is the optional ability of a storage to copy all that it keeps, of every environment, into a file while it
// works.
type fileCopier interface {
	// CopyTo makes the file at path, whole or not at all, checks it and returns its size in bytes. What is there is
	// never overwritten: runlane.ErrValidationFailed. The copy is the state at one moment, at least as new as every
	// commit that returned before the call.
	CopyTo(ctx context.Context, path string) (size int64, err error)
}

// fileRestorer is the optional ability of a storage in a file to take the place of another such file: of a copy, to go back
// to it.
type fileRestorer interface {
	// RestoreTo puts a checked copy of all that the storage keeps in the place of the file at path, in one step, and
	// returns its size in bytes. What that file had is gone, with its log. The storage itself stays as it is. While any
	// process has the file open, the calling one included, it is left as it is: runlane.ErrValidationFailed. There may
	// be no file at path.
	RestoreTo(ctx context.Context, path string) (size int64, err error)
}
