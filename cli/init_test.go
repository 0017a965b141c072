package cli_test

import (
	"go/format"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/internal/proof/e2e/samtemplate"
)

// initProject calls init with this checkout as the module's source.
func initProject(t *testing.T, folder string, args ...string) result {
	t.Helper()
	w := newWorld()
	w.env["RUNLANE_SOURCE"], w.columns = checkout(t), 0
	return runWith(t.Context(), w, &cli.Options{Args: append([]string{"init"}, args...), Folder: folder})
}

func checkout(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func text(t *testing.T, path ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// names lists a folder, hidden entries included.
func names(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	found := []string{}
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return found
}

// files are the files below a folder.
func files(t *testing.T, folder string) (found []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(folder), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestInit_WritesAWholeProject_AndNothingElse(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "hello"), 0o700); err != nil { // an empty folder may be there
		t.Fatal(err)
	}
	r := initProject(t, folder, "hello", "--module", "example.org/hello")
	if r.code != cli.ExitOK || !strings.HasPrefix(r.stdout, "wrote hello: ") || !strings.Contains(r.stderr, "next: go to hello") {
		t.Fatalf("%+v", r)
	}
	if diff := cmp.Diff([]string{"hello"}, names(t, folder)); diff != "" {
		t.Error(diff)
	}
	project := filepath.Join(folder, "hello")
	want := []string{
		".gitignore", "Makefile", "README.md", "events_lambda.go", "go.mod", "go.sum", "lanes.go", "lanes_lambda.go", "main.go", "open.go",
		"samconfig.toml", "server_lambda.go", "tasks/greet.go", "tasks/greet_test.go", "tasks/tasks.go", "template.yaml",
	}
	if diff := cmp.Diff(want, files(t, project)); diff != "" {
		t.Error(diff)
	}
	for _, name := range want {
		content := text(t, project, name)
		if strings.Contains(content, "__") {
			t.Errorf("%s has a place that was not filled:\n%s", name, content)
		}
		if strings.HasSuffix(name, ".go") {
			formatted, err := format.Source([]byte(content))
			if err != nil || string(formatted) != content {
				t.Errorf("%s is not formatted: %v", name, err)
			}
		}
	}
	module := text(t, project, "go.mod")
	if !strings.HasPrefix(module, "module example.org/hello\n") || !strings.Contains(module, "\nreplace github.com/runlane/runlane-go => "+checkout(t)+"\n") {
		t.Errorf("go.mod:\n%s", module)
	}
}

func TestInit_JSON_NamesTheFiles(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	r := initProject(t, folder, "hello", "--json")
	want := `{"v":1,"kind":"project","folder":"` + filepath.Join(folder, "hello") + `","module":"hello","files":["Makefile",`
	if r.code != cli.ExitOK || !strings.HasPrefix(r.stdout, want) || r.stderr != "" {
		t.Errorf("%+v", r)
	}
}

func TestInit_WhatCannotBe_IsRefusedAndLeavesNothing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, content := range map[string]string{"file": "x", "full/kept": "x"} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := names(t, folder)
	for _, c := range []struct{ args, says string }{
		{"Hello", "use up to 40 small letters"},
		{"9lives", "use up to 40 small letters"},
		{".", "use up to 40 small letters"},
		{"..", "use up to 40 small letters"},
		{"a:b", "use up to 40 small letters"},
		{strings.Repeat("x", 41), "use up to 40 small letters"},
		{"hello --module cmd", "belongs to Go's standard library"},
		{"encoding", "belongs to Go's standard library"},
		{"hello --module net/hello", "belongs to Go's standard library"},
		{"hello --module a:b", "is not a path for a Go module"},
		{"full", "is not empty"},
		{"file", "cannot be made: not a directory"},
		{"absent/hello", "cannot be made: no such file or directory"},
		{"file/hello", "cannot be made: not a directory"},
		{"hello --replace absent", "is not a checkout of github.com/runlane/runlane-go"},
		{"hello --replace full", "is not a checkout of github.com/runlane/runlane-go"},
		{"", "argument is missing"},
		{"a b", "one argument too many"},
	} {
		r := initProject(t, folder, strings.Fields(c.args)...)
		if r.code != cli.ExitUsage || r.stdout != "" || !strings.Contains(r.stderr, c.says) || !strings.Contains(r.stderr, "next: ") {
			t.Errorf("init %s: %+v", c.args, r)
		}
		if diff := cmp.Diff(before, names(t, folder)); diff != "" {
			t.Errorf("init %s leaves something (-before +after)\n%s", c.args, diff)
		}
	}
	if text(t, folder, "full", "kept") != "x" || text(t, folder, "file") != "x" {
		t.Error("something was overwritten")
	}
}

