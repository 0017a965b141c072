package file

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/runlane/runlane-go"
)

// kind returns SQLite's primary result code, or 0.
func kind(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// Busy reports whether another process holds the lock.
func Busy(err error) bool {
	return kind(err) == sqlite3.SQLITE_BUSY || kind(err) == sqlite3.SQLITE_LOCKED
}

// The outcome of a write in Meta.
const (
	outcome      = "outcome"
	notCommitted = "not committed"
	unknown      = "unknown"
)

// failure converts an error of SQLite for callers. An error of this project stays unchanged.
func failure(err error, path, result string) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*runlane.Error](err); ok {
		return err
	}
	e := &runlane.Error{Code: runlane.ErrStorageUnavailable, Cause: err}
	if result != "" {
		e.Meta = map[string]string{outcome: result}
	}
	switch k := kind(err); {
	case noRoom(err):
		e.Message, e.Retryable = "the disk of "+path+" is full", true
		e.Hint = "make room; nothing that was committed is lost"
	case k == sqlite3.SQLITE_BUSY, k == sqlite3.SQLITE_LOCKED:
		e.Message, e.Retryable = "another process holds the lock of "+path+" for too long", true
		e.Hint = "look for a program that keeps a transaction of the file open"
	case k == sqlite3.SQLITE_READONLY, k == sqlite3.SQLITE_PERM, k == sqlite3.SQLITE_CANTOPEN:
		e.Message = path + " cannot be written"
		e.Hint = "let this user write the file and its folder"
	case k == sqlite3.SQLITE_CORRUPT, k == sqlite3.SQLITE_NOTADB:
		e.Message = path + " is damaged"
		e.Hint = "stop all programs that use it, keep a copy, go back to a backup with \"runlane restore COPY\"; " +
			"other pages can be read"
	default:
		e.Message, e.Retryable = path+" cannot be read or written", true
		e.Hint = "check the disk"
	}
	return e
}

// Full converts the error of a full disk under path. Other errors give nil.
func Full(err error, path string) error {
	if !noRoom(err) {
		return nil
	}
	return failure(err, path, notCommitted)
}

// unusable is an error of opening the file that a person has to fix.
func unusable(cause error, hint, format string, args ...any) error {
	return &runlane.Error{
		Code:    runlane.ErrConfigurationInvalid,
		Message: fmt.Sprintf(format, args...),
		Hint:    hint,
		Cause:   cause,
	}
}

// opening converts an error of SQLite during opening into a configuration error, unless a retry may help.
func opening(err error, path string) error {
	e, ok := errors.AsType[*runlane.Error](failure(err, path, ""))
	if !ok || Busy(err) || e.Code != runlane.ErrStorageUnavailable || noRoom(err) {
		return failure(err, path, "")
	}
	if kind(err) == sqlite3.SQLITE_NOTADB {
		return unusable(err, "name another path", "%s is not a SQLite file", path)
	}
	return unusable(err, e.Hint, "%s", e.Message)
}

// closed is the error of a call after Close.
func closed(path string) error {
	return &runlane.Error{
		Code:    runlane.ErrStorageUnavailable,
		Message: path + " is not open: the lane was not started, or is closed",
		Meta:    map[string]string{outcome: notCommitted},
	}
}

// full reports that a page had no room. A commit needs its last page, so none was made.
func full(err error) bool { return kind(err) == sqlite3.SQLITE_FULL }

// noRoom is full, or no room for the shared memory: 32 KB for the first process, more for a long log. In the second
// case the commit may be in the log.
func noRoom(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return full(err) || ok && e.Code() == sqlite3.SQLITE_IOERR_SHMSIZE
}

// abandoned is the error of a command when another one of its batch panicked.
func abandoned(path string) error {
	return &runlane.Error{
		Code:      runlane.ErrStorageUnavailable,
		Message:   "a write to " + path + " was rolled back: another command of its batch panicked",
		Hint:      "look for a panic in the program's output",
		Retryable: true,
		Meta:      map[string]string{outcome: unknown},
	}
}
