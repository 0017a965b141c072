// Package file is the SQLite file: it opens and judges it, reads by several connections, and writes by one, as many
// commands in a commit as wait for it. It knows nothing of runs.
package file

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/runlane/runlane-go"
)

// Options of [Open].
type Options struct {
	// Path of the file.
	Path string
	// Schema makes the tables.
	Schema Schema
	// Application and Format are numbers in the file's head: whose file it is, and in which form it is kept.
	Application, Format int64
	// Relaxed leaves it to the system when a commit reaches the disk.
	Relaxed bool
	// Readers is how many reads may be made at once.
	Readers int
	// VFS is the name of SQLite's virtual file system, "" for the usual one: tests lose power with another.
	VFS string
	// Network names the network file system that holds a folder; nil asks the system.
	Network func(folder string) string
	// Host is the kernel that this process is of; nil asks the system.
	Host func() Host
	// Deaf processes are not told by the system that the file was written, and look every second: a test whose time is
	// virtual cannot wait for the system.
	Deaf bool
	// Effect is called with each command before it waits for its batch, by the goroutine that gives it; what it returns
	// is called when the command is durable and no caller knows yet. For tests that let the process die in between; may
	// be nil.
	Effect func() (durable func())
	// Synced is called when the file's folder was synced, for the same tests; may be nil.
	Synced func()
	// Step is called before each step of [Replace], and when [Open] has opened the file and has no lock of it yet, with
	// the name of what comes. What it returns is how the step ends. For tests that let the process die there, the step
	// fail or another process be faster; may be nil.
	Step func(name string) error
}

func (o *Options) step(name string) error {
	if o.Step == nil {
		return nil
	}
	return o.Step(name)
}

// Schema is what a file of a format has.
type Schema struct {
	// Tables makes those of an empty file, statement by statement.
	Tables []string
	// Additions come after them, and into a file of the same format that an older program made, which passes over them.
	Additions []Addition
}

// Addition is what a version added within a format.
type Addition struct {
	// Name is that of a table or an index that Statements make; a file that has none of the name lacks all of them.
	Name string
	// Statements make it.
	Statements []string
}

// File is an open file. It is safe for concurrent use.
type File struct {
	path    string
	claim   *claim
	writer  *writer
	readers chan *Conn
	looking sync.Mutex
	looker  *Conn // has the version that Changed saw last
	version int64
	deaf    bool
	effect  func() (durable func())
	done    chan struct{} // closed by Close
	closing sync.Once

	readOnly bool // then there is no writer, no looker and no claim
	seen     seen // by readOnlyChanged
}

// Open opens the file, and makes it where there is none. What is wrong with it is runlane.ErrConfigurationInvalid. One
// that this user may only read is opened for that: see [File.ReadOnly].
func Open(o *Options) (*File, error) {
	path, err := filepath.Abs(o.Path)
	if err != nil {
		return nil, unusable(err, "name another path", "%s has no absolute path", o.Path)
	}
	path = resolved(path)
	readOnly, err := judgePlace(path, o)
	if err != nil {
		return nil, err
	}
	if readOnly {
		return openReadOnly(path, o)
	}
	c, err := takeClaim(path, o)
	if err != nil {
		return nil, err
	}
	f, err := openClaimed(path, c, o)
	if err != nil {
		c.give(false)
	}
	return f, err
}

// openClaimed opens a file that this kernel has.
func openClaimed(path string, claimed *claim, o *Options) (f *File, err error) {
	first, where, err := connectWriter(path, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			where.use.end()
		}
	}()
	f = &File{
		path: path, claim: claimed, deaf: o.Deaf, effect: o.Effect, done: make(chan struct{}),
		readers: make(chan *Conn, o.Readers),
	}
	for range o.Readers {
		c, err := connectReader(path, o)
		if err != nil {
			return nil, errors.Join(opening(err, path), f.closeReaders(), first.close())
		}
		f.readers <- c
	}
	if f.looker, err = connectReader(path, o); err != nil {
		return nil, errors.Join(opening(err, path), f.closeReaders(), first.close())
	}
	if err := where.findLog(); err != nil {
		return nil, errors.Join(moved(err, path), f.closeReaders(), first.close())
	}
	if err := claimed.judge(); err != nil { // two kernels may have found no claim at once
		return nil, errors.Join(err, f.closeReaders(), first.close())
	}
	claimed.watch()
	f.writer = newWriter(where, first)
	f.writer.claim = claimed
	return f, nil
}

// resolved follows symbolic links: SQLite keeps the log beside their target.
func resolved(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	target, err := os.Readlink(path)
	if err != nil {
		return path
	}
	if !filepath.IsAbs(target) { // of a file that is not there yet
		target = filepath.Join(filepath.Dir(path), target)
	}
	return target
}

