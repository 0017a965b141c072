package file

import (
	"os"
	"syscall"
)

// systemHost identifies this machine since its last boot.
func systemHost() Host {
	id, err := syscall.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return Host{}
	}
	name, err := os.Hostname()
	if err != nil {
		name = "" // only for humans
	}
	return Host{ID: id, Name: name}
}
