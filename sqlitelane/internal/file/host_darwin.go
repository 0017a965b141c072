package file

import (
	"os"
	"syscall"
)

// systemHost is this machine since it was started.
func systemHost() Host {
	id, err := syscall.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return Host{}
	}
	name, err := os.Hostname()
	if err != nil {
		name = "" // which is for people alone
	}
	return Host{ID: id, Name: name}
}
