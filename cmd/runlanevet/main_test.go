package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// tool builds the program.
func tool(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "runlanevet")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

var want = regexp.MustCompile(`// want (.*)$`)

// wanted are the findings that the file asks for, by line.
func wanted(t *testing.T, path string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for i, line := range strings.Split(string(text), "\n") {
		if match := want.FindStringSubmatch(line); match != nil {
			for _, part := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(match[1], -1) {
				key := fmt.Sprint(filepath.Base(path), ":", i+1)
				all[key] = append(all[key], part[1])
			}
		}
	}
	return all
}

// What the tool finds is what the comments say, called by go vet as by a user.
func TestVet_FindsWhatTheCommentsSay(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), "go", "vet", "-vettool="+tool(t), "./testdata/steps")
	out, err := command.CombinedOutput()
	if err == nil {
		t.Error("go vet finds nothing")
	}
	all := wanted(t, filepath.Join("testdata", "steps", "steps.go"))
	if len(all) < 7 {
		t.Fatalf("%d lines want something", len(all))
	}
	for line := range strings.Lines(string(out)) {
		match := regexp.MustCompile(`(steps\.go:\d+):\d+: (.*)`).FindStringSubmatch(line)
		if match == nil {
			continue
		}
		left := all[match[1]]
		found := -1
		for i, text := range left {
			if strings.Contains(match[2], text) {
				found = i
			}
		}
		if found < 0 {
			t.Errorf("not wanted: %s", line)
			continue
		}
		all[match[1]] = append(left[:found:found], left[found+1:]...)
	}
	for line, left := range all {
		for _, text := range left {
			t.Errorf("%s: not found: %s\n%s", line, text, out)
		}
	}
}

// The project's examples and handlers have nothing that it finds.
func TestVet_LeavesTheProjectAlone(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it compiles the examples")
	}
	command := exec.CommandContext(t.Context(), "go", "vet", "-vettool="+tool(t), "../../examples/...", "../../runlanetest/...")
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestRun_AnswersGoVet(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if _, err := run([]string{"-flags"}, &out); err != nil || !strings.Contains(out.String(), `"json"`) {
		t.Errorf("%q, %v", out.String(), err)
	}
	out.Reset()
	if _, err := run([]string{"-V=full"}, &out); err != nil || !strings.HasPrefix(out.String(), "runlanevet version devel buildID=") {
		t.Errorf("%q, %v", out.String(), err)
	}
	broken := filepath.Join(t.TempDir(), "x.cfg")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{nil, {"./..."}, {"absent.cfg"}, {broken}} {
		if _, err := run(args, &out); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
