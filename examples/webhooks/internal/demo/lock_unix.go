//go:build unix

package demo

import (
	"os"
	"syscall"
)

// lock takes the whole file for this process until it ends; a file that another one has taken is an error.
func lock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
