//go:build unix

package file

import (
	"io"
	"os"
	"syscall"
)

// mayWrite asks the system without opening the file: closing a descriptor drops this process's locks on the file.
func mayWrite(path string) bool {
	const write = 2
	return syscall.Access(path, write) == nil
}

// mayRead is like mayWrite.
func mayRead(path string) bool {
	const read = 4
	return syscall.Access(path, read) == nil
}

// links returns the number of the file's hard links.
func links(info os.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink) // other systems use another type
	}
	return 1
}

// lockWhole takes all of SQLite's locks on a file. It fails while any process has the file open, and keeps others from
// opening it until f is closed.
func lockWhole(f *os.File) error {
	const pending, reserved, shared = 1, 1, 510 // bytes, in this order
	return syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{
		Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: 0x40000000, Len: pending + reserved + shared,
	})
}

// keepOwner gives f the owner and group of info, else only the group, as far as this process may.
func keepOwner(f *os.File, info os.FileInfo) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if ok && f.Chown(int(s.Uid), int(s.Gid)) != nil {
		_ = f.Chown(-1, int(s.Gid))
	}
}
