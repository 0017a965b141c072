package cli_test

import (
	"context"
	"os"
	"strings"

	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// open builds the runtime of the program: its lane and its tasks.
func open(ctx context.Context) (*core.Runtime, error) {
	return core.Open(ctx, memlane.New(), nil)
}

// A program whose main is this line has every command of runlane, with its own tasks.
func ExampleMain() {
	os.Exit(cli.Main(context.Background(), open))
}

// Options bring checks of the program's own into doctor.
func ExampleRun() {
	code := cli.Run(context.Background(), open, &cli.Options{
		Name: "mailer", Args: []string{"doctor", "--json"}, Stdout: &strings.Builder{},
		Checks: []cli.Check{{Name: "smtp", Run: func(context.Context, *core.Runtime) (string, error) { return "answers", nil }}},
	})
	_, _ = os.Stdout.WriteString(map[bool]string{true: "healthy\n"}[code == cli.ExitOK])
	// Output: healthy
}