// TestInit_WithoutReleaseOrCheckout_SaysWhatToName: the binary of a test is no release.
func TestInit_WithoutReleaseOrCheckout_SaysWhatToName(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	r := runWith(t.Context(), newWorld(), &cli.Options{Args: []string{"init", "hello"}, Folder: folder})
	if r.code != cli.ExitUsage || !strings.Contains(r.stderr, "--replace FOLDER") || len(names(t, folder)) > 0 {
		t.Errorf("%+v", r)
	}
}

func TestInit_FolderWithOddName_IsQuotedInGoMod(t *testing.T) {
	t.Parallel()
	source := filepath.Join(t.TempDir(), "a b")
	if err := os.Mkdir(source, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(source, "go.mod"), []byte("module github.com/runlane/runlane-go\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if r := initProject(t, folder, "hello", "--replace", source); r.code != cli.ExitOK {
		t.Fatalf("%+v", r)
	}
	if module := text(t, folder, "hello", "go.mod"); !strings.Contains(module, `=> "`+source+`"`) {
		t.Errorf("go.mod:\n%s", module)
	}
}

// TestInit_ProjectFollowsTheModule holds what cannot be embedded from elsewhere equal to its source.
func TestInit_ProjectFollowsTheModule(t *testing.T) {
	t.Parallel()
	ours := map[string]bool{}
	for line := range strings.Lines(text(t, "..", "go.mod") + text(t, "..", "sqlitelane", "go.mod") + text(t, "..", "mcp", "go.mod")) {
		words := strings.Fields(line)
		if len(words) >= 2 && words[0] != "module" {
			ours[words[0]+" "+words[1]] = true
		}
	}
	for line := range strings.Lines(text(t, "project", "go.mod.txt")) {
		words := strings.Fields(strings.TrimPrefix(line, "require "))
		if len(words) < 2 || words[0] == "module" || words[0] == "(" || strings.HasPrefix(words[0], "github.com/runlane/runlane-go") {
			continue
		}
		if !ours[words[0]+" "+words[1]] {
			t.Errorf("cli/project/go.mod.txt has %s, go.mod has another version", strings.TrimSpace(line))
		}
	}
	sums := text(t, "..", "go.sum") + text(t, "..", "sqlitelane", "go.sum") + text(t, "..", "mcp", "go.sum")
	for line := range strings.Lines(text(t, "project", "go.sum.txt")) {
		if !strings.Contains(sums, line) {
			t.Errorf("cli/project/go.sum.txt has a line that go.sum has not: %s", line)
		}
	}
}

// Both templates lose nothing, with and without all that their parameters turn on.
func TestInit_Templates_HaveNoFault(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args       string
		parameters map[string]string
		known      string
	}{
		{"hello", nil, ""},
		{"hello", map[string]string{"FifoQueue": "orders"}, ""},
		{"hello", map[string]string{"Alarms": "false", "Dashboard": "false", "Metrics": "false", "Deployment": "AllAtOnce"}, ""},
		// nothing is lost: the tick publishes what the relay does not
		{"hello --minimal", nil, "Relay.Commits: what is given up goes nowhere"},
	} {
		folder := t.TempDir()
		if r := initProject(t, folder, strings.Fields(c.args)...); r.code != cli.ExitOK {
			t.Fatalf("%+v", r)
		}
		template, err := samtemplate.Load(filepath.Join(folder, "hello", "template.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(strings.ToLower(text(t, folder, "hello", "template.yaml")), "webhook") {
			t.Errorf("init %s: a line of the example application is not marked with # example", c.args)
		}
		evaluated, err := template.Evaluate(c.parameters)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range samtemplate.Faults(evaluated) {
			if fault != c.known {
				t.Errorf("init %s, %v: %s", c.args, c.parameters, fault)
			}
		}
	}
}

// A deployment without a name fails, and one that asks goes through forty parameters.
func TestInit_Deploy_AsksNothing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if r := initProject(t, folder, "hello"); r.code != cli.ExitOK {
		t.Fatalf("%+v", r)
	}
	project := filepath.Join(folder, "hello")
	if config := text(t, project, "samconfig.toml"); !strings.Contains(config, "\nstack_name = \"hello\"\n") {
		t.Errorf("samconfig.toml names no stack:\n%s", config)
	} else if n := strings.Count(config, "parameter_overrides ="); n != 1 { // TOML refuses a key that stands twice
		t.Errorf("samconfig.toml gives %d examples of the same key: one alone can be uncommented", n)
	}
	for target, want := range map[string]string{
		"deploy": "sam build >/dev/null\nsam deploy\n",
		"variables": "aws cloudformation describe-stacks --output text --query \"Stacks[0].Outputs[?OutputKey=='Variables'].OutputValue\" \\\n" +
			"  --stack-name \"$(sed -n 's/^stack_name *= *\"\\(.*\\)\"/\\1/p' samconfig.toml)\"\n",
	} {
		command := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-n", target)
		command.Dir, command.Env = project, append(os.Environ(), "MAKEFLAGS=")
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if diff := cmp.Diff(want, string(out)); diff != "" {
			t.Errorf("make %s: %s", target, diff)
		}
	}
}
