//go:build !unix

package file

// mayWrite leaves it to the first write.
func mayWrite(string) bool { return true }
