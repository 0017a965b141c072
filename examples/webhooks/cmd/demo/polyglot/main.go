// Command polyglot has one task executed by Go, Python and TypeScript, on one lane in a file: the two others through
// runlane serve. Each second one of these four processes is killed, in turn, and started again. It ends when all runs
// have. From the root: make demo-polyglot.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane"
)

const (
	taskID = "words.count"
	// Concurrency of each worker, and how long an attempt takes: a kill finds attempts in progress.
	concurrency = 4
	attemptTime = 20 * time.Millisecond
	// lease is the shortest: what a killed worker had goes to others after it.
	lease = core.MinLease
)

// text is the payload.
type text struct {
	Text string `json:"text"`
}

// counted is the output.
type counted struct {
	Words int    `json:"words"`
	By    string `json:"by"`
}

var count = runlane.NewTask(taskID, &runlane.TaskOptions[text]{
	Queue: runlane.Queue{Name: "words"},
	Retry: runlane.Retry{MaxAttempts: 3},
})

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("polyglot", flag.ContinueOnError)
	flags.SetOutput(stderr)
	d := demo{out: stdout}
	worker := flags.Bool("worker", false, "execute runs, as the worker in Go")
	flags.IntVar(&d.runs, "runs", 2000, "runs to make")
	flags.StringVar(&d.runlane, "runlane", "bin/runlane", "the program runlane")
	flags.StringVar(&d.python, "python", "python3", "the interpreter")
	flags.StringVar(&d.clients, "clients", "clients", "the folder of the clients")
	flags.StringVar(&d.scripts, "scripts", "examples/webhooks/cmd/demo/polyglot", "the folder of the other workers")
	flags.DurationVar(&d.limit, "limit", 55*time.Second, "after which runs that have not ended count as lost")
	if flags.Parse(args) != nil {
		return 2
	}
	if *worker {
		if err := work(ctx); err != nil {
			fmt.Fprintln(stderr, "polyglot:", err)
			return 1
		}
		return 0
	}
	lost, err := d.run(ctx)
	if err != nil {
		fmt.Fprintln(stderr, "polyglot:", err)
		return 1
	}
	return min(lost, 1)
}

// work is the worker in Go: on the file itself, by RUNLANE_LANE.
func work(ctx context.Context) (err error) {
	l, err := lane.Open(ctx, os.Getenv(lane.Variable), sqlitelane.Scheme)
	if err != nil {
		return err
	}
	rt, err := core.Open(ctx, l, &core.Options{
		Handlers: []runlane.Handler{count.Handle(func(ctx context.Context, a *runlane.Attempt, payload text) error {
			select {
			case <-time.After(attemptTime):
			case <-ctx.Done():
				return ctx.Err()
			}
			return a.SetOutput(counted{Words: len(strings.Fields(payload.Text)), By: "go"})
		})},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close(context.WithoutCancel(ctx))) }()
	return rt.Work(ctx, &core.WorkOptions{Concurrency: concurrency, Lease: lease})
}

// tasks is the file of tasks that the server reads.
func tasks() ([]byte, error) {
	d := count.Definition()
	return json.Marshal(map[string]any{"tasks": []map[string]any{{
		"task":        d.ID,
		"queue":       d.Queue.Name,
		"maxAttempts": d.Retry.MaxAttempts,
		"schema":      map[string]any{"type": "object", "required": []string{"text"}},
	}}})
}
