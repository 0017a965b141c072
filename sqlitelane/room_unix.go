//go:build linux || darwin

package sqlitelane

import "syscall"

// freeBytes returns how much unprivileged users may still write to the folder's disk.
func freeBytes(folder string) (bytes int64, known bool) {
	var s syscall.Statfs_t
	if syscall.Statfs(folder, &s) != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true // types differ between systems
}
