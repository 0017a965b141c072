//go:build !unix

package cli

import (
	"os"
	"os/exec"
)

// interrupt ends a process: there are no signals here.
func interrupt(process *os.Process) error { return process.Kill() }

func ownGroup(*exec.Cmd) {}
