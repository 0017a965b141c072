//go:build unix

package cli

import (
	"io/fs"
	"os"
	"syscall"
)

// private reports a file that belongs to this user and that no other user can access.
func private(info fs.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(owner.Uid) == os.Getuid() && info.Mode().Perm()&0o077 == 0
}
