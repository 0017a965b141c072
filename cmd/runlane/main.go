// Command runlane is the command line of package cli for a file of SQLite or a deployment on AWS: it operates the runs
// of any program and executes none itself. A program that defines tasks embeds the same commands with cli.Main.
//
// RUNLANE_LANE (--lane) chooses: sqlite:PATH for a file, aws: for a deployment, which is also what RUNLANE_TABLE alone
// means. RUNLANE_ENV names the environment. On AWS, RUNLANE_QUEUES, RUNLANE_LIMITS and AWS's own variables are read,
// too. Without RUNLANE_QUEUES the program reads, cancels and prunes there, and refuses commands that would wake a
// worker. RUNLANE_KEYS, or RUNLANE_KEYS_FILE, has the keys of encrypted payloads; without keys, runs are shown without
// payloads. RUNLANE_TOKEN_KEYS has the keys of answer tokens, for "runs answer".
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/mcp"
)

func main() {
	// What a person has to know is said by the commands; --verbose shows the rest.
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
