//go:build !unix

package cli

import "io/fs"

// private cannot be told from the mode here: files in a user's folders are that user's.
func private(fs.FileInfo) bool { return true }
