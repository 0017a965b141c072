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
	"time"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
)

const closeTime = 10 * time.Second

var errNotAsWanted = errors.New("not everything ended as it should: see the lines above")

// smokeStack checks the stack that the arguments name: a few runs of each kind in every queue, which the deployed functions
// execute. It compares what DynamoDB reports as consumed with the storage's meter, and removes what it made, also after an
// interruption. The runs are of webhooks.check, which examples/webhooks has, or of the task that is named.
func smokeStack(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("smoke", flag.ContinueOnError)
	stack := flags.String("stack", "", "`name` of the stack")
	task := flags.String("task", "", "`id` of a task of the stack's program that starts nothing else")
	payload := flags.String("payload", "{}", "`JSON` with which that task succeeds")
	retried := flags.String("retried", "", "`JSON` with which its first attempt fails and the second succeeds")
	var w wish
	flags.IntVar(&w.memory, "memory", 256, "`megabytes` of the stack's bridges, for the bound of the cost")
	flags.IntVar(&w.each, "each", 0, "how many `runs` of each kind; 0 for three, or as many as fit")
	flags.DurationVar(&w.patience, "patience", 3*time.Minute, "how long the runs have to end")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *stack == "" || flags.NArg() > 0 {
		return errors.New("which stack? make smoke-aws STACK=name")
	}
	w.task, w.payload = runlane.TaskID(*task), json.RawMessage(*payload)
	if *retried != "" {
		w.retried = json.RawMessage(*retried)
	}
	outputs, err := readOutputs(ctx, deployOptions{name: *stack, log: os.Stderr})
	if err != nil {
		return err
	}
	return checkStack(ctx, outputs, w, os.Stdout)
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
