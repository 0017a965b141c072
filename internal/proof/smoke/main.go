// Command smoke checks a deployment of the template: it triggers a few runs of each kind, watches the deployed
// functions execute them, compares what DynamoDB reports as consumed with what the storage's meter computes, prints
// both with where the time went, and removes what it made, also after an interruption.
//
//	go run ./internal/proof/smoke -stack NAME [-each N] [-patience DURATION]
//
// Region and credentials are the standard ones of AWS. It has to be started in the project's folder and needs the tasks
// of examples/webhooks on the other side. It ends with 1 when anything did not end as it should, or is left behind.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/internal/tools/deployment"
)

const closeTime = 10 * time.Second

var errNotAsWanted = errors.New("not everything ended as it should: see the lines above")

func main() {
	stack := flag.String("stack", "", "`name` of the stack")
	each := flag.Int("each", 3, "how many `runs` of each kind")
	patience := flag.Duration("patience", 3*time.Minute, "how long the runs have to end")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *stack, *each, *patience, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "smoke:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, stack string, each int, patience time.Duration, out io.Writer) error {
	if stack == "" || flag.NArg() > 0 {
		return errors.New("which stack? make smoke-aws STACK=name")
	}
	outputs, err := deployment.ReadOutputs(ctx, deployment.Options{Name: stack, Log: os.Stderr})
	if err != nil {
		return err
	}
	return checkStack(ctx, outputs, each, patience, out)
}

// checkStack checks the deployment that has these outputs.
func checkStack(ctx context.Context, outputs map[string]string, each int, patience time.Duration, out io.Writer) error {
	for _, name := range []string{"EnvironmentName", "TableName", "Queues"} {
		if outputs[name] == "" {
			return fmt.Errorf("the stack has no output %s: it is not one of template.yaml", name)
		}
	}
	queues, err := awslane.ParseQueues(outputs["Queues"])
	if err != nil {
		return err
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	s, err := open(
		ctx,
		cfg,
		target{environment: outputs["EnvironmentName"], table: outputs["TableName"], queues: queues},
		each,
		patience,
	)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(
		out, "%d runs named %s_…, which are removed afterwards: at most $%.2f by list prices, idle costs aside\n\n",
		len(s.probes), s.prefix, max(s.atMost(), 0.01),
	)
	if err != nil {
		return err
	}
	good := s.check(ctx)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	if err := errors.Join(s.report(out), s.rt.Close(closing)); err != nil {
		return err
	}
	if !good {
		return errNotAsWanted
	}
	return nil
}
