//go:build unix

package cli

import (
	"io/fs"
	"os"
	"syscall"
)

// private reports a file that is this user's and that nobody else may touch.
func private(info fs.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(owner.Uid) == os.Getuid() && info.Mode().Perm()&0o077 == 0
}
