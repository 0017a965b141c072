//go:build unix

package target

import (
	"os"
	"os/exec"
	"syscall"
)

const hasGroups = true

// ownGroup gives the command a process group of its own, which the end of its context asks to end.
func ownGroup(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithWorker(c.SysProcAttr)
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
}

func killGroup(leader int) { _ = syscall.Kill(-leader, syscall.SIGKILL) }

// endSignal returns the signal that ended the command, or "".
func endSignal(state *os.ProcessState) string {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return status.Signal().String()
	}
	return ""
}
