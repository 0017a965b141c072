// Command program is the application that internal/proof/upgrade deploys: once built with the old sources of Runlane,
// and once with today's. It uses exported names alone that both have.
//
//	program COMMAND…   is the command line of runlane
//	program load       triggers what it reads, a line of JSON a run, and answers each with what was acknowledged
//	program look       tells of every run of the table what it reads, a line of JSON a run
//	program glance     tells their statuses alone
//
// As a function of the template it executes the tasks. What its handlers do goes to a file that no program of the
// project reads.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/functions"
)

// Set by the linker: whose sources the program was built with, and the folder with the notes and the gates.
var built, folder string

func main() {
	if os.Getenv(functions.RoleVariable) != "" {
		functions.Start(open)
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	ctx := context.Background()
	own := map[string]func(context.Context) error{"load": load, "look": look, "glance": glance}
	act := own[strings.Join(os.Args[1:], " ")]
	if act == nil {
		os.Exit(cli.Main(ctx, open))
	}
	if err := act(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "program:", err)
		os.Exit(1)
	}
}
