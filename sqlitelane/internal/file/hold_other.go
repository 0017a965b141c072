//go:build !linux

package file

import "os"

// hold finds the file at path without holding it: closing a descriptor would drop this process's locks. A reused inode
// number would take two replacements within a moment.
func hold(path string) (info os.FileInfo, held *os.File, err error) {
	info, err = os.Stat(path)
	return info, nil, err
}
