//go:build unix

package file

import (
	"os"
	"syscall"
)

// mayWrite asks the system without opening the file: closing it again would end the locks of this process on it.
func mayWrite(path string) bool {
	const write = 2
	return syscall.Access(path, write) == nil
}

// links is how many names a file has.
func links(info os.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Nlink) //nolint:unconvert // it has another type elsewhere
	}
	return 1
}
