//go:build !unix

package cli

import (
	"context"
	"errors"
	"os/exec"
)

// become runs a program with the arguments of this one, and ends as it ends.
func (s *session) become(ctx context.Context, program, folder string) error {
	defer leaveDevFolder(folder) // the program cannot remove itself here
	child := exec.CommandContext(ctx, program, s.args...)
	child.Dir, child.Stdin, child.Stdout, child.Stderr = folder, s.stdin, s.stdout, s.stderr
	err := child.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
		return &told{code: exit.ExitCode()}
	}
	return err
}
