// Package sqlitelane is the durable lane for one machine: storage and transport in one SQLite file, shared by
// processes of that machine. It is a separate Go module and needs no C compiler. A program moves between memlane,
// sqlitelane and awslane by changing one line.
//
// A commit that returned is on disk: it survives a crash of every process and a loss of power, unless [Options].Sync
// weakens this. Commits of concurrent callers share the disk's work.
//
// The file must be on a disk of this machine, never on a network file system. Files with the same name and the endings
// -wal, -shm and -host belong to it while a process uses it; -mark stays. Payloads, outputs, results and signals of more
// than 1 MiB are files in the folder with the ending -bodies, which exists once there was one.
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
	// Environment of runtimes on this lane that name none. "" means runlane.DefaultEnvironment.
	Environment runlane.Environment
	// Logger gets one line when wakeups can no longer be taken, as with a full disk, and one when they can again. nil
	// means the logger of the runtime opened on the lane.
	Logger *slog.Logger
	// Ordered names queues that deliver the wakeups of a group one at a time, in order of publication. A group is a
	// concurrency key, or a run without one. A run waiting for its next attempt lets others pass. Runs with the same
	// key never execute at the same time.
	//
	// The file keeps the names: a program that names no queues takes the file's. One that names queues may add to the
	// file's but must name all of them: runlane.ErrConfigurationInvalid. A queue stays ordered forever.
	Ordered []runlane.QueueName
	// Sync decides when a commit is durable. "" means SyncFull.
	Sync Sync
}

// Sync is when a commit reaches the disk.
type Sync string

const (
	// SyncFull: before the commit returns. Commits survive a loss of power.
	SyncFull Sync = "full"
	// SyncNormal: a moment later. Commits survive a crash of every process. A loss of power may lose the last commits,
	// at most those since the file's last checkpoint; the file stays consistent.
	SyncNormal Sync = "normal"
)

// readers is the number of concurrent reads per process.
const readers = 4

// Open returns a lane over the file at path, which it creates if missing. Close the lane by closing the runtime opened
// on it. A file that cannot be used (newer format, damaged, another program's, on a network, open on another host) is
// runlane.ErrConfigurationInvalid with a hint. If a host had the file open and lost power, Open waits five seconds for
// its answer.
//
// A file that this user may read but not write, or with a folder that this user may not write, is opened for reading:
// writes and receiving are runlane.ErrConfigurationInvalid, and Open neither creates nor changes any file.
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
	path, err := filepath.Abs(path) // the process may change its folder before the lane starts
	if err != nil {
		return nil, invalid("the path "+path+" has no absolute form", "give an absolute path")
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
		return nil, invalid("unknown sync mode "+string(options.Sync), "use full or normal, or leave it out")
	}
	return open(o, options)
}

func open(o file.Options, options *Options) (*lane.Lane, error) {
	first, err := file.Open(&o) // find faults of the file before anything starts
	if err != nil {
		return nil, err
	}
	ordered, err := reconcileOrdered(first, options.Ordered)
	if err := errors.Join(err, first.Close()); err != nil {
		return nil, err
	}
	s := newStorage(o)
	return lane.New(s, newTransport(s, options.Logger, ordered...), &lane.Options{
		Bodies:      &lane.Bodies{Store: newBodyStore(o.Path, o.Relaxed), Above: bodiesAbove},
		Environment: options.Environment, Name: "sqlite", ProductionDurable: true,
	})
}

func invalid(message, hint string) error {
	return &runlane.Error{Code: runlane.ErrConfigurationInvalid, Message: message, Hint: hint}
}
