package file

import (
	"errors"
	"io/fs"
	"os"
	"sync"

	"github.com/runlane/runlane-go"
)

// place is where the file and its log were when they were opened. A file that is moved, replaced or removed under a
// running program, or whose log is, is written by it where no other program looks: those would have another log.
type place struct {
	path      string
	file, log os.FileInfo // nil: not watched
	held      *os.File    // until it is released
	use       *use        // until it ends
}

// use is a file that this process has open, or replaces. The locks of a file are those of a process: they keep no part
// of it from a file that another part uses, and end when it closes any descriptor of the file.
type use struct {
	file      os.FileInfo
	replacing bool
}

// uses are those of this process.
var uses struct {
	sync.Mutex
	all map[*use]struct{}
}

// begin is false where this process replaces the file, or is to replace it and has it open.
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

// end follows the close of every descriptor. A nil use has ended.
func (u *use) end() {
	uses.Lock()
	defer uses.Unlock()
	delete(uses.all, u)
}

// placeOf is the place of a file that SQLite is about to open: until it is released no other file gets its number.
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
	return p, errMoved // in a moment
}

func (p *place) release() {
	if p.held != nil {
		_ = p.held.Close()
		p.held = nil
	}
}

// errMoved is the fault of opening a file that was replaced meanwhile.
var errMoved = errors.New("the file was replaced while it was opened")

// judgeOpened finds out, under a lock that SQLite has, whether what it opened is still at its path. A process may have
// been stopped before its first lock, and the file replaced.
func (p *place) judgeOpened() error {
	if p.file == nil {
		return nil
	}
	if now, err := os.Lstat(p.path); err != nil || !os.SameFile(now, p.file) {
		return errors.Join(errMoved, err)
	}
	return nil
}

// findLog adds the log, which the first lock made.
func (p *place) findLog() (err error) {
	if p.file != nil {
		p.log, err = os.Stat(p.path + logEnding)
	}
	return err
}

// judge refuses to write anywhere else. It costs two looks at the folder.
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

// makePrivate makes the file where there is none, for its users alone: SQLite gives the log the same rights.
func makePrivate(path string, o *Options) error {
	if o.VFS != "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if os.IsExist(err) {
		return nil
	}
	if err != nil {
		return unusable(err, "let this user write the folder, or name another path", "%s cannot be made", path)
	}
	return f.Close()
}
