//go:build unix

package cli

import (
	"context"
	"os"
	"syscall"
)

// replaceProcess replaces this process by another program with the same name and arguments. A child process would survive a kill of this
// one.
func (s *session) replaceProcess(ctx context.Context, program, folder string) error {
	if err := os.Chdir(folder); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return syscall.Exec(program, append([]string{s.name}, s.args...), append(os.Environ(), "PWD="+folder))
}
