// Package file opens and checks the SQLite file, reads it over several connections, and writes it over one, which
// commits all waiting commands together. It knows no runs.
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
	// Schema creates the tables.
	Schema Schema
	// Application and Format in the file's header: its owner and its format.
	Application, Format int64
	// Relaxed lets the system decide when a commit reaches the disk.
	Relaxed bool
	// Readers is the number of concurrent reads.
	Readers int
	// VFS is a virtual file system of SQLite, "" for the default. Tests use one that loses power.
	VFS string
	// Network returns the name of the network file system that holds a folder, or "". nil asks the system.
	Network func(folder string) string
	// Host returns this process's kernel. nil asks the system.
	Host func() Host
	// Deaf processes get no notifications and look every second: tests with virtual time cannot wait for the system.
	Deaf bool
	// Effect is called with each command, in its caller's goroutine; its result is called when the command is durable but no
	// caller knows. For tests that crash the process; may be nil.
	Effect func() (durable func())
	// Synced is called after the folder was synced, for the same tests. May be nil.
	Synced func()
	// Step is called before each step of [Replace], and when [Open] has opened but not locked the file. Its error
	// fails the step. For tests that crash or overtake the process; may be nil.
	Step func(name string) error
}

func (o *Options) step(name string) error {
	if o.Step == nil {
		return nil
	}
	return o.Step(name)
}

// Schema describes the contents of a format.
type Schema struct {
	// Tables are the statements for an empty file.
	Tables []string
	// Additions follow, also in existing files of the same format. Older programs ignore them.
	Additions []Addition
}

// Addition is a later addition to a format.
type Addition struct {
	// Name of a table or index that Statements create. If it is missing, all of them are.
	Name string
	// Statements create it.
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

	readOnly bool // without writer, looker and claim
	seen     seen // for readOnlyChanged
}

// Open opens the file and creates it if missing. An unusable file is runlane.ErrConfigurationInvalid. A file that this
// user may only read is opened read-only, see [File.ReadOnly].
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
		c.end(false)
	}
	return f, err
}

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
	if err := claimed.judge(); err != nil { // two kernels may have found no claim at the same time
		return nil, errors.Join(err, f.closeReaders(), first.close())
	}
	claimed.watch()
	f.writer = newWriter(where, first)
	f.writer.claim = claimed
	return f, nil
}

// resolved follows symbolic links: SQLite puts the log next to their target.
func resolved(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	target, err := os.Readlink(path)
	if err != nil {
		return path
	}
	if !filepath.IsAbs(target) { // the target does not exist yet
		target = filepath.Join(filepath.Dir(path), target)
	}
	return target
}

// mounts is Linux's list of mounts.
const mounts = "/proc/self/mountinfo"

// unescaped decodes a path in mounts.
var unescaped = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// mounted reports whether the file is a mount point, as in a container that was given only this file.
func mounted(path string) bool {
	list, err := os.ReadFile(mounts)
	absolute, absoluteErr := filepath.Abs(path)
	return err == nil && absoluteErr == nil && listsMount(string(list), absolute)
}

// listsMount reports whether a list of mounts contains the absolute path.
func listsMount(mounts, path string) bool {
	for line := range strings.Lines(mounts) {
		if fields := strings.Fields(line); len(fields) > 4 && unescaped.Replace(fields[4]) == path {
			return true
		}
	}
	return false
}

// judgePlace refuses an unsuitable place. readOnly reports that this user may read the file but not write it.
func judgePlace(path string, o *Options) (readOnly bool, err error) {
	folder := filepath.Dir(path)
	info, err := os.Stat(folder)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return false, unusable(err, "create the folder, or name another path", "folder %s does not exist", folder)
	case err != nil:
		return false, unusable(err, "name another path", "%s cannot be inspected", folder)
	case !info.IsDir():
		return false, unusable(nil, "name another path", "%s is not a folder", folder)
	}
	if info, err := os.Stat(path); err == nil {
		if !info.Mode().IsRegular() {
			return false, unusable(nil, "name another path", "%s is not a regular file", path)
		}
		readOnly = !mayWrite(path) || !mayWrite(folder)
		if readOnly && !mayRead(path) {
			return false, unusable(nil, readOnlyHint, "%s cannot be read or written", path)
		}
		// SQLite names the log after the file: a file with two names gets two logs, and commits in either are lost.
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

// Read lends a connection for one read. It sees one state of the file, with all commits that returned before.
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

// cancelled is the error of a call whose context ended before it did anything.
func cancelled(ctx context.Context) error {
	return &runlane.Error{
		Code:      runlane.ErrOperationCancelled,
		Message:   "the context ended before anything was done",
		Retryable: true,
		Meta:      map[string]string{outcome: notCommitted},
		Cause:     context.Cause(ctx),
	}
}

// Close waits for commits under way and closes all connections. The last process to close the file empties its log.
func (f *File) Close() (err error) {
	f.closing.Do(func() {
		close(f.done)
		if f.readOnly {
			return
		}
		err = errors.Join(f.writer.close(), f.closeReaders())
		err = failure(err, f.path, "")
		f.writer.place.use.end()
		f.claim.end(true)
	})
	return err
}

// Changed reports whether the file was written since the last call. It takes a few microseconds.
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
		default: // opening failed before all were made
		}
	}
	return errors.Join(faults...)
}
