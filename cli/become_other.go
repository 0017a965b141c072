//go:build !unix

package cli

import (
	"context"
	"errors"
	"os/exec"
)

// replaceProcess runs another program with this one's arguments and exits as it does.
func (s *session) replaceProcess(ctx context.Context, program, folder string) error {
	defer leaveDevFolder(folder) // on this system the program cannot remove itself
	child := exec.CommandContext(ctx, program, s.args...)
	child.Args[0] = s.name
	child.Dir, child.Stdin, child.Stdout, child.Stderr = folder, s.stdin, s.stdout, s.stderr
	err := child.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
		return &exitError{code: exit.ExitCode()}
	}
	return err
}