// mounts is where Linux lists what is mounted where.
const mounts = "/proc/self/mountinfo"

// unescaped is a path as mounts writes it.
var unescaped = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// mounted reports a file that is a mount point itself, as a container has it that was given the file alone.
func mounted(path string) bool {
	list, err := os.ReadFile(mounts)
	absolute, absoluteErr := filepath.Abs(path)
	return err == nil && absoluteErr == nil && lists(string(list), absolute)
}

// lists reports that a list of mounts has a path from the root.
func lists(mounts, path string) bool {
	for line := range strings.Lines(mounts) {
		if fields := strings.Fields(line); len(fields) > 4 && unescaped.Replace(fields[4]) == path {
			return true
		}
	}
	return false
}

// judgePlace refuses what cannot hold the file: locks and shared memory do not work over a network. readOnly says that
// this user may read what is there and not write it.
func judgePlace(path string, o *Options) (readOnly bool, err error) {
	folder := filepath.Dir(path)
	info, err := os.Stat(folder)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return false, unusable(err, "make the folder, or name another path", "there is no folder %s", folder)
	case err != nil:
		return false, unusable(err, "name another path", "%s cannot be looked at", folder)
	case !info.IsDir():
		return false, unusable(nil, "name another path", "%s is no folder", folder)
	}
	if info, err := os.Stat(path); err == nil {
		if !info.Mode().IsRegular() {
			return false, unusable(nil, "name another path", "%s is no regular file", path)
		}
		readOnly = !mayWrite(path) || !mayWrite(folder)
		if readOnly && !mayRead(path) {
			return false, unusable(nil, readOnlyHint, "%s cannot be read or written", path)
		}
		// The log is found beside the file, by its name: two names have two logs, and each takes the other's commits.
		if links(info) > 1 {
			return false, unusable(nil, "leave the file one name: remove the hard link",
				"%s has another name, and processes that use the other one would lose commits", path)
		}
		if mounted(path) {
			return false, unusable(nil, "mount the folder that has the file",
				"%s is mounted alone, and processes outside would lose commits", path)
		}
	}
	if !readOnly && !mayWrite(folder) {
		return false, unusable(nil, "let this user write the folder, which has the log", "%s cannot be written", folder)
	}
	networkOf := o.Network
	if networkOf == nil {
		networkOf = networkOfSystem
	}
	if network := networkOf(folder); network != "" {
		return false, unusable(nil, "use a disk of this machine; for several machines use the lane on AWS",
			"%s is on a network file system (%s), where SQLite's locks and shared memory do not hold", path, network)
	}
	return readOnly, nil
}

// Read lends a connection for one read: what it shows is one state of the file, at least as new as every commit that
// returned before.
func (f *File) Read(ctx context.Context, read func(*Conn) error) error {
	if f.readOnly {
		return f.readOnlyRead(ctx, read)
	}
	var c *Conn
	select {
	case <-f.done:
		return closed(f.path)
	default:
	}
	select {
	case c = <-f.readers:
	case <-f.done:
		return closed(f.path)
	case <-ctx.Done():
		return cancelled(ctx)
	}
	defer func() { f.readers <- c }()
	return failure(read(c), f.path, "")
}

// cancelled is the error of a call whose context ended before anything was done.
func cancelled(ctx context.Context) error {
	return &runlane.Error{
		Code:      runlane.ErrOperationCancelled,
		Message:   "the context ended before anything was done",
		Retryable: true,
		Meta:      map[string]string{outcome: notCommitted},
		Cause:     context.Cause(ctx),
	}
}

// Close waits for commits under way and closes every connection. The last one to close the file empties its log.
func (f *File) Close() (err error) {
	f.closing.Do(func() {
		close(f.done)
		if f.readOnly {
			return
		}
		err = errors.Join(f.writer.close(), f.closeReaders())
		err = failure(err, f.path, "")
		f.writer.place.use.end()
		f.claim.give(true)
	})
	return err
}

// Changed reports whether the file was written since the last call. It costs a few microseconds.
func (f *File) Changed() (bool, error) {
	if f.readOnly {
		return f.readOnlyChanged()
	}
	f.looking.Lock()
	defer f.looking.Unlock()
	if f.looker == nil {
		return false, closed(f.path)
	}
	version, err := f.looker.Number("PRAGMA data_version")
	changed := version != f.version
	f.version = version
	return changed, failure(err, f.path, "")
}

func (f *File) closeReaders() error {
	var faults []error
	f.looking.Lock()
	defer f.looking.Unlock()
	if f.looker != nil {
		faults = append(faults, f.looker.close())
		f.looker = nil
	}
	for range cap(f.readers) {
		select {
		case c := <-f.readers:
			faults = append(faults, c.close())
		default: // opening failed before it was made
		}
	}
	return errors.Join(faults...)
}
