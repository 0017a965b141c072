//go:build !linux && !darwin

package file

// systemHost cannot identify the running system here.
func systemHost() Host { return Host{} }
