//go:build unix

package cli

import (
	"context"
	"os"
	"syscall"
)

// become puts a program with the arguments of this one in this one's place. It is no child, since a child would outlive
// a kill of this process.
func (s *session) become(ctx context.Context, program, folder string) error {
	if err := os.Chdir(folder); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return syscall.Exec(program, append([]string{program}, s.args...), append(os.Environ(), "PWD="+folder))
}
