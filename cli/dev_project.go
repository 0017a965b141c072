package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/runlane/runlane-go"
)

// devProject builds the program in the folder of the call and runs its dev instead of this one's, which has no tasks.
func (s *session) devProject(ctx context.Context) error {
	folder, err := s.callFolder()
	if err != nil {
		return err
	}
	if err := s.alreadyRuns(ctx, folder); err != nil {
		return err
	}
	if err := embeds(ctx, folder); err != nil {
		return err
	}
	built, err := os.MkdirTemp("", "runlane-dev")
	if err != nil {
		return err
	}
	defer os.RemoveAll(built)
	program := filepath.Join(built, filepath.Base(folder))
	build := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	build.Dir, build.Stderr = folder, s.stderr
	s.note("building %s", folder)
	if err := build.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &runlane.Error{
			Code:    runlane.ErrConfigurationInvalid,
			Message: "the program in " + folder + " cannot be built",
			Hint:    "correct what the compiler says above",
		}
	}
	return s.become(ctx, program, folder)
}

// embeds makes sure that the folder holds a program with these commands: another program could do anything when called
// with "dev".
func embeds(ctx context.Context, folder string) error {
	list := exec.CommandContext(ctx, "go", "list", "-f", "{{.Name}} {{join .Deps \" \"}}", ".")
	list.Dir = folder
	out, err := list.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return usagef("install Go, or start the program's own binary with dev", "the command go is not in the PATH")
	}
	words := strings.Fields(string(out))
	if err != nil || len(words) == 0 || words[0] != "main" {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return usagef(
			"go to your project's folder, or make one with \"init NAME\"",
			"there is no Go program in %s, and this one has no tasks",
			folder,
		)
	}
	if !slices.Contains(words, modulePath+"/cli") {
		return usagef("let its main be: func main() { os.Exit(cli.Main(context.Background(), open)) }",
			"the program in %s does not have the commands of runlane", folder)
	}
	return nil
}

// become runs a program with the arguments of this one, passes interrupts on, and ends as it ends. The program has a
// separate process group: a terminal would interrupt both, and the program would treat the second interrupt as a user's
// wish not to wait.
func (s *session) become(ctx context.Context, program, folder string) error {
	child := exec.CommandContext(ctx, program, s.args...)
	child.Dir, child.Stdin, child.Stdout, child.Stderr = folder, s.stdin, s.stdout, s.stderr
	child.Cancel = func() error { return interrupt(child.Process) }
	ownGroup(child)
	interrupts := make(chan os.Signal, 2)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(interrupts)
	if err := child.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }() // ends with the program
	for first := true; ; {
		select {
		case <-interrupts:
			if !first { // the first one ended the context
				_ = interrupt(child.Process)
			}
			first = false
		case err := <-ended:
			if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
				return &told{code: exit.ExitCode()}
			}
			if child.ProcessState.Success() {
				return nil // although the context ended
			}
			return err
		}
	}
}
