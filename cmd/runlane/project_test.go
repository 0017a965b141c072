package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
)

// place is a folder with what is called in it.
type place struct {
	folder      string
	environment []string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	checkout, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return &place{folder: t.TempDir(), environment: []string{
		"RUNLANE_SOURCE=" + checkout, "GOPROXY=off", "GOFLAGS=-mod=readonly", "GOWORK=off", "MAKEFLAGS=", "USER=ada",
		"RUNLANE_LANE=", "RUNLANE_TABLE=", "RUNLANE_QUEUES=", "RUNLANE_ENV=", "RUNLANE_FUNCTION=",
	}}
}

func (p *place) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir, command.Env = p.folder, append(os.Environ(), p.environment...)
	return command
}

// call runs a program to its end.
func (p *place) call(t *testing.T, code int, name string, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, news strings.Builder
	command := p.command(t.Context(), name, args...)
	command.Stdout, command.Stderr = &out, &news
	if err := command.Run(); err != nil && command.ProcessState == nil {
		t.Fatal(err)
	}
	if got := command.ProcessState.ExitCode(); got != code {
		t.Fatalf("%s %v exits with %d, not %d\n%s%s", filepath.Base(name), args, got, code, out.String(), news.String())
	}
	return out.String(), news.String()
}

// console is what a program in the background writes.
type console struct {
	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{} // closed and replaced at every write
}

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.changed)
	c.changed = make(chan struct{})
	return c.text.Write(p)
}

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

func (c *console) await(t *testing.T, text string) {
	t.Helper()
	late := time.After(patience.Limit)
	for {
		c.mu.Lock()
		there, changed := strings.Contains(c.text.String(), text), c.changed
		c.mu.Unlock()
		if there {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("waited in vain for %q:\n%s", text, c)
		}
	}
}

// background is a program that runs beside the test, in a separate process group, as a shell would start it.
type background struct {
	*exec.Cmd
	console

	ended chan struct{}
}

func (p *place) start(t *testing.T, name string, args ...string) *background {
	t.Helper()
	b := &background{Cmd: p.command(context.Background(), name, args...), ended: make(chan struct{})}
	b.changed = make(chan struct{})
	b.Stdout, b.Stderr = &b.console, &b.console
	b.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := b.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the program
		defer close(b.ended)
		_ = b.Wait()
	}()
	t.Cleanup(func() {
		select {
		case <-b.ended:
		default:
			_ = b.Process.Signal(os.Interrupt)
			<-b.ended
		}
	})
	return b
}

// interrupt is Ctrl-C: the terminal sends it to the whole group.
func (b *background) interrupt(t *testing.T) (code int) {
	t.Helper()
	if err := syscall.Kill(-b.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-b.ended:
		return b.ProcessState.ExitCode()
	case <-time.After(patience.Limit):
		t.Fatalf("the program does not end:\n%s", &b.console)
		return 0
	}
}

// newProject is a place in a project that the command line has just made.
func newProject(t *testing.T) *place {
	t.Helper()
	p := newPlace(t)
	p.call(t, 0, binary(), "init", "hello")
	p.folder = filepath.Join(p.folder, "hello")
	return p
}

// build compiles the project's own program.
func (p *place) build(t *testing.T) string {
	t.Helper()
	own := filepath.Join(t.TempDir(), "hello")
	p.call(t, 0, "go", "build", "-o", own, ".")
	return own
}

