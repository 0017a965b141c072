//go:build unix

package file

import (
	"io"
	"os"
	"syscall"
)

// mayWrite asks the system without opening the file: closing it again would end the locks of this process on it.
func mayWrite(path string) bool {
	const write = 2
	return syscall.Access(path, write) == nil
}

// mayRead asks in the same way.
func mayRead(path string) bool {
	const read = 4
	return syscall.Access(path, read) == nil
}

// links is how many names a file has.
func links(info os.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink) // it has another type elsewhere
	}
	return 1
}

// lockWhole takes all locks that SQLite takes on a file: it fails while any process has the file open, and until the
// file is closed no other can open it.
func lockWhole(f *os.File) error {
	const pending, reserved, shared = 1, 1, 510 // bytes, in this order
	return syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{
		Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: 0x40000000, Len: pending + reserved + shared,
	})
}

// keepOwner gives f the owner and the group that info has, or the group alone, where this process may.
func keepOwner(f *os.File, info os.FileInfo) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if ok && f.Chown(int(s.Uid), int(s.Gid)) != nil {
		_ = f.Chown(-1, int(s.Gid))
	}
}
