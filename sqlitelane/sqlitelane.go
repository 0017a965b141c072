// Package sqlitelane is the durable lane for one machine: storage and transport in one SQLite file, which several
// processes of that machine may use at once. It is a separate Go module, needs no C compiler, and is the third lane
// beside memlane and awslane: the same program with one line changed.
//
// A commit that returned is on disk: it survives the death of every process and the loss of power, unless
// [Options].Sync says otherwise. Commits of concurrent callers share the disk's work.
//
// The file lives on a disk of this machine, never on a network file system. Beside it are others, with the endings
// -wal, -shm and -host, which belong to it while a process uses it, and -mark, which stays.
package sqlitelane

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
	"github.com/runlane/runlane-go/sqlitelane/internal/record"
)

// Options of [Open]. nil means none.
type Options struct {
	// Environment of runtimes on this lane that name none themselves. "" means runlane.DefaultEnvironment.
	Environment runlane.Environment
	// Logger hears that wakeups cannot be taken any more, as with a full disk, and that they are again: a line each.
	// nil means that of the runtime which is opened on the lane.
	Logger *slog.Logger
	// Ordered names queues that deliver wakeups of one group one after the other, in the order in which they were
	// published: a group is a concurrency key, else a run. A run that waits for its next attempt lets others pass it.
	// The file keeps the names, for programs that name none: those take the file's. One that names queues may add to
	// them, and leaves none of the file's out: runlane.ErrConfigurationInvalid. A queue stays ordered as long as the
	// file is. Runs of one key never execute at once there.
	Ordered []runlane.QueueName
	// Sync is what a commit that returned survives. "" means SyncFull.
	Sync Sync
}

// Sync is when a commit is on disk.
type Sync string

const (
	// SyncFull is before it returns. It survives the loss of power.
	SyncFull Sync = "full"
	// SyncNormal is a moment later. It survives the death of every process. With the power the last commits may be
	// lost, all since the last checkpoint of the file at most; what is left is whole, as it was at one moment.
	SyncNormal Sync = "normal"
)

// readers is how many reads a process makes at once.
const readers = 4

// Open returns a lane over the file, which it makes where there is none. It is closed like every lane, by closing the
// runtime that was opened on it. A file that cannot be used (of a newer format, damaged, another program's, on a
// network, open on another host) is runlane.ErrConfigurationInvalid, with a hint each. Where a host had it open that has
// ended since, as by a loss of power, Open waits five seconds for an answer of it.
//
// A file that this user may read and not write, or whose folder they may not write, is opened for reading: every write,
// and receiving, is runlane.ErrConfigurationInvalid then, and nothing beside the file is made or changed.
func Open(ctx context.Context, path string, options *Options) (*lane.Lane, error) {
	if err := embedded.Ended(ctx); err != nil {
		return nil, err
	}
	if err := record.Fits(); err != nil {
		return nil, err
	}
	if options == nil {
		options = &Options{}
	}
	if path == "" {
		return nil, invalid("the lane has no path", "name the file, as in runlane.db")
	}
	path, err := filepath.Abs(path) // the process may go to another folder before the lane starts
	if err != nil {
		return nil, invalid("the path "+path+" cannot be made absolute", "give an absolute path")
	}
	o := file.Options{
		Path: path, Schema: schema, Application: applicationID, Format: format, Readers: readers,
	}
	if err := embedded.JudgeQueueNames("Options.Ordered", options.Ordered); err != nil {
		return nil, err
	}
	switch options.Sync {
	case "", SyncFull:
	case SyncNormal:
		o.Relaxed = true
	default:
		return nil, invalid("no way to sync is named "+string(options.Sync), "use full or normal, or leave it out")
	}
	return open(o, options)
}

func open(o file.Options, options *Options) (*lane.Lane, error) {
	first, err := file.Open(&o) // what is wrong with the file is known before anything is started
	if err != nil {
		return nil, err
	}
	ordered, err := agree(first, options.Ordered)
	if err := errors.Join(err, first.Close()); err != nil {
		return nil, err
	}
	s := newStorage(o)
	return lane.New(s, newTransport(s, options.Logger, ordered...), &lane.Options{
		Environment: options.Environment, Name: "sqlite", ProductionDurable: true,
	})
}

func invalid(message, hint string) error {
	return &runlane.Error{Code: runlane.ErrConfigurationInvalid, Message: message, Hint: hint}
}
