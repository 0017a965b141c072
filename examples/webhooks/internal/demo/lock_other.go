//go:build !unix

package demo

import "os"

// lock does nothing where the system has no such locks: do not start two demos in one folder there.
func lock(*os.File) error { return nil }
