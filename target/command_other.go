//go:build !unix

package target

import (
	"os"
	"os/exec"
)

const hasGroups = false

func ownGroup(*exec.Cmd) {}

func killGroup(int) {}

func endSignal(*os.ProcessState) string { return "" }
