package file

import (
	"os"
	"strings"
)

// bootID has a random name of the running kernel, which containers have, too.
const bootID = "/proc/sys/kernel/random/boot_id"

// systemHost is this machine since it was started. Some containers (LXC, systemd-nspawn) have another name mounted over
// the kernel's: that says nothing, as they share the kernel with others.
func systemHost() Host {
	list, err := os.ReadFile(mounts)
	if err != nil || lists(string(list), bootID) {
		return Host{}
	}
	id, err := os.ReadFile(bootID)
	if err != nil {
		return Host{}
	}
	name, err := os.Hostname()
	if err != nil {
		name = "" // which is for people alone
	}
	return Host{ID: strings.TrimSpace(string(id)), Name: name}
}
