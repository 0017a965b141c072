// Command e2e runs what users run, whole, on local AWS; its check also runs in an account.
//
//	e2e deploy [-name STACK] [-folder FOLDER] [-once] [PARAMETER=VALUE...]
//	e2e smoke -stack NAME [-task ID -payload JSON [-retried JSON]] [-memory MB] [-each N] [-patience DURATION]
//
// Its tests are one for each question: the deployed template and a new user's way (tag e2e), chaos, load. The
// functions that chaos kills are this program too, where Lambda's runtime API is in the environment.
package main

import (
	"cmp"
	"context"
	"errors"
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

	"github.com/runlane/runlane-go/functions"
)

const tickEvery = time.Minute

func main() {
	if os.Getenv(runtimeVariable) != "" {
		putClockForward()
		functions.Start(openTasks)
		return
	}
	commands := map[string]func(context.Context, []string) error{"deploy": keepDeployed, "smoke": smokeStack}
	command := commands[strings.Join(os.Args[1:min(2, len(os.Args))], "")]
	if command == nil {
		fmt.Fprintln(os.Stderr, "usage: e2e deploy|smoke: see go doc ./internal/proof/e2e")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[2:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

// keepDeployed deploys the template to local AWS and calls the tick function each minute until it is interrupted: local AWS never
// fires schedules. The stack stays until make local-down.
func keepDeployed(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("deploy", flag.ContinueOnError)
	name := flags.String("name", "runlane", "name of the stack")
	once := flags.Bool("once", false, "deploy, tick once and end")
	folder := flags.String("folder", "", "the project to deploy, with its template.yaml; this one unless given")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	say := func(format string, args ...any) { fmt.Fprintf(os.Stderr, "deploy: "+format+"\n", args...) }
	parameters := map[string]string{}
	if *folder == "" {
		parameters["WebhookSecret"] = "local" // the example's own
	}
	for _, argument := range flags.Args() {
		key, value, ok := strings.Cut(argument, "=")
		if !ok {
			return fmt.Errorf("%q is not PARAMETER=VALUE", argument)
		}
		parameters[key] = value
	}
	for _, parameter := range slices.Sorted(maps.Keys(omitted)) {
		say("left out here: %s=%s", parameter, omitted[parameter])
	}
	s, err := deployStack(ctx, deployOptions{name: *name, parameters: parameters, log: os.Stderr, folder: *folder})
	if err != nil {
		return err
	}
	fmt.Println(s.outputs["Variables"])
	say("deployed. Programs in another terminal need, in this folder:\n"+
		"    set -a; . %s; set +a    # AWS_ENDPOINT_URL and its credentials\n    export %s",
		filepath.Join(cmp.Or(os.Getenv("RUNLANE_LOCAL_DIR"), ".local"), "env"), s.outputs["Variables"])
	if *once {
		return s.tick(ctx)
	}
	say("ticking every %s until interrupted", tickEvery)
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	for {
		if err := s.tick(ctx); err != nil && ctx.Err() == nil {
			say("%v", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
