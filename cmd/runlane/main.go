// Command runlane is the command line of package cli for a SQLite file or a deployment on AWS. It operates the runs of
// any program and executes none itself. A program with tasks embeds the same commands with cli.Main.
//
// RUNLANE_LANE (--lane) chooses: sqlite:PATH for a file, aws: for a deployment; RUNLANE_TABLE alone also means AWS.
// RUNLANE_ENV names the environment. On AWS, RUNLANE_QUEUES, RUNLANE_LIMITS and AWS's own variables are read, too.
// Without RUNLANE_QUEUES the program can read, cancel and prune, and refuses commands that would wake a worker.
// RUNLANE_KEYS, or RUNLANE_KEYS_FILE, has the keys of encrypted payloads; without them payloads are not shown.
// RUNLANE_TOKEN_KEYS has the keys of answer tokens, for "runs answer".
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/mcp"
)

func main() {
	// Commands report errors themselves; --verbose shows the log.
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	os.Exit(cli.Run(context.Background(), open, &cli.Options{
		Project: true,
		MCP: func(allow []string) (cli.MCP, error) {
			return mcp.New(&mcp.Options{Allow: allow})
		},
		Variables: []cli.Variable{
			{
				Flag:  "limits",
				Name:  limitsVariable,
				Usage: "LIST of queues and their concurrency, name=number; 0 is no limit",
			},
		},
	}))
}
