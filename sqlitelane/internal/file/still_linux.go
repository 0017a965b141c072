package file

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// isStill reports whether path still names that file, and the file's number of names. A symbolic link counts as
// another file: opening it uses the log next to its target. It does not ask for times: Linux 6.13 and newer gives a
// file finer timestamps after such a question, and then each write of the log also changes its inode.
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
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM): // before Linux 4.11, or filtered
		return isStillByStat(path, was)
	case err != nil:
		return false, 0, &fs.PathError{Op: "statx", Path: path, Err: err}
	}
	// the device has another type on other systems
	same := now.Ino == old.Ino && unix.Mkdev(now.Dev_major, now.Dev_minor) == uint64(old.Dev)
	return same, uint64(now.Nlink), nil
}