// TestProject_FromAnEmptyFolder is a new user's first minutes, with the binary and with the project's own.
func TestProject_FromAnEmptyFolder(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	p.call(t, 0, "go", "vet", "./...")
	if out, _ := p.call(t, 0, "go", "test", "./..."); !strings.Contains(out, "ok  \thello/tasks") {
		t.Errorf("the project's tests:\n%s", out)
	}
	own := filepath.Join(t.TempDir(), "hello")
	p.call(t, 0, "go", "build", "-o", own, ".")
	bootstrap := t.TempDir()
	p.call(t, 0, "make", "build-Bridge", "ARTIFACTS_DIR="+bootstrap, "LAMBDA_ARCH="+runtime.GOARCH)
	if _, err := os.Stat(filepath.Join(bootstrap, "bootstrap")); err != nil {
		t.Error(err)
	}
	for function, has := range map[string][]string{
		"Server": {"lambda.server", "maragu.dev/gomponents"}, "EventSender": {"lambda.events", "aws-sdk-go-v2/service/eventbridge"},
	} {
		p.call(t, 0, "make", "build-"+function, "ARTIFACTS_DIR="+bootstrap, "LAMBDA_ARCH="+runtime.GOARCH)
		out, _ := p.call(t, 0, "go", "version", "-m", filepath.Join(bootstrap, "bootstrap"))
		if !strings.Contains(out, "-tags=lambda.norpc,"+has[0]) || !strings.Contains(out, has[1]) {
			t.Errorf("the program of %s is another one:\n%s", function, out)
		}
	}
	if out, _ := p.call(t, 0, "make"); !strings.Contains(out, "deploy") {
		t.Errorf("make alone lists no targets:\n%s", out)
	}
	if _, news := p.call(t, 2, own, "trigger", "greet"); !strings.Contains(news, `start "`+own+` dev"`) {
		t.Errorf("without a session:\n%s", news)
	}
	for name, programs := range map[string]struct{ dev, other string }{
		"its own binary": {own, binary()},
		"the other one":  {binary(), own},
	} {
		dev := p.start(t, programs.dev, "dev")
		dev.await(t, "an interrupt stops it")
		if out, _ := p.call(t, 0, programs.other, "trigger", "greet", `{"name":"Ada"}`, "--wait"); !strings.Contains(out, `{"text":"Hello, Ada!"}`) {
			t.Errorf("%s: the run:\n%s", name, out)
		}
		p.call(t, 1, programs.other, "trigger", "greet", `{}`, "--wait")
		dev.await(t, "there is no name to greet")
		_, news := p.call(t, 0, own, "schedules", "trigger", "greet-daily", "--wait")
		if !strings.Contains(news, "run.succeeded") {
			t.Errorf("%s: the schedule's run:\n%s", name, news)
		}
		p.call(t, 0, programs.other, "trigger", "greet", `{"name":"Bob"}`, "--delay", "1h", "--id", "later")
		if out, _ := p.call(t, 0, programs.other, "runs", "list", "--status", "active"); !strings.Contains(out, "later") {
			t.Errorf("%s: the list:\n%s", name, out)
		}
		p.call(t, 0, programs.other, "runs", "cancel", "later")
		p.call(t, 4, programs.other, "runs", "cancel", "later")
		p.call(t, 0, programs.other, "trigger", "greet", `{"name":"Bob"}`, "--delay", "1h")
		if code := dev.interrupt(t); code != 0 {
			t.Errorf("%s: dev exits with %d", name, code)
		}
		for _, shown := range []string{"greet  succeeded  attempt 1", "stopped; 1 run left for the next worker\n"} {
			if !strings.Contains(dev.console.String(), shown) {
				t.Errorf("%s: dev does not show %q:\n%s", name, shown, &dev.console)
			}
		}
		if n := strings.Count(dev.console.String(), "there is no name to greet"); n != 1 {
			t.Errorf("%s: a failure is %d lines:\n%s", name, n, &dev.console)
		}
		if repeat := programs.dev + " runs explain RUN"; !strings.Contains(dev.console.String(), repeat) {
			t.Errorf("%s: dev does not name its program as it was called:\n%s", name, &dev.console)
		}
		if err := os.RemoveAll(filepath.Join(p.folder, ".runlane")); err != nil { // the next one begins with nothing
			t.Error(err)
		}
	}
}

// TestProject_KeepsItsRuns from one session to the next, also when the first is killed, and shows them without any.
func TestProject_KeepsItsRuns(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	own := p.build(t)
	dev := p.start(t, own, "dev")
	dev.await(t, "an interrupt stops it")
	p.call(t, 0, binary(), "trigger", "greet", `{"name":"Ada"}`, "--wait", "--id", "first")
	p.call(t, 0, own, "trigger", "greet", `{"name":"Bob"}`, "--delay", "1h", "--id", "later")
	if err := dev.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-dev.ended

	below := &place{folder: filepath.Join(p.folder, "below"), environment: append(slices.Clone(p.environment), "RUNLANE_ENV=default")}
	if err := os.Mkdir(below.folder, 0o700); err != nil {
		t.Fatal(err)
	}
	out, news := below.call(t, 0, binary(), "runs", "list")
	if !strings.Contains(out, "first") || !strings.Contains(out, "later") || !strings.Contains(news, "this works on the file of dev in ") {
		t.Errorf("without a session:\n%s%s", out, news)
	}
	p.call(t, 0, own, "trigger", "greet", `{"name":"Cyd"}`, "--id", "between")
	p.call(t, 0, own, "runs", "cancel", "later")
	if _, news := p.call(t, 1, own, "runs", "answer", "rlt1.e30.AAAA"); !strings.Contains(news, "token is not valid") {
		t.Errorf("the key of answer tokens is gone with its session:\n%s", news)
	}
	if info, err := os.Stat(filepath.Join(p.folder, ".runlane", "token-keys")); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the key of answer tokens: %v, %v", info, err)
	}
	p.call(t, 0, own, "backup", "copy.db")
	p.call(t, 0, own, "runs", "get", "between", "--lane", "sqlite:copy.db")

	dev = p.start(t, own, "dev")
	dev.await(t, "between  greet  succeeded")
	if out, _ := p.call(t, 0, binary(), "runs", "list", "--status", "finished"); !strings.Contains(out, "first") || !strings.Contains(out, "later") {
		t.Errorf("the list:\n%s", out)
	}
	if out, _ := p.call(t, 0, binary(), "doctor"); !strings.Contains(out, "ok       pages of the file") {
		t.Errorf("doctor:\n%s", out)
	}
	if code := dev.interrupt(t); code != 0 || !strings.Contains(dev.console.String(), "stopped; no run was waiting\n") {
		t.Errorf("%d\n%s", code, &dev.console)
	}
}

