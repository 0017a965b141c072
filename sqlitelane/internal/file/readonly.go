package file

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/runlane/runlane-go"
)

// A file that this user may not write, or in a folder that this user may not write, is opened read-only. Then no file
// is created or changed: each read has its own connection, and there is no claim, mark or log.

// readTries is how often a read is tried, markPause apart, while others write the file.
const readTries = 5

const readOnlyHint = "let this user write the file and its folder"

// ReadOnly returns the error of every write, nil if the file is writable.
func (f *File) ReadOnly() error {
	if !f.readOnly {
		return nil
	}
	return &runlane.Error{
		Code: runlane.ErrConfigurationInvalid, Message: f.path + " cannot be written: this user may only read it",
		Hint: readOnlyHint, Meta: map[string]string{outcome: notCommitted},
	}
}

// openReadOnly makes the same checks as opening for writing.
func openReadOnly(path string, o *Options) (*File, error) {
	if err := judgeLog(path, o); err != nil {
		return nil, err
	}
	f := &File{path: path, readOnly: true, done: make(chan struct{}), readers: make(chan *Conn)}
	err := f.readAlone(func(c *Conn) error {
		empty, err := judgeOwner(c, path, o)
		if err != nil {
			return err
		}
		whole, err := isWhole(c, o)
		if err == nil && (empty || !whole) {
			return unusable(nil, readOnlyHint+", and open it once with this program",
				"%s lacks tables of this version, and cannot be written", path)
		}
		return err
	})
	if err != nil {
		return nil, opening(err, path)
	}
	f.seen, _ = lookAt(path)
	return f, nil
}

// seen is a state of the file and its log.
type seen struct {
	file, log os.FileInfo // log is nil if missing
	lives     bool        // read the log with its shared memory
}

func lookAt(path string) (s seen, err error) {
	if s.file, err = os.Stat(path); err != nil {
		return s, err
	}
	if s.log, err = os.Stat(path + logEnding); errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		_, shared := os.Stat(path + "-shm")
		s.lives = shared == nil || s.log.Size() > logHead
	}
	return s, err
}

// same reports whether file and log are unchanged.
func (s seen) same(other seen) bool {
	same := func(a, b os.FileInfo) bool {
		if a == nil || b == nil {
			return a == nil && b == nil
		}
		return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
	}
	return same(s.file, other.file) && same(s.log, other.log)
}

// readAlone reads one state. If no process has the file open, SQLite takes no locks, and the read is repeated if one
// opened it meanwhile.
func (f *File) readAlone(read func(*Conn) error) error {
	for range readTries {
		before, err := lookAt(f.path)
		if err != nil {
			return err
		}
		parameters := "mode=ro&immutable=1"
		if before.lives {
			parameters = "mode=ro&readonly_shm=1"
		}
		err = readBy(f.path, parameters, read)
		if before.lives && err == nil {
			return nil
		}
		if after, lost := lookAt(f.path); lost == nil && before.same(after) {
			return err
		}
		time.Sleep(markPause)
	}
	return &runlane.Error{
		Code: runlane.ErrStorageUnavailable, Message: f.path + " was written while it was read", Retryable: true,
		Hint: "try again",
	}
}

func readBy(path, parameters string, read func(*Conn) error) (err error) {
	c, err := connectTo(path, parameters)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	err = pragmas(c, "busy_timeout=5000", "trusted_schema=OFF", "query_only=ON", "temp_store=MEMORY")
	if err != nil {
		return err
	}
	return read(c)
}

// readOnlyRead is Read of a read-only file.
func (f *File) readOnlyRead(ctx context.Context, read func(*Conn) error) error {
	select {
	case <-f.done:
		return closed(f.path)
	default:
	}
	if ctx.Err() != nil {
		return cancelled(ctx)
	}
	return failure(f.readAlone(read), f.path, "")
}

// readOnlyChanged is Changed of a read-only file.
func (f *File) readOnlyChanged() (bool, error) {
	now, err := lookAt(f.path)
	if err != nil {
		return false, failure(err, f.path, "")
	}
	f.looking.Lock()
	defer f.looking.Unlock()
	changed := !f.seen.same(now)
	f.seen = now
	return changed, nil
}
