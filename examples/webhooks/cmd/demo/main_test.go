package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/examples/webhooks/internal/demo"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqlitelane"
)

// againVariable makes a test's program the demo: -kill starts the program that runs, again.
const againVariable = "RUNLANE_TEST_DEMO"

func TestMain(m *testing.M) {
	if os.Getenv(againVariable) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// written is an input of n webhooks.
func written(t *testing.T, n int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "input.ndjson")
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, "{\"id\":\"delivery-%d\",\"event\":\"push\",\"payload\":{\"of\": %d}}\n", i, i)
	}
	if err := os.WriteFile(path, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRun_ExitStatusAndLastLine(t *testing.T) {
	input := written(t, 1)
	t.Setenv("AWS_ENDPOINT_URL", "") // no emulator, and surely no real account
	for name, c := range map[string]struct {
		lane      string
		arguments []string
		status    int
		stdout    string // its end
		stderr    string // part of it
	}{
		"delivered":         {"", []string{"-input", input}, 0, "\ndemo: 1 runs, 1 succeeded, 0 failed, 0 lost\n", "1 ended"},
		"in memory":         {"mem:", []string{"-input", input}, 0, "\ndemo: 1 runs, 1 succeeded, 0 failed, 0 lost\n", "1 ended"},
		"missing input":     {"", []string{"-input", input + ".missing"}, 1, "", "validation_failed"},
		"nothing to resume": {"", []string{"-resume"}, 1, "", "no interrupted demo"},
		"resume in memory":  {"mem:", []string{"-resume"}, 1, "", "RUNLANE_LANE=sqlite:PATH"},
		"kill in memory":    {"mem:", []string{"-kill"}, 2, "", "outlives the process"},
		"kill and resume":   {"", []string{"-kill", "-resume"}, 2, "", "begins anew"},
		"no emulator":       {"aws:", []string{"-input", input}, 1, "", "AWS_ENDPOINT_URL"},
		"unknown lane":      {"other:", nil, 1, "", "sqlite:PATH, mem:, aws:"},
		"unknown flag":      {"", []string{"-other"}, 2, "", "-other"},
		"too many words":    {"", []string{"embedded"}, 2, "", "no arguments"},
		"help is not a run": {"", []string{"-help"}, 2, "", "-resume"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(lane.Variable, c.lane)
			var stdout, stderr bytes.Buffer
			arguments := append([]string{"-state", t.TempDir()}, c.arguments...)
			if status := run(t.Context(), arguments, &stdout, &stderr, false); status != c.status {
				t.Errorf("status %d, want %d\n%s", status, c.status, &stderr)
			}
			if !strings.HasSuffix(stdout.String(), c.stdout) || c.stdout == "" && stdout.Len() > 0 || !strings.Contains(stderr.String(), c.stderr) {
				t.Errorf("stdout %q, stderr %q", &stdout, &stderr)
			}
		})
	}
}

// The demo dies by the signal that no program can handle, half of its deliveries made, and is started again: nothing is lost, and the
// receiver sees no payload that it cannot match. Its file says the same afterwards.
func TestRun_Killed_FinishesWhatItHadBegun(t *testing.T) {
	t.Setenv(againVariable, "yes")
	t.Setenv(lane.Variable, "")
	const webhooks = 60
	state, again := t.TempDir(), ""
	for _, n := range []int{webhooks, 1} { // the second begins anew
		var stdout, stderr bytes.Buffer
		if status := run(t.Context(), []string{"-kill", "-state", state, "-input", written(t, n)}, &stdout, &stderr, false); status != 0 {
			t.Fatalf("status %d\n%s%s", status, &stdout, &stderr)
		}
		if want := fmt.Sprintf("\ndemo: %d runs, %d succeeded, 0 failed, 0 lost\n", n, n); !strings.HasSuffix(stdout.String(), want) {
			t.Errorf("%s has not at its end %s", &stdout, want)
		}
		if strings.Count(stderr.String(), "demo: signal: killed, in the middle") != 1 {
			t.Errorf("it was not killed once:\n%s", &stderr)
		}
		// What was accepted when it died arrives again.
		of := regexp.MustCompile(`resumed +(\d+) of (\d+) runs`).FindStringSubmatch(stdout.String())
		accepted := regexp.MustCompile(`receiver +(\d+) accepted, (\d+) again, 0 mismatched, 0 bad`).FindStringSubmatch(stdout.String())
		if len(of) != 3 || of[2] != fmt.Sprint(n) || of[1] == of[2] || len(accepted) != 3 || accepted[1] != fmt.Sprint(n) || accepted[2] == "0" {
			t.Errorf("%v, %v\n%s", of, accepted, &stdout)
		}
		again = stdout.String()
	}

	look := regexp.MustCompile(`runlane --lane sqlite:(\S+) --env (\S+) runs list`).FindStringSubmatch(again)
	if len(look) != 3 || look[1] != demo.RunsFile(state) {
		t.Fatalf("it does not say where its runs are: %q\n%s", look, again)
	}
	l, err := lane.Open(t.Context(), "sqlite:"+look[1], sqlitelane.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := core.Open(t.Context(), l, &core.Options{Environment: runlane.Environment(look[2])})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rt.Close(context.Background()) }()
	var statuses []runlane.Status
	for run, err := range rt.Runs().All(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		statuses = append(statuses, run.Status)
	}
	if !slices.Equal(statuses, []runlane.Status{runlane.StatusSucceeded}) {
		t.Errorf("its runs are %v", statuses)
	}
}
