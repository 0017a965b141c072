// Command deploy deploys the template to local AWS and keeps it running: local AWS never fires schedules, so this
// command calls the tick function each minute until it is interrupted. The stack stays until make local-down.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/runlane/runlane-go/internal/tools/deployment"
)

const tickEvery = time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		say("%v", err)
		os.Exit(1)
	}
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "local-deploy: "+format+"\n", args...) }

func run(ctx context.Context) error {
	name := flag.String("name", "runlane", "name of the stack")
	once := flag.Bool("once", false, "deploy, tick once and end")
	folder := flag.String("folder", "", "the project to deploy, with its template.yaml; this one unless given")
	flag.Usage = func() {
		const usage = "usage: deploy [-name STACK] [-folder FOLDER] [-once] [PARAMETER=VALUE...]"
		fmt.Fprintln(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	parameters := map[string]string{}
	if *folder == "" {
		parameters["WebhookSecret"] = "local" // the example's own
	}
	for _, argument := range flag.Args() {
		key, value, ok := strings.Cut(argument, "=")
		if !ok {
			return fmt.Errorf("%q is not PARAMETER=VALUE", argument)
		}
		parameters[key] = value
	}
	for _, parameter := range slices.Sorted(maps.Keys(deployment.Omitted)) {
		say("left out here: %s=%s", parameter, deployment.Omitted[parameter])
	}
	stack, err := deployment.Deploy(ctx, deployment.Options{
		Name:       *name,
		Parameters: parameters,
		Log:        os.Stderr,
		Folder:     *folder,
	})
	if err != nil {
		return err
	}
	fmt.Println(stack.Outputs["Variables"])
	say("deployed. Programs in another terminal need, in this folder:\n"+
		"    set -a; . %s; set +a    # AWS_ENDPOINT_URL and its credentials\n    export %s",
		filepath.Join(cmp.Or(os.Getenv("RUNLANE_LOCAL_DIR"), ".local"), "env"), stack.Outputs["Variables"])
	if *once {
		return stack.Tick(ctx)
	}
	say("ticking every %s until interrupted", tickEvery)
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for {
		if err := stack.Tick(ctx); err != nil && ctx.Err() == nil {
			say("%v", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
