//go:build unix

package cli

import (
	"os"
	"os/exec"
	"syscall"
)

// interrupt asks a process to end.
func interrupt(process *os.Process) error { return process.Signal(os.Interrupt) }

// ownGroup keeps what a terminal sends to its group from a program.
func ownGroup(program *exec.Cmd) { program.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
