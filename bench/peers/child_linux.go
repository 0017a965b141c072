package main

import "syscall"

// attributes let a server run as another account, keep Ctrl-C to ourselves, and end it should this program be killed.
func attributes(owner *account) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
	if owner != nil {
		a.Credential = &syscall.Credential{Uid: owner.user, Gid: owner.group}
	}
	return a
}

// inMemory reports whether a folder is in a file system that fsync does nothing for.
func inMemory(dir string) bool {
	const tmpfs, ramfs = 0x01021994, 0x858458f6
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return false
	}
	return int64(fs.Type) == tmpfs || int64(fs.Type) == ramfs // the type differs between processors
}
