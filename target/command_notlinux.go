//go:build unix && !linux

package target

import "syscall"

func dieWithWorker(*syscall.SysProcAttr) {}