// A function's program has the lane on AWS and no other: no SQLite. It has no commands either, and so no server, console or tools.
func TestProject_FunctionsLinkNoFile(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	lanes := []string{
		"modernc.org/sqlite", "github.com/runlane/runlane-go/sqlitelane", "github.com/runlane/runlane-go/memlane", "github.com/runlane/runlane-go/cli", "github.com/runlane/runlane-go/mcp",
	}
	serves := []string{"github.com/runlane/runlane-go/server", "github.com/runlane/runlane-go/console"}
	schemas := []string{"github.com/santhosh-tekuri/jsonschema/v6"}
	for tags, links := range map[string]struct{ lanes, serves, schemas bool }{
		"": {true, true, true}, "lambda.norpc": {false, false, false}, "lambda.norpc,lambda.server": {false, true, false},
	} {
		out, _ := p.call(t, 0, "go", "list", "-deps", "-tags", tags, ".")
		for _, of := range []struct {
			names  []string
			linked bool
		}{{lanes, links.lanes}, {serves, links.serves}, {schemas, links.schemas}} {
			for _, name := range of.names {
				if strings.Contains(out, name+"\n") != of.linked {
					t.Errorf("tags %q: %s is linked: %v", tags, name, !of.linked)
				}
			}
		}
	}
}

// TestProject_OnLocalAWS has a session whose runs outlive it.
func TestProject_OnLocalAWS(t *testing.T) {
	t.Parallel()
	table := awstest.StreamedTable(t, awstest.LocalStackDynamoDB(t))
	queue := awstest.Queue(t, awstest.SQS(t), false)
	p := newProject(t)
	own := p.build(t)
	deployed := &place{folder: p.folder, environment: append(slices.Clone(p.environment), "RUNLANE_TABLE="+table, "RUNLANE_QUEUES=default="+queue.URL)}
	dev := deployed.start(t, own, "dev")
	dev.await(t, "an interrupt stops it")
	deployed.call(t, 0, own, "trigger", "greet", `{"name":"Ada"}`, "--wait")
	deployed.call(t, 0, own, "trigger", "greet", `{"name":"Ada"}`, "--delay", "1h", "--id", "later")
	dev.await(t, "greet  succeeded  attempt 1")
	if code := dev.interrupt(t); code != 0 || !strings.Contains(dev.console.String(), "stopped; 1 run left for the next worker\n") {
		t.Errorf("%d\n%s", code, &dev.console)
	}
	if out, _ := deployed.call(t, 0, own, "runs", "list", "--status", "active"); !strings.Contains(out, "later") {
		t.Errorf("the run that waits:\n%s", out)
	}
}

func TestDev_WithoutAProject_SaysWhatToDo(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	if _, news := p.call(t, 2, binary(), "dev"); !strings.Contains(news, "there is no Go program") || !strings.Contains(news, "init NAME") {
		t.Errorf("an empty folder: %s", news)
	}
	for name, content := range map[string]string{
		"go.mod": "module other\n\ngo 1.26.0\n", "main.go": "package main\n\nimport \"os\"\n\nfunc main() { os.Exit(len(os.Args)) }\n",
	} {
		if err := os.WriteFile(filepath.Join(p.folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, news := p.call(t, 2, binary(), "dev"); !strings.Contains(news, "does not have the commands of runlane") || !strings.Contains(news, "cli.Main") {
		t.Errorf("another program: %s", news)
	}
	p.environment = append(slices.Clone(p.environment), "PATH=")
	if _, news := p.call(t, 2, binary(), "dev"); !strings.Contains(news, "go is not in the PATH") {
		t.Errorf("no Go: %s", news)
	}
}

func TestDev_ProjectThatDoesNotCompile_ShowsTheCompiler(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	if err := os.WriteFile(filepath.Join(p.folder, "broken.go"), []byte("package main\n\nvar x int = \"text\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, news := p.call(t, 2, binary(), "dev"); !strings.Contains(news, "broken.go:3") || !strings.Contains(news, "cannot be built") {
		t.Errorf("%s", news)
	}
}

// A session that builds its program is one process: a kill leaves none behind, and no program in the temporary folder.
func TestDev_ThatIsKilled_LeavesNothingRunning(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	temporary := t.TempDir()
	p.environment = append(p.environment, "TMPDIR="+temporary)
	dev := p.start(t, binary(), "dev")
	dev.await(t, "an interrupt stops it")
	if err := dev.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-dev.ended
	_, url, _ := strings.Cut(dev.console.String(), "answer on http://")
	address, _, found := strings.Cut(url, ",")
	if connection, err := net.Dial("tcp", address); err == nil || !found {
		_ = connection.Close()
		t.Errorf("its program goes on at %q", address)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("%v stays: %v", left, err)
	}
	dev = p.start(t, binary(), "dev") // in the place of the first one's program
	dev.await(t, "an interrupt stops it")
	if code := dev.interrupt(t); code != 0 {
		t.Errorf("dev exits with %d", code)
	}
}
