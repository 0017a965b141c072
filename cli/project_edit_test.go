package cli_test

import (
	"go/format"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/internal/proof/e2e/samtemplate"
)

// newProject is a project as init writes it.
func newProject(t *testing.T, args ...string) string {
	t.Helper()
	folder := t.TempDir()
	if r := initProject(t, folder, append([]string{"shop"}, args...)...); r.code != cli.ExitOK {
		t.Fatalf("%+v", r)
	}
	return filepath.Join(folder, "shop")
}

func inProject(t *testing.T, project string, args string) result {
	t.Helper()
	return runWith(t.Context(), newWorld(), &cli.Options{Args: strings.Fields(args), Folder: project})
}

// wantFiles wants a call to change these files and no other.
func wantFiles(t *testing.T, project, args string, want ...string) {
	t.Helper()
	before := contents(t, project)
	r := inProject(t, project, args)
	if r.code != cli.ExitOK {
		t.Fatalf("%s: %+v", args, r)
	}
	var changed []string
	for name, text := range contents(t, project) {
		if before[name] == text {
			continue
		}
		changed = append(changed, name)
		if !strings.Contains(r.stdout, "--- "+name+"\n+++ "+name+"\n") {
			t.Errorf("%s changes %s and does not show it:\n%s", args, name, r.stdout)
		}
	}
	slices.Sort(changed)
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), changed); diff != "" {
		t.Errorf("%s: files\n%s", args, diff)
	}
}

func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, name := range files(t, folder) {
		found[name] = text(t, folder, name)
	}
	return found
}

func TestQueuesAdd_TouchesWhatItHasTo(t *testing.T) {
	t.Parallel()
	project := newProject(t)
	wantFiles(t, project, "queues add reports --yes", "tasks/queues.go")
	wantFiles(t, project, "queues add reports --yes")
	wantFiles(t, project, "queues add reports --own --yes", "template.yaml")
	wantFiles(t, project, "queues add mail-out --concurrency 5 --fifo --yes", "tasks/queues.go", "template.yaml")
	wantFiles(t, project, "queues add mail-out --fifo --yes")
	for args, says := range map[string]string{
		"queues add reports --fifo --yes": "the queue reports has a standard queue of SQS",
		"queues add mail-out --own --yes": "the queue mail-out has a FIFO queue of SQS",
	} {
		if r := inProject(t, project, args); r.code == cli.ExitOK || !strings.Contains(r.stderr, says) {
			t.Errorf("%s: %+v", args, r)
		}
	}
	code := text(t, project, "tasks/queues.go")
	for _, want := range []string{
		"var Reports = runlane.Queue{Name: \"reports\"}\n", "var MailOut = runlane.Queue{Name: \"mail-out\", Concurrency: 5}\n",
	} {
		if !strings.Contains(code, want) {
			t.Errorf("queues.go has no %s:\n%s", want, code)
		}
	}
	formatted, err := format.Source([]byte(code))
	if err != nil || string(formatted) != code {
		t.Errorf("queues.go is not formatted: %v", err)
	}
	wantSound(t, project)
}

// wantSound wants a template without a fault.
func wantSound(t *testing.T, project string) *samtemplate.Template {
	t.Helper()
	template, err := samtemplate.Load(filepath.Join(project, "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	evaluated, err := template.Evaluate(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range samtemplate.Faults(evaluated) {
		t.Error(fault)
	}
	return evaluated
}

func TestQueuesAdd_DeclaredByHand_StaysSo(t *testing.T) {
	t.Parallel()
	project := newProject(t)
	byHand := "package main\n\nimport \"github.com/runlane/runlane-go\"\n\nvar queues = []runlane.Queue{{Name: \"a\"}, runlane.Queue{Name: \"reports\"}}\n"
	if err := os.WriteFile(filepath.Join(project, "ours.go"), []byte(byHand), 0o600); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, project, "queues add reports --yes")
	wantAdvice(t, project, "queues add reports --yes", "name it in a task, where it is not yet, and deploy")
	wantAdvice(t, project, "queues add greet --yes", "Queue: QueueGreet, and deploy")
	wantAdvice(t, project, "queues add greet --yes", "Queue: QueueGreet, and deploy")
	if code := text(t, project, "tasks/queues.go"); !strings.Contains(code, "var QueueGreet = ") { // Greet is a task
		t.Error(code)
	}
}

func wantAdvice(t *testing.T, project, args, says string) {
	t.Helper()
	if r := inProject(t, project, args); r.code != cli.ExitOK || !strings.Contains(r.stderr, says) {
		t.Errorf("%s: %+v", args, r)
	}
}

// A queue that a parameter names is carried by an SQS queue already: bound twice it would keep every function from opening.
func TestQueuesAdd_QueueOfAParameter_IsRefused(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"FifoQueue=orders", `FifoQueue=\"orders\"`, "StandardQueue=orders"} {
		project := newProject(t)
		values := strings.Replace(text(t, project, "samconfig.toml"), "# parameter_overrides = ", "parameter_overrides = \"A=b "+value+" C=d\" # ", 1)
		if err := os.WriteFile(filepath.Join(project, "samconfig.toml"), []byte(values), 0o600); err != nil {
			t.Fatal(err)
		}
		wantFiles(t, project, "queues add orders-2 --own --yes", "tasks/queues.go", "template.yaml")
		r := inProject(t, project, "queues add orders --own --yes")
		if r.code == cli.ExitOK || !strings.Contains(r.stderr, "of samconfig.toml names an SQS queue for \"orders\" already") {
			t.Errorf("%s: %+v", value, r)
		}
	}
}

