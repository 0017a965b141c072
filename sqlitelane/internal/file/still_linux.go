package file

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// isStill reports whether a file is what is at path, and how many names that has. A link in its place is another file:
// who opens it by that name uses the log beside the link's target. It does not ask for the file's times:
// Linux (6.13 and newer) gives a file that was asked for them a finer time with its next write, and then each write of
// the log changes its inode, too.
func isStill(path string, was os.FileInfo) (still bool, names uint64, err error) {
	old, ok := was.Sys().(*syscall.Stat_t)
	if !ok {
		return isStillByStat(path, was)
	}
	var now unix.Statx_t
	for {
		err = unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_NLINK, &now)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	switch {
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM): // before Linux 4.11, or a filter of system calls
		return isStillByStat(path, was)
	case err != nil:
		return false, 0, &fs.PathError{Op: "statx", Path: path, Err: err}
	}
	// the device's number has another type elsewhere
	same := now.Ino == old.Ino && unix.Mkdev(now.Dev_major, now.Dev_minor) == uint64(old.Dev)
	return same, uint64(now.Nlink), nil
}
