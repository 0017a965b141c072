//go:build !linux

package file

import "os"

// isStill reports whether a file is what is at path, and how many names that has.
func isStill(path string, was os.FileInfo) (still bool, names uint64, err error) {
	return isStillByStat(path, was)
}
