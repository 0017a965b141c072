package file

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/runlane/runlane-go"
)

// replacement is one call of Replace.
type replacement struct {
	path, draft string
	options     *Options
	unread      bool     // unreadable for SQLite, so it has no log to move
	old         *os.File // locked
	use         *use
}

// Replace renames draft, a synced file without a log, to path, and gives it the mode and owner of the replaced file.
// It fails while any process has the file at path open, this one included.
//
// A process stopped at any step leaves at path either the draft or the old file with all its commits (an empty file if
// there was none): they are moved from the log into the file before the log is removed.
func Replace(path, draft string, o *Options) error {
	claimed, err := takeClaim(path, o)
	if err != nil {
		return err
	}
	defer claimed.end(true)
	r := &replacement{path: path, draft: draft, options: o}
	defer r.unlock()
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"make", r.make},
		{"move the log", r.moveLog},
		{"open", r.open},
		{"lock", r.lock},
		{"keep the rights", r.keepRights},
		{"remove the log", func() error { return r.remove(logEnding) }},
		{"remove the shared memory", func() error { return r.remove("-shm") }},
		{"remove the journal", func() error { return r.remove("-journal") }},
		{"rename", r.rename},
		{"sync", func() error { return syncFolder(filepath.Dir(path), &Options{}) }},
	} {
		err := o.step(step.name)
		if err == nil {
			err = step.do()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *replacement) unlock() {
	if r.old != nil {
		_ = r.old.Close()
	}
	r.use.end()
}

// make creates a missing file, so that there is one to lock and no program creates another. From here on this process
// does not open the file elsewhere.
func (r *replacement) make() error {
	if err := makePrivate(r.path, r.options); err != nil {
		return err
	}
	info, err := os.Stat(r.path)
	if err != nil {
		return r.inUse(err)
	}
	u := &use{file: info, replacing: true}
	if !u.begin() {
		return notReplaced(nil, r.path+" is open in this process", "close what uses it")
	}
	r.use = u
	return nil
}

// moveLog checkpoints the log into the file. It leaves the log of another file, and a file that SQLite cannot read.
func (r *replacement) moveLog() error {
	if r.unread = judgeLog(r.path, r.options) != nil; r.unread {
		return nil
	}
	c, err := connect(r.path, "")
	if err == nil {
		err = errors.Join(checkpoint(c), c.close())
	}
	if k := kind(err); k == sqlite3.SQLITE_CORRUPT || k == sqlite3.SQLITE_NOTADB {
		r.unread, err = true, nil
	}
	if Busy(err) {
		return r.inUse(err)
	}
	return failure(err, r.path, notCommitted)
}

// checkpoint moves all commits from the log into the file, durably.
func checkpoint(c *Conn) error {
	err := pragmas(c, "busy_timeout=0", "trusted_schema=OFF", "fullfsync=ON", "checkpoint_fullfsync=ON")
	if err != nil {
		return err
	}
	if _, err := c.Number("SELECT count(*) FROM sqlite_schema"); err != nil { // rolls back a hot journal
		return err
	}
	_, err = c.Exec("PRAGMA wal_checkpoint(TRUNCATE)") // leaves the log if another process is in the way
	return err
}

func (r *replacement) open() (err error) {
	if r.old, err = os.OpenFile(r.path, os.O_RDWR, 0); err != nil {
		return notReplaced(err, r.path+" cannot be opened", "let this user write the file and its folder")
	}
	return nil
}

// lock locks the file, unless a program has used or replaced it since its log was empty.
func (r *replacement) lock() error {
	if err := lockWhole(r.old); err != nil {
		return r.inUse(err)
	}
	locked, err := r.old.Stat()
	if err != nil {
		return r.inUse(err)
	}
	now, err := os.Stat(r.path)
	if err != nil || !os.SameFile(now, locked) || !os.SameFile(now, r.use.file) || !r.unread && hasLog(r.path) {
		return r.inUse(err)
	}
	return nil
}

// keepRights gives the draft the old file's mode and, if this process may set it, owner.
func (r *replacement) keepRights() error {
	info, err := r.old.Stat()
	if err != nil {
		return notReplaced(err, r.path+" cannot be inspected", "check the disk")
	}
	f, err := os.OpenFile(r.draft, os.O_RDWR, 0)
	if err == nil {
		keepOwner(f, info)
		err = errors.Join(f.Chmod(info.Mode().Perm()), f.Sync(), f.Close())
	}
	if err != nil {
		return notReplaced(err, "the copy cannot get the rights of "+r.path, "restore as the user who owns the file")
	}
	return nil
}

func (r *replacement) remove(ending string) error {
	if err := os.Remove(r.path + ending); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return notReplaced(err, r.path+ending+" cannot be removed", "stop all programs that use it")
	}
	return nil
}

func (r *replacement) rename() error {
	if err := os.Rename(r.draft, r.path); err != nil {
		return notReplaced(err, r.path+" cannot be replaced", "stop all programs that use it")
	}
	return nil
}

func (r *replacement) inUse(cause error) error {
	return notReplaced(cause, r.path+" is open in another process", "stop all programs that use it")
}

func notReplaced(cause error, message, hint string) error {
	return &runlane.Error{Code: runlane.ErrValidationFailed, Message: message, Hint: hint, Cause: cause}
}
