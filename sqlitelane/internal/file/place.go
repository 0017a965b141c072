package file

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"github.com/runlane/runlane-go"
)

// place identifies the opened file and its log. If either is moved, replaced or removed under a running program, that
// program writes where no other program looks: others get another log.
type place struct {
	path      string
	file, log os.FileInfo // nil: not watched
	held      *os.File    // until release
	use       *use        // until use.end
}

// use is a file that this process has open or is replacing. File locks do not separate the parts of a process, and
// closing any descriptor of the file drops them.
type use struct {
	file      os.FileInfo
	replacing bool
}

// uses are the uses of this process.
var uses struct {
	sync.Mutex
	all map[*use]struct{}
}

// begin returns false if one of the two uses replaces the file and both are of the same file.
func (u *use) begin() bool {
	uses.Lock()
	defer uses.Unlock()
	for other := range uses.all {
		if (u.replacing || other.replacing) && os.SameFile(u.file, other.file) {
			return false
		}
	}
	if uses.all == nil {
		uses.all = map[*use]struct{}{}
	}
	uses.all[u] = struct{}{}
	return true
}

// end must follow the close of every descriptor. It ignores nil.
func (u *use) end() {
	uses.Lock()
	defer uses.Unlock()
	delete(uses.all, u)
}

// placeOf identifies the file that SQLite is about to open. Until release no other file gets its inode number.
func placeOf(path string, o *Options) (p place, err error) {
	p.path = path
	if o.VFS != "" {
		return p, nil // its files are elsewhere
	}
	if p.file, p.held, err = hold(path); errors.Is(err, fs.ErrNotExist) {
		err = errors.Join(errMoved, err)
	}
	if err != nil {
		return p, err
	}
	if u := (&use{file: p.file}); u.begin() {
		p.use = u
		return p, nil
	}
	p.release()
	return p, errMoved // it will be
}

func (p *place) release() {
	if p.held != nil {
		_ = p.held.Close()
		p.held = nil
	}
}

// errMoved: the file was replaced while it was being opened.
var errMoved = errors.New("the file was replaced while it was opened")

// judgeOpened checks, under a lock of SQLite, that the opened file is still at its path: it may have been replaced
// before the first lock.
func (p *place) judgeOpened() error {
	if p.file == nil {
		return nil
	}
	if now, err := os.Lstat(p.path); err != nil || !os.SameFile(now, p.file) {
		return errors.Join(errMoved, err)
	}
	return nil
}

// findLog adds the log, which exists since the first lock.
func (p *place) findLog() (err error) {
	if p.file != nil {
		p.log, err = os.Stat(p.path + logEnding)
	}
	return err
}

// judge refuses to write to a file or log that is no longer at its path. It costs two system calls.
func (p *place) judge() error {
	if p.file == nil {
		return nil
	}
	still, names, err := isStill(p.path, p.file)
	if still && names == 1 {
		if still, _, err = isStill(p.path+logEnding, p.log); still {
			return nil
		}
	}
	return &runlane.Error{
		Code:    runlane.ErrStorageUnavailable,
		Message: p.path + " or its log was moved, replaced or removed while this program uses it",
		Hint:    "put both back where they were, or stop this program, and start it on the file that is to be used",
		Meta:    map[string]string{outcome: notCommitted},
		Cause:   err,
	}
}

func isStillByStat(path string, was os.FileInfo) (still bool, names uint64, err error) {
	now, err := os.Lstat(path)
	if err != nil {
		return false, 0, err
	}
	return os.SameFile(now, was), links(now), nil
}

// makePrivate creates a missing file with access only for its user. SQLite gives the log the same mode.
func makePrivate(path string, o *Options) error {
	if o.VFS != "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if os.IsExist(err) {
		return nil
	}
	if err != nil {
		return unusable(err, "let this user write the folder, or name another path", "%s cannot be created", path)
	}
	return f.Close()
}
