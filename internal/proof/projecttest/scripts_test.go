package projecttest

import (
	"bufio"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// workbench is a folder with the project's scripts and stand-ins for everything that they call. Stand-ins note their name and
// arguments in the file calls.
type workbench struct {
	t   *testing.T
	dir string
	env []string
}

func newWorkbench(t *testing.T) *workbench {
	t.Helper()
	b := &workbench{t: t, dir: t.TempDir()}
	b.put("scripts/with-local-aws.sh", read(t, "scripts", "with-local-aws.sh"))
	b.put(".ci/run", read(t, ".ci", "run"))
	b.put("localstack/up.sh", `#!/usr/bin/env bash
echo "up $FAIL_UP" >>calls
mkdir -p .local
printf 'AWS_ENDPOINT_URL=http://127.0.0.1:%s\nAWS_ACCESS_KEY_ID=test\nRUNLANE_TABLE=table\nRUNLANE_QUEUES=a=http://h/1,b=http://h/2;$(touch hacked)\n# done\n' "$PORT" >.local/env
exit "$FAIL_UP"
`)
	b.put("localstack/down.sh", "#!/usr/bin/env bash\necho down >>calls\nrm -f .local/env\n")
	path := filepath.Join(b.dir, "bin") + string(os.PathListSeparator) + os.Getenv("PATH")
	b.env = []string{
		"PATH=" + path, "HOME=" + b.dir, "PORT=1", "FAIL_UP=0", "AWS_PROFILE=real", "AWS_ACCESS_KEY_ID=real", "AWS_SECRET_ACCESS_KEY=real",
		"AWS_SESSION_TOKEN=real", "LC_ALL=C",
	}
	return b
}

func (b *workbench) put(path, text string) {
	b.t.Helper()
	full := filepath.Join(b.dir, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o700); err != nil {
		b.t.Fatal(err)
	}
}

// run returns what a script printed and its exit status.
func (b *workbench) run(environment []string, name string, arguments ...string) (output string, status int) {
	b.t.Helper()
	var printed []byte
	err := error(syscall.ETXTBSY)
	for errors.Is(err, syscall.ETXTBSY) { // a process that another test starts holds the new file open until it executes its program
		c := exec.CommandContext(b.t.Context(), filepath.Join(b.dir, name), arguments...)
		c.Dir, c.Env = b.dir, append(slices.Clone(b.env), environment...)
		printed, err = c.CombinedOutput()
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(printed), exit.ExitCode()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return string(printed), 0
}

func (b *workbench) calls() string {
	text, err := os.ReadFile(filepath.Join(b.dir, "calls"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		b.t.Fatal(err)
	}
	return strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", ", ")
}

// listen is something that answers where local AWS would.
func listen(t *testing.T) (port string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	_, port, err = net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

const printEnvironment = `echo "$AWS_ENDPOINT_URL|$RUNLANE_TABLE|$RUNLANE_QUEUES|$AWS_ACCESS_KEY_ID|${AWS_PROFILE-none}"`

func TestWithLocalAWS_StartsLoadsAndStops(t *testing.T) {
	t.Parallel()
	b := newWorkbench(t)
	output, status := b.run(nil, "scripts/with-local-aws.sh", "bash", "-c", printEnvironment)
	want := "http://127.0.0.1:1|table|a=http://h/1,b=http://h/2;$(touch hacked)|test|none\n"
	if status != 0 || output != want {
		t.Errorf("status %d\n got %q\nwant %q", status, output, want)
	}
	if got := b.calls(); got != "up 0, down" {
		t.Errorf("calls: %s", got)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "hacked")); err == nil {
		t.Error("a value of .local/env was run as a command")
	}
}

func TestWithLocalAWS_FailingCommand_StopsAndKeepsTheStatus(t *testing.T) {
	t.Parallel()
	b := newWorkbench(t)
	if _, status := b.run(nil, "scripts/with-local-aws.sh", "bash", "-c", "exit 7"); status != 7 {
		t.Errorf("status %d", status)
	}
	if got := b.calls(); got != "up 0, down" {
		t.Errorf("calls: %s", got)
	}
}

func TestWithLocalAWS_FailingStart_CleansUpAndRunsNothing(t *testing.T) {
	t.Parallel()
	b := newWorkbench(t)
	output, status := b.run([]string{"FAIL_UP=3"}, "scripts/with-local-aws.sh", "echo", "ran")
	if status != 3 || strings.Contains(output, "ran") {
		t.Errorf("status %d, output %q", status, output)
	}
	if got := b.calls(); got != "up 3, down" {
		t.Errorf("calls: %s", got)
	}
}

func TestWithLocalAWS_GivenEndpoint_StartsNothing(t *testing.T) {
	t.Parallel()
	b := newWorkbench(t)
	output, status := b.run([]string{"AWS_ENDPOINT_URL=http://given"}, "scripts/with-local-aws.sh", "bash", "-c", "set +u; "+printEnvironment)
	if status != 0 || output != "http://given|||real|real\n" {
		t.Errorf("status %d, output %q", status, output)
	}
	if got := b.calls(); got != "" {
		t.Errorf("calls: %s", got)
	}
}

// The table is made at the one endpoint that local AWS has, and has to be sought there.
func TestWithLocalAWS_AnEndpointOfOneService_IsNotTheCommands(t *testing.T) {
	t.Parallel()
	for name, environment := range map[string][]string{
		"started":     {"AWS_ENDPOINT_URL_DYNAMODB=http://other", "AWS_ENDPOINT_URL_SQS=http://third"},
		"given, kept": {"AWS_ENDPOINT_URL=http://given", "AWS_ENDPOINT_URL_DYNAMODB=http://other"},
	} {
		b := newWorkbench(t)
		arguments := []string{"bash", "-c", `echo "${AWS_ENDPOINT_URL}|${AWS_ENDPOINT_URL_DYNAMODB-none}|${AWS_ENDPOINT_URL_SQS-none}"`}
		if name == "given, kept" {
			arguments = append([]string{"--keep"}, arguments...)
		}
		output, status := b.run(environment, "scripts/with-local-aws.sh", arguments...)
		if status != 0 || output != "http://127.0.0.1:1|none|none\n" {
			t.Errorf("%s: status %d, output %q", name, status, output)
		}
	}
}

func TestWithLocalAWS_AlreadyRunning_IsUsedAndLeft(t *testing.T) {
	t.Parallel()
	b := newWorkbench(t)
	port := listen(t)
	if _, status := b.run(nil, "scripts/with-local-aws.sh", "--running"); status != 1 {
		t.Errorf("nothing runs here, but --running ended with %d", status)
	}
	b.put(".local/env", "AWS_ENDPOINT_URL=http://127.0.0.1:"+port+"\nAWS_ACCESS_KEY_ID=test\nRUNLANE_TABLE=other\nRUNLANE_QUEUES=\n")
	if _, status := b.run(nil, "scripts/with-local-aws.sh", "--running"); status != 0 {
		t.Errorf("something runs here, but --running ended with %d", status)
	}
	output, status := b.run(nil, "scripts/with-local-aws.sh", "bash", "-c", printEnvironment)
	if status != 0 || output != "http://127.0.0.1:"+port+"|other||test|none\n" {
		t.Errorf("status %d, output %q", status, output)
	}
	if got := b.calls(); got != "" {
		t.Errorf("calls: %s", got)
	}
}

func TestWithLocalAWS_Keep_LeavesItRunning(t *testing.T) {
	t.Parallel()
	b := newWorkbench(t)
	output, status := b.run(nil, "scripts/with-local-aws.sh", "--keep", "bash", "-c", "echo $RUNLANE_TABLE; exit 4")
	if status != 4 || output != "table\n" {
		t.Errorf("status %d, output %q", status, output)
	}
	if got := b.calls(); got != "up 0" {
		t.Errorf("calls: %s", got)
	}
}

// ciBench adds stand-ins for the tools that .ci/run looks for. make notes its target and fails for the one in FAIL.
func ciBench(t *testing.T) *workbench {
	t.Helper()
	b := newWorkbench(t)
	for _, tool := range []string{"go", "git", "cc", "javac", "npm", "python3.13", "chromium"} {
		b.put("bin/"+tool, "#!/bin/sh\nexit 0\n")
	}
	b.put("bin/make", "#!/bin/sh\necho \"make $* CI=$CI\" >>calls\n[ \"$*\" != \"$FAIL\" ]\n")
	b.env = append(b.env, "FAIL=")
	return b
}

const everyStep = "make test CI=true, make demo CI=true, make demo CONSOLE=once CI=true, make demo-memory CI=true, make -k -j5 -O demo-aws validate build demo-order demo-nightly CI=true, " +
	"make -k -j3 -O e2e conformance-localstack static conformance-front upgrade-aws demo-front tryout openapi-fuzz test-console test-clients demo-polyglot CI=true, make local-down CI=true"

func TestCIScript_RunsEveryStepAndTimesIt(t *testing.T) {
	t.Parallel()
	b := ciBench(t)
	output, status := b.run(nil, ".ci/run")
	if status != 0 {
		t.Errorf("status %d\n%s", status, output)
	}
	if got := b.calls(); got != everyStep {
		t.Errorf("calls: %s", got)
	}
	for _, target := range append(ciTargets(read(t, ".ci", "run")), "total") {
		if !strings.Contains(output, target+" ") {
			t.Errorf("no timing of %s in\n%s", target, output)
		}
	}
}

func TestCIScript_FailingStep_RunsTheOthersAndFails(t *testing.T) {
	t.Parallel()
	b := ciBench(t)
	output, status := b.run([]string{"FAIL=demo"}, ".ci/run")
	if status != 1 || !strings.Contains(output, "FAILED") {
		t.Errorf("status %d\n%s", status, output)
	}
	if got := b.calls(); got != everyStep {
		t.Errorf("calls: %s", got)
	}
}

func TestCIScript_LocalAWSThatRanBefore_IsLeft(t *testing.T) {
	t.Parallel()
	b := ciBench(t)
	b.put(".local/env", "AWS_ENDPOINT_URL=http://127.0.0.1:"+listen(t)+"\n")
	output, status := b.run(nil, ".ci/run")
	if status != 0 || strings.Contains(b.calls(), "local-down") {
		t.Errorf("status %d, calls %s\n%s", status, b.calls(), output)
	}
}

func TestCIScript_Terminated_EndsTheStepAndCleansUp(t *testing.T) {
	t.Parallel()
	b := ciBench(t)
	b.put("bin/make", `#!/bin/sh
echo "make $*" >>calls
if [ "$*" = test ]; then
  echo started
  exec sleep 20
fi
`)
	c := exec.CommandContext(t.Context(), filepath.Join(b.dir, ".ci", "run"))
	c.Dir, c.Env = b.dir, b.env
	output, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	// The sleeping step holds the pipe's other end, so the loop ends with the step.
	started := time.Now()
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if lines.Text() == "started" {
			if err := c.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
	}
	err = c.Wait()
	if took := time.Since(started); took > 15*time.Second {
		t.Errorf("the step went on for %s", took)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 143 {
		t.Errorf("ended with %v", err)
	}
	if got := b.calls(); got != "make test, make local-down" {
		t.Errorf("calls: %s", got)
	}
}
