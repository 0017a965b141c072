// Command reliability runs every machine that tries to break a promise of docs/guarantees.md, and makes one report of
// what they did: steps driven, crash points tried, histories checked, faults injected, inputs tried, runs lost, what
// runs that had not ended waited for. The last machine (internal/proof/mutation) turns off each protection at the SDK's
// seam and names the tests that miss it.
//
//	go run ./internal/proof/reliability [-only NAME] [-log FILE]
//
// It fails when a machine fails, when a run was lost, when a crash point was not tried, and when nothing misses a
// protection. It needs local AWS, which make reliability brings.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"
)

func main() {
	only := flag.String("only", "", "run only the machine with this name")
	log := flag.String("log", "", "write everything that the machines print to this file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *only, *log)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "reliability:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only, log string) error {
	if log == "" {
		return runAll(ctx, only, io.Discard)
	}
	file, err := os.Create(log) //nolint:gosec // the user who starts this names it
	if err != nil {
		return err
	}
	return errors.Join(runAll(ctx, only, file), file.Close())
}

// runAll runs the machines and reports. everything gets what they print.
func runAll(ctx context.Context, only string, everything io.Writer) error {
	report := newReport()
	for _, m := range machines() {
		if only != "" && only != m.name {
			continue
		}
		began := time.Now()
		failed, err := m.run(ctx, everything, report.read)
		if err != nil {
			return err
		}
		report.ran(m.name, time.Since(began), failed)
		fmt.Fprintf(os.Stderr, "reliability: %s took %s\n", m.name, time.Since(began).Round(time.Second))
	}
	report.print(os.Stdout)
	return report.verdict(only == "")
}

// machine is a program that tries to break something, and prints what it did.
type machine struct {
	name    string
	command []string
}

// tests is a machine made of tests.
func tests(name, pattern string, arguments ...string) machine {
	return machine{
		name:    name,
		command: append([]string{"go", "test", "-count=1", "-v", "-timeout", "60m", "-run", pattern}, arguments...),
	}
}

// machines in the order of the report.
func machines() []machine {
	return []machine{
		tests("random lives beside a model", "^TestModel_", "./internal/proof/lives"),
		tests("random lives on both storages", "^TestLives_", "./internal/proof/lives"),
		tests("crash points", ".", "./internal/proof/crashtest"),
		tests("linearizability", "Linearizability", "./memlane", "./dynamostore"),
		tests(
			"the contract under faults",
			"UnderFaults|UnderMoreFaults",
			"-tags",
			"conformance",
			"./memlane",
			"./dynamostore",
			"./core",
		),
		{
			name: "one file: lives, deaths, losses of power, faults",
			command: []string{
				"go", "-C", "sqlitelane", "test", "-count=1", "-v", "-timeout", "60m", "-run",
				"^TestLives_|^TestCrash_|^TestKill_|^TestPowerLoss_|Linearizability|UnderFaults|_SQLite_|Hostile", ".",
			},
		},
		tests("chaos", ".", "./internal/proof/chaos"),
		tests("load", ".", "./internal/proof/loadtest"),
		tests("hostile inputs and handlers", ".", "./internal/proof/hostiletest"),
		tests("FIFO queues and suspects in virtual time", "FIFO|Hazard51", "./functions", "./core"),
		tests("a payload that kills its process", "^TestPoison_", "./internal/proof/lambdatest"),
		tests("behind a front that answers as AWS does", "_Front$", "-tags", "conformance", "./dynamostore"),
		{name: "fuzzing", command: []string{"scripts/fuzz.sh"}},
		{name: "the protocol, state by state", command: []string{"go", "run", "./internal/proof/model"}},
		{
			name:    "the protocol's rules, taken out one by one",
			command: []string{"go", "run", "./internal/proof/model", "-mutations", "-states", "300000"},
		},
		{name: "protections", command: []string{"go", "run", "./internal/proof/mutation", "-protections"}},
	}
}

// run returns the names of the tests that failed; a command that is no test is named itself. err is for a machine that
// did not run.
func (m machine) run(ctx context.Context, everything io.Writer, read func(line string)) (failed []string, err error) {
	command := exec.CommandContext(ctx, m.command[0], m.command[1:]...)
	command.Stderr = everything
	command.WaitDelay = 10 * time.Second
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", m.name, err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		_, _ = fmt.Fprintln(everything, line)
		read(line)
		if name, ok := strings.CutPrefix(line, "--- FAIL: "); ok {
			name, _, _ = strings.Cut(name, " (")
			failed = append(failed, name)
		}
	}
	scanned, ended := lines.Err(), command.Wait()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s was interrupted", m.name)
	}
	if scanned != nil {
		return nil, fmt.Errorf("%s: %w", m.name, scanned)
	}
	if ended != nil && len(failed) == 0 {
		failed = []string{strings.Join(m.command, " ") + ": " + ended.Error()}
	}
	return failed, nil
}
