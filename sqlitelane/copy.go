package sqlitelane

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/embedded"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane/internal/file"
)

// CopyTo writes a copy of the file to path, completely or not at all, and returns its size in bytes. It never
// overwrites: runlane.ErrValidationFailed. The copy has one state of the file; writers continue meanwhile, and their
// log only grows. Large bodies are linked or copied into the folder beside it. It is vacuumed, synced and checked page by page under another name in path's folder, then renamed.
func (s *Storage) CopyTo(ctx context.Context, path string) (size int64, err error) {
	if err := embedded.Ended(ctx); err != nil {
		return 0, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return 0, refused(err, "%s has no absolute path", path)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return 0, pathTaken(path, err)
	}
	for _, ending := range []string{"-wal", "-shm", "-journal"} { // of a removed file: SQLite would use them
		if _, err := os.Lstat(path + ending); !errors.Is(err, fs.ErrNotExist) {
			return 0, pathTaken(path+ending, err)
		}
	}
	draft := path + "." + rand.Text()[:12]
	defer discard(draft)
	// Before the copy, because a pruning may remove bodies of runs in the copy, and after it, because runs may be newer.
	if err := copyBodies(ctx, s.path(), path); err != nil {
		return 0, err
	}
	if size, err = s.copyTo(ctx, draft); err != nil {
		return 0, err
	}
	if err := copyBodies(ctx, s.path(), path); err != nil {
		return 0, err
	}
	return size, publish(draft, path)
}

// RestoreTo replaces the file at path by a checked copy and returns its size in bytes. It refuses while any process
// has that file open, this one included: runlane.ErrValidationFailed. It replaces the file in one step, under its lock
// and with the log's commits in it, so an interrupted restore leaves the old file or the copy. Mode and, if possible,
// owner stay.
func (s *Storage) RestoreTo(ctx context.Context, path string) (size int64, err error) {
	if err := embedded.Ended(ctx); err != nil {
		return 0, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return 0, refused(err, "%s has no absolute path", path)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if path == s.path() {
		return 0, &runlane.Error{
			Code: runlane.ErrValidationFailed, Message: path + " is the copy itself", Hint: "name the file to replace",
		}
	}
	draft := path + "." + rand.Text()[:12]
	defer discard(draft)
	if size, err = s.copyTo(ctx, draft); err != nil {
		return 0, err
	}
	if err := copyBodies(ctx, s.path(), path); err != nil { // bodies of the replaced file stay: doctor finds them
		return 0, err
	}
	return size, file.Replace(path, draft, &s.options)
}

// discard removes a draft and SQLite's files for it.
func discard(draft string) {
	for _, ending := range []string{"", "-journal", "-wal", "-shm", file.MarkEnding, file.ClaimEnding} {
		_ = os.Remove(draft + ending)
	}
}

// copyTo makes a checked and synced copy at an unused path.
func (s *Storage) copyTo(ctx context.Context, draft string) (size int64, err error) {
	// Private from the beginning, like the file.
	empty, err := os.OpenFile(draft, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, refused(err, "%s cannot be written", filepath.Dir(draft))
	}
	if err := empty.Close(); err != nil {
		return 0, refused(err, "%s cannot be written", draft)
	}
	err = s.read(ctx, false, func(c *file.Conn) error {
		if _, err := c.Exec("PRAGMA query_only=OFF"); err != nil { // query_only also prevents writing other files
			return err
		}
		err := c.Within(ctx, func() error {
			_, err := c.Exec("VACUUM INTO ?", draft)
			return cmp.Or(file.Full(err, draft), err) // a full disk of the copy
		})
		_, restored := c.Exec("PRAGMA query_only=ON")
		return cmp.Or(err, restored)
	})
	if err != nil {
		return 0, err
	}
	if err := s.checkCopy(ctx, draft); err != nil {
		return 0, err
	}
	if size, err = synced(draft); err != nil {
		return 0, refused(err, "%s cannot be synced", draft)
	}
	return size, nil
}

// checkCopy opens the copy like any program and reads every page.
func (s *Storage) checkCopy(ctx context.Context, path string) error {
	o := s.options
	o.Path, o.Readers = path, 1
	f, err := file.Open(&o)
	if err != nil {
		return err
	}
	var found lane.Finding
	err = f.Read(ctx, func(c *file.Conn) error {
		return c.Within(ctx, func() (err error) {
			found, err = examinePages(c, path)
			return err
		})
	})
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if found.Broken {
		return &runlane.Error{Code: runlane.ErrStorageUnavailable, Message: "the copy is damaged: " + found.Detail,
			Hint: "check the disk, and the file with doctor"}
	}
	return nil
}

func synced(path string) (size int64, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), f.Sync()
}

// publish renames the draft in one step. It never overwrites.
func publish(draft, path string) error {
	err := os.Link(draft, path)
	if err != nil && !errors.Is(err, fs.ErrExist) { // no hard links here: two concurrent copies may both pass this check
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return pathTaken(path, err)
		}
		err = os.Rename(draft, path)
	}
	if errors.Is(err, fs.ErrExist) {
		return pathTaken(path, nil)
	}
	if err == nil { // a file with two names cannot be opened
		err = os.Remove(draft)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err == nil {
		err = syncFolder(filepath.Dir(path))
	}
	if err != nil {
		return refused(err, "%s cannot be written", path)
	}
	return nil
}

func syncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	_ = f.Sync() // not supported everywhere
	return f.Close()
}

func pathTaken(path string, cause error) error {
	return &runlane.Error{
		Code:    runlane.ErrValidationFailed,
		Message: fmt.Sprintf("%s exists already, or cannot be inspected", path),
		Hint:    "name another file: nothing is overwritten",
		Cause:   cause,
	}
}

func refused(cause error, format string, args ...any) error {
	return &runlane.Error{
		Code:    runlane.ErrValidationFailed,
		Message: fmt.Sprintf(format, args...),
		Hint:    "name a file in a folder that this user may write into, with room for it",
		Cause:   cause,
	}
}
