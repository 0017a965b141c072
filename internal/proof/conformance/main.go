// Command conformance runs the conformance suites and prints a line for each storage and transport: how many cases
// there were, how many failed, how many were skipped.
//
//	go run ./internal/proof/conformance             memlane, SQLite, DynamoDB Local (-race), LocalStack, DynamoDB
//	                                                Local behind a front that answers as AWS does, and with faults;
//	                                                scenarios with faults
//	go run ./internal/proof/conformance -only NAME  the line of that name
//	go run ./internal/proof/conformance -endpoint   the endpoints that the AWS variables name
//
// It starts nothing: scripts/conformance.sh does. What a storage does not promise has no cases, see package lanetest; a
// case that is skipped is a fault, and so is a suite without cases.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"time"
)

// suite is one line of the result.
type suite struct {
	name     string
	module   string // the folder of a module below this one; "" means this one
	folder   string
	pattern  string
	race     bool
	parallel int    // cases at once; 0 means 8
	endpoint string // the variable that names its endpoint besides AWS_ENDPOINT_URL
}

var (
	local = []suite{
		{name: "memlane", folder: "./memlane", pattern: "^Test(Storage|Transport|Lane)_Conformance$", race: true},
		{
			name:    "SQLite",
			module:  "sqlitelane",
			folder:  ".",
			pattern: "^Test(Storage|Transport|Lane)_Conformance$|^TestRuntime_Scenarios$",
			race:    true,
		},
		{name: "DynamoDB Local", folder: "./dynamostore", pattern: "^TestConformance$", race: true},
		{
			name:     "DynamoDB Local, front",
			folder:   "./dynamostore",
			pattern:  "^Test(Conformance|Scenarios)_Front$",
			parallel: 16, // they wait for indexes, and more at once wait for each other
		},
		{name: "LocalStack, DynamoDB", folder: "./dynamostore", pattern: "^TestConformance_Endpoint$"},
		{name: "LocalStack, SQS", folder: "./sqstransport", pattern: "^TestLocal_Conformance_(Standard|FIFO)$"},
		{name: "DynamoDB Local, faults", folder: "./dynamostore", pattern: "^TestConformance_Under(More)?Faults$"},
		{name: "memlane, each call", folder: "./core", pattern: "^TestRuntime_Memlane_EachCallOnce$"},
		{name: "scenarios, faults", folder: "./dynamostore", pattern: "^TestScenarios_Under(More)?Faults$"},
	}
	endpoints = []suite{
		{
			name:     "DynamoDB",
			folder:   "./dynamostore",
			pattern:  "^TestConformance_Endpoint$",
			endpoint: "AWS_ENDPOINT_URL_DYNAMODB",
		},
		{
			name:     "SQS",
			folder:   "./sqstransport",
			pattern:  "^TestLocal_Conformance_(Standard|FIFO)$",
			endpoint: "AWS_ENDPOINT_URL_SQS",
		},
	}
)

// named are the suites whose endpoints the environment names: nothing is ever sent anywhere by default.
func named(suites []suite, environment func(string) string) ([]suite, error) {
	var out []suite
	for _, s := range suites {
		if environment("AWS_ENDPOINT_URL") != "" || environment(s.endpoint) != "" {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no endpoint: set AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_DYNAMODB or AWS_ENDPOINT_URL_SQS")
	}
	return out, nil
}

func main() {
	endpoint := flag.Bool("endpoint", false, "test the endpoints that the AWS variables name")
	only := flag.String("only", "", "run the suite of this name alone")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	suites, err := local, error(nil)
	if *endpoint {
		suites, err = named(endpoints, os.Getenv)
	}
	if *only != "" {
		suites = slices.DeleteFunc(slices.Clone(suites), func(s suite) bool { return s.name != *only })
		if len(suites) == 0 {
			err = errors.Join(err, fmt.Errorf("no suite is named %q", *only))
		}
	}
	if err == nil {
		err = runAll(ctx, os.Stdout, suites)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// runAll runs every suite, also after one has failed.
func runAll(ctx context.Context, out io.Writer, suites []suite) error {
	var faults []error
	for _, s := range suites {
		started := time.Now()
		events, err := s.run(ctx)
		result, parseErr := tally(events)
		if err = errors.Join(err, parseErr, result.fault()); err != nil {
			fmt.Fprint(out, result.output)
			faults = append(faults, fmt.Errorf("%s: %w", s.name, err))
		}
		fmt.Fprintf(out, "%-24s %4d cases, %d failures, %d skips, %s\n",
			s.name, result.cases, result.failures, result.skips, time.Since(started).Round(time.Second))
	}
	return errors.Join(faults...)
}

// run returns the events of go test. Its exit status says no more than they do, unless it said nothing at all.
func (s suite) run(ctx context.Context) (io.Reader, error) {
	// What waits for an emulator, or for a pause between two tries, needs no processor.
	atOnce := strconv.Itoa(cmp.Or(s.parallel, 8))
	arguments := []string{
		"test", "-json", "-tags", "conformance", "-count=1", "-parallel", atOnce, "-timeout", "60m", "-run", s.pattern,
	}
	if s.race && raceWorks(ctx) {
		arguments = append(arguments, "-race")
	}
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(ctx, "go", append(arguments, s.folder)...)
	c.Dir = s.module
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); exited && stdout.Len() > 0 && ctx.Err() == nil {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, stderr.Bytes())
	}
	return &stdout, err
}

// raceWorks reports whether the race detector has the C compiler that it needs.
func raceWorks(ctx context.Context) bool {
	out, err := exec.CommandContext(ctx, "go", "env", "CGO_ENABLED", "CC").Output()
	fields := bytes.Fields(out)
	if err != nil || len(fields) < 2 || string(fields[0]) != "1" {
		return false
	}
	_, err = exec.LookPath(string(fields[1]))
	return err == nil
}
