//go:build !linux

package file

import "os"

// isStill reports whether path still names that file, and the file's number of names.
func isStill(path string, was os.FileInfo) (still bool, names uint64, err error) {
	return isStillByStat(path, was)
}
