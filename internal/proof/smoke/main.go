// Command smoke checks a deployment of the template: it triggers a few runs of each kind, watches the deployed
// functions execute them, compares what DynamoDB reports as consumed with what the storage's meter computes, prints
// both with where the time went, and removes what it made, also after an interruption.
//
//	go run ./internal/proof/smoke -stack NAME [-task ID -payload JSON [-retried JSON]] [-memory MB] [-each N]
//		[-patience DURATION]
//
// Every queue of the stack gets runs. They are of webhooks.check, which examples/webhooks has, or of the task that is
// named. Region and credentials are the standard ones of AWS. It has to be started in this repository's folder. It ends
// with 1 when anything did not end as it should, or is left behind.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/internal/tools/deployment"
)

const closeTime = 10 * time.Second

var errNotAsWanted = errors.New("not everything ended as it should: see the lines above")

func main() {
	stack := flag.String("stack", "", "`name` of the stack")
	task := flag.String("task", "", "`id` of a task of the stack's program that starts nothing else")
	payload := flag.String("payload", "{}", "`JSON` with which that task succeeds")
	retried := flag.String("retried", "", "`JSON` with which its first attempt fails and the second succeeds")
	var w wish
	flag.IntVar(&w.memory, "memory", 256, "`megabytes` of the stack's bridges, for the bound of the cost")
	flag.IntVar(&w.each, "each", 0, "how many `runs` of each kind; 0 for three, or as many as fit")
	flag.DurationVar(&w.patience, "patience", 3*time.Minute, "how long the runs have to end")
	flag.Parse()
	w.task, w.payload = runlane.TaskID(*task), json.RawMessage(*payload)
	if *retried != "" {
		w.retried = json.RawMessage(*retried)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *stack, w, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "smoke:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, stack string, w wish, out io.Writer) error {
	if stack == "" || flag.NArg() > 0 {
		return errors.New("which stack? make smoke-aws STACK=name")
	}
	outputs, err := deployment.ReadOutputs(ctx, deployment.Options{Name: stack, Log: os.Stderr})
	if err != nil {
		return err
	}
	return checkStack(ctx, outputs, w, out)
}

// checkStack checks the deployment that has these outputs.
func checkStack(ctx context.Context, outputs map[string]string, w wish, out io.Writer) error {
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
		w,
	)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(
		out, "%d runs of %s named %s_…, which are removed afterwards: at most $%.2f by list prices, with bridges "+
			"of %d MB; idle costs and what handlers use elsewhere aside\n\n",
		len(s.probes), s.task.ID, s.prefix, math.Ceil(s.atMost()*100)/100, s.memory,
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
