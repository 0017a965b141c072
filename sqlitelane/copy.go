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

// CopyTo makes a copy of all that the storage keeps at path, whole or not at all, checks it and returns its size in
// bytes. What is there is never overwritten: runlane.ErrValidationFailed. The copy is made from one state of the file
// by a reader, so writers go on; meanwhile their log only grows. It is written beside path under another name, without
// free pages, is synced, opened and checked page by page, and has its own name from then on. It is a lane like the one
// it was made from.
func (s *Storage) CopyTo(ctx context.Context, path string) (size int64, err error) {
	if err := embedded.Ended(ctx); err != nil {
		return 0, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return 0, refused(err, "%s has no absolute path", path)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return 0, taken(path, err)
	}
	for _, ending := range []string{"-wal", "-shm", "-journal"} { // of a file that was removed: SQLite would use them
		if _, err := os.Lstat(path + ending); !errors.Is(err, fs.ErrNotExist) {
			return 0, taken(path+ending, err)
		}
	}
	draft := path + "." + rand.Text()[:12]
	defer discard(draft)
	if size, err = s.copyTo(ctx, draft); err != nil {
		return 0, err
	}
	return size, name(draft, path)
}

// RestoreTo puts a checked copy in the place of the file at path and returns its size in bytes. While any process has
// that file open, this one included, it is left as it is: runlane.ErrValidationFailed. A copy like that of CopyTo takes
// the place of the file at path in one step, while the lock of that file is held. The commits of its log are moved into
// it before: where this is stopped, it is as it was, or replaced. It keeps its mode, and its owner where this process
// may.
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
	return size, file.Replace(path, draft, &s.options)
}

// discard removes a copy that did not get its name, and what SQLite made beside it.
func discard(draft string) {
	for _, ending := range []string{"", "-journal", "-wal", "-shm", file.MarkEnding, file.ClaimEnding} {
		_ = os.Remove(draft + ending)
	}
}

// copyTo makes a checked and synced copy at a path that nothing has.
func (s *Storage) copyTo(ctx context.Context, draft string) (size int64, err error) {
	// What the file has is its users' alone: so has the copy to be, from the beginning.
	empty, err := os.OpenFile(draft, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, refused(err, "%s cannot be written", filepath.Dir(draft))
	}
	if err := empty.Close(); err != nil {
		return 0, refused(err, "%s cannot be written", draft)
	}
	err = s.read(ctx, false, func(c *file.Conn) error {
		if _, err := c.Exec("PRAGMA query_only=OFF"); err != nil { // which also keeps a reader from writing other files
			return err
		}
		err := c.Within(ctx, func() error {
			_, err := c.Exec("VACUUM INTO ?", draft)
			return cmp.Or(file.Full(err, draft), err) // a reader writes to no other file
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

// checkCopy opens the copy as any program would, and reads every page.
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
			Hint: "look at the disk, and at the file with doctor"}
	}
	return nil
}

// synced makes sure that the file is on its disk.
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

// name gives a file its own name, in one step, and never to one that something else has.
func name(draft, path string) error {
	err := os.Link(draft, path)
	if err != nil && !errors.Is(err, fs.ErrExist) { // no hard links there: two that are made at once may both pass here
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return taken(path, err)
		}
		err = os.Rename(draft, path)
	}
	if errors.Is(err, fs.ErrExist) {
		return taken(path, nil)
	}
	if err == nil { // a second name would keep the file from being opened
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
	_ = f.Sync() // not every system can
	return f.Close()
}

func taken(path string, cause error) error {
	return &runlane.Error{
		Code:    runlane.ErrValidationFailed,
		Message: fmt.Sprintf("%s is there already, or cannot be looked at", path),
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