func TestFunctionsAdd_BringsItsQueues(t *testing.T) {
	t.Parallel()
	project := newProject(t)
	wantFiles(t, project, "queues add reports --own --yes", "tasks/queues.go", "template.yaml")
	wantFiles(t, project, "queues add exports --yes", "tasks/queues.go")
	const add = "functions add slow --queues reports,exports,reports --timeout 900 --memory 1024 --batch-size 2 --concurrency 4 --yes"
	if r := inProject(t, project, strings.Replace(add, "--yes", "--dry-run", 1)); strings.Count(r.stdout, "\n-") > 20 {
		t.Errorf("what is added is shown as if %d lines had gone", strings.Count(r.stdout, "\n-"))
	}
	wantFiles(t, project, add, "template.yaml")
	if !strings.Contains(text(t, project, "template.yaml"), "Sid: MovedQueues") {
		t.Error("BridgeRole lost its right to reports before SlowBridge reads it")
	}
	again := strings.Replace(add, "--yes", "--dry-run", 1)
	if r := inProject(t, project, again); !strings.Contains(r.stderr, "only after the deployment that moved the queue") {
		t.Errorf("it takes a right away and does not say when that may be: %s", r.stderr)
	}
	wantFiles(t, project, add, "template.yaml") // after the deployment: takes that right away
	wantFiles(t, project, add)
	if r := inProject(t, project, again); strings.Contains(r.stderr, "deployment") {
		t.Errorf("it changes nothing and says %s", r.stderr)
	}
	wantFiles(t, project, "functions add slow --queues reports,exports --timeout 300 --yes", "template.yaml")
	e := wantSound(t, project)
	if size := e.Parameters["SlowBatchSize"].Default; size != 2 {
		t.Errorf("batches of %v", size)
	}
	if slow := e.Resources["SlowBridge"].Properties; slow["Timeout"] != "300" || slow["MemorySize"] != "1024" {
		t.Errorf("%v s, %v MB", slow["Timeout"], slow["MemorySize"])
	}
}

func TestProjectEdit_DryRun_ChangesNothing(t *testing.T) {
	t.Parallel()
	project := newProject(t)
	before := contents(t, project)
	for _, args := range []string{"queues add reports --own --dry-run", "queues add reports --own --dry-run --json"} {
		r := inProject(t, project, args)
		if r.code != cli.ExitOK || !strings.Contains(r.stdout, "ReportsQueue") {
			t.Errorf("%s: %+v", args, r)
		}
		if strings.HasSuffix(args, "--json") && !strings.HasPrefix(r.stdout, `{"v":1,"kind":"edit","file":"tasks/queues.go","diff":"--- tasks/queues.go\n`) {
			t.Errorf("%s: %s", args, r.stdout)
		}
	}
	if r := inProject(t, project, "queues add reports --own"); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "--yes") {
		t.Errorf("without a terminal: %+v", r)
	}
	if diff := cmp.Diff(before, contents(t, project)); diff != "" {
		t.Error(diff)
	}
}

func TestProjectEdit_WhatCannotBe_IsRefusedAndChangesNothing(t *testing.T) {
	t.Parallel()
	project, small, empty := newProject(t), newProject(t, "--minimal"), t.TempDir()
	limited := newProject(t)
	wantFiles(t, small, "queues add a --yes", "tasks/queues.go")
	wantFiles(t, limited, "queues add reports --concurrency 3 --yes", "tasks/queues.go")
	before := contents(t, project)
	for _, c := range []struct{ folder, args, says string }{
		{empty, "queues add reports --yes", "there is no Go program"},
		{project, "queues add", "argument is missing"},
		{project, "queues add a/b --own --yes", "cannot have a separate SQS queue"},
		{limited, "queues add reports --concurrency 4 --yes", "is there with another limit"},
		{project, "queues add fifo --own --yes", "the template has another"},
		{project, "queues add default --own --yes", "cannot have a separate SQS queue"},
		{project, "queues add work --own --yes", "cannot have a separate SQS queue"},
		{project, "queues add " + strings.Repeat("x", 41) + " --own --yes", "cannot have a separate SQS queue"},
		{project, "functions add slow --yes", "has no queues"},
		{project, "functions add relay --queues a --yes", "cannot name a further function"},
		{project, "functions add Slow --queues a --yes", "cannot name a further function"},
		{project, "functions add slow --queues reprots --yes", "the project has no queue \"reprots\""},
		{project, "functions add slow --queues a --batch-size 11 --yes", "use 1 to 10"},
		{project, "functions add slow --queues a --timeout 61 --yes", "use 30, 60, 120, 300, 600 or 900"},
		{project, "functions add slow --queues a --memory 1 --yes", "use 128 to 10240"},
		{project, "functions add slow --queues a --concurrency 1 --yes", "use 2 to 1000"},
		{small, "queues add payments --fifo --yes", "has no Resources FifoWork"},
		{small, "functions add slow --queues a --yes", "the template has no Parameters BridgeTimeout"},
	} {
		r := inProject(t, c.folder, c.args)
		if r.code == cli.ExitOK || r.stdout != "" || !strings.Contains(r.stderr, c.says) || !strings.Contains(r.stderr, "next: ") {
			t.Errorf("%s: %+v", c.args, r)
		}
	}
	if diff := cmp.Diff(before, contents(t, project)); diff != "" {
		t.Error(diff)
	}
	if got := len(files(t, small)); got != len(before)+1 {
		t.Errorf("%d files in the minimal project, want %d", got, len(before)+1)
	}
}
