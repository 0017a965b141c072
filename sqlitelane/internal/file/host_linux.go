package file

import (
	"os"
	"strings"
)

// bootID is a random ID of the running kernel, visible in containers too.
const bootID = "/proc/sys/kernel/random/boot_id"

// systemHost identifies this machine since its last boot. Some containers (LXC, systemd-nspawn) mount another ID over
// the kernel's. Such an ID is useless, because they share the kernel.
func systemHost() Host {
	list, err := os.ReadFile(mounts)
	if err != nil || listsMount(string(list), bootID) {
		return Host{}
	}
	id, err := os.ReadFile(bootID)
	if err != nil {
		return Host{}
	}
	name, err := os.Hostname()
	if err != nil {
		name = "" // only for humans
	}
	return Host{ID: strings.TrimSpace(string(id)), Name: name}
}
