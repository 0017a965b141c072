package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
)

// devProgram is the folder, next to the file of runs, for the project's binary. It is kept so that the next build is
// fast.
const devProgram = "program"

// devProject builds the program in the folder of the call and runs its dev, since this program has no tasks.
func (s *session) devProject(ctx context.Context) error {
	folder, err := s.callFolder()
	if err != nil {
		return err
	}
	if err := embeds(ctx, folder); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(folder, devFolder), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return refusesDev(folder, err)
	}
	program := filepath.Join(folder, devFolder, devProgram, filepath.Base(folder))
	build := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	build.Dir, build.Stderr = folder, s.stderr
	s.note("building %s", folder)
	if err := build.Run(); err != nil {
		leaveDevFolder(folder)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &runlane.Error{
			Code:    runlane.ErrConfigurationInvalid,
			Message: "the program in " + folder + " cannot be built",
			Hint:    "correct what the compiler says above",
		}
	}
	return s.replaceProcess(ctx, program, folder)
}

// embeds checks that the folder holds a program with these commands. Another program could do anything when called with
// "dev".
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
			"go to your project's folder, or make one with \"runlane init NAME\"",
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
