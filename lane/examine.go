package lane

import (
	"context"

	"github.com/runlane/runlane-go"
)

// Examiner is the optional ability of a storage to examine the place where it keeps its state, for doctor. Found with
// [As]. A storage whose place others look after, like a service, does without.
type Examiner interface {
	// Examine looks and changes nothing; it may read everything, and take long. An error is a look that could not be
	// taken: findings are no errors.
	Examine(ctx context.Context) ([]Finding, error)
}

// Finding is what an [Examiner] found.
type Finding struct {
	// Check names what was looked at, in a few words.
	Check string
	// Detail says what was found.
	Detail string
	// Fix says what to do; "" where that is nothing.
	Fix string
	// Broken says that the state cannot be relied on: the finding is more than a warning.
	Broken bool
}

// WriteProber is the optional ability of a storage to make a commit that changes nothing, for doctor: that alone finds a
// full disk. Found with [As].
type WriteProber interface {
	// ProbeWrite returns when the commit is as durable as any.
	ProbeWrite(ctx context.Context) error
}

// EnvironmentLister is the optional ability of a storage to name its environments cheaply. Found with [As].
type EnvironmentLister interface {
	// Environments are the names of those that have runs, in their order.
	Environments(ctx context.Context) ([]runlane.Environment, error)
}

// Copier is the optional ability of a storage to copy all that it keeps, of every environment, into a file while it
// works. Found with [As].
type Copier interface {
	// CopyTo makes the file at path, whole or not at all, checks it and returns its size in bytes. What is there is
	// never overwritten: runlane.ErrValidationFailed. The copy is the state at one moment, at least as new as every
	// commit that returned before the call.
	CopyTo(ctx context.Context, path string) (size int64, err error)
}

// Restorer is the optional ability of a storage in a file to take the place of another such file: of a copy, to go back
// to it. Found with [As].
type Restorer interface {
	// RestoreTo puts a checked copy of all that the storage keeps in the place of the file at path, in one step, and
	// returns its size in bytes. What that file had is gone, with its log. The storage itself stays as it is. While any
	// process has the file open, the calling one included, it is left as it is: runlane.ErrValidationFailed. There may
	// be no file at path.
	RestoreTo(ctx context.Context, path string) (size int64, err error)
}
