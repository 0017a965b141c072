// Command runlane is the command line of package cli for a deployment on AWS: it operates the runs of any program and
// executes none itself. A program that defines tasks embeds the same commands with cli.Main.
//
// Flags or environment variables choose the deployment: RUNLANE_TABLE, RUNLANE_ENV, RUNLANE_QUEUES, RUNLANE_LIMITS and
// the standard ones of AWS. Without RUNLANE_QUEUES it reads, cancels and prunes, and refuses commands that would wake a
// worker. RUNLANE_KEYS, or RUNLANE_KEYS_FILE, has the keys of encrypted payloads; without keys, runs are shown without
// payloads.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/runlane/runlane-go/cli"
)

func main() {
	// What a person has to know is said by the commands; --verbose shows the rest.
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	os.Exit(cli.Run(context.Background(), open, &cli.Options{
		Project: true,
		Variables: []cli.Variable{
			{
				Flag:  "limits",
				Name:  limitsVariable,
				Usage: "LIST of queues and their concurrency, name=number; 0 is no limit",
			},
		},
	}))
}
