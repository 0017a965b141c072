package docstest_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/runlane/runlane-go/internal/proof/awstest"
)

const module = "github.com/runlane/runlane-go"

// tools is the folder of programs that readers have besides their system's.
var tools string

// Idle connections belong to the SDK's HTTP client, which lives as long as the process.
func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "docstest")
	if err != nil {
		panic(err)
	}
	tools = folder
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"), goleak.Cleanup(func(code int) {
			if err := os.RemoveAll(folder); err != nil {
				panic(err)
			}
			os.Exit(code)
		}))
}

// commandLine builds the command line, once, into the tools.
var commandLine = sync.OnceValues(func() (string, error) {
	binary := filepath.Join(tools, "runlane")
	build := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-o", binary, ".")
	build.Dir = filepath.Join("..", "..", "..", "cmd", "runlane") // a separate module
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return binary, nil
})

// root is the project's folder.
func root(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root(t)}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// documents are the names of all Markdown files that are, or with the next commit would be, part of the project.
func documents(t *testing.T) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.md")
	list.Dir = root(t)
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if _, err := os.Stat(filepath.Join(root(t), name)); err == nil { // else deleted and not yet committed
			names = append(names, name)
		}
	}
	if len(names) < 10 {
		t.Fatalf("git lists %v only", names)
	}
	return names
}

// environment is what a new user's shell has: the system's programs, Go, runlane, and a home without anything in it.
func environment(t *testing.T, home string) []string {
	t.Helper()
	values := []string{
		"HOME=" + home, "PATH=" + tools + string(os.PathListSeparator) + os.Getenv("PATH"), "NO_COLOR=1", "USER=you", "TMPDIR=" + home,
		"RUNLANE_SOURCE=" + root(t), // what "runlane init" uses in place of a release
	}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOROOT", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOFLAGS", "GOTOOLCHAIN"} {
		values = append(values, name+"="+goVariables()[name])
	}
	for _, value := range os.Environ() {
		name, _, _ := strings.Cut(value, "=")
		switch name {
		case "LANG", "TZ", "TERM", "SSL_CERT_FILE", "SSL_CERT_DIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy":
			values = append(values, value)
		}
	}
	return values
}

// goVariables are what Go uses here: a fresh home would have empty caches.
var goVariables = sync.OnceValue(func() map[string]string {
	names := []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOROOT", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOFLAGS", "GOTOOLCHAIN"}
	out, err := exec.CommandContext(context.Background(), "go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		panic(err)
	}
	values := map[string]string{}
	for i, value := range bytes.Split(bytes.TrimRight(out, "\n"), []byte("\n")) {
		values[names[i]] = string(value)
	}
	return values
})

// installation is a table and a queue on local AWS for one document, as the variables that name them.
func installation(t *testing.T) []string {
	t.Helper()
	cfg := awstest.Config(t)
	table := awstest.Table(t, awstest.LocalStackDynamoDB(t))
	queue := awstest.Queue(t, awstest.SQS(t), false)
	return []string{
		"AWS_ENDPOINT_URL=" + os.Getenv("AWS_ENDPOINT_URL"), "AWS_ENDPOINT_URL_DYNAMODB=" + os.Getenv("AWS_ENDPOINT_URL_DYNAMODB"),
		"AWS_REGION=" + cfg.Region, "AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		"AWS_EC2_METADATA_DISABLED=true", "RUNLANE_TABLE=" + table, "RUNLANE_QUEUES=default=" + queue.URL,
	}
}

// readersModule writes an empty module that requires this one, and the same versions of everything else.
func readersModule(t *testing.T, folder string) {
	t.Helper()
	text := strings.Replace(read(t, "go.mod"), "module "+module, "module example.org/reader", 1)
	text += fmt.Sprintf("\nrequire %s v0.0.0\n\nreplace %s => %s\n", module, module, root(t))
	for name, content := range map[string]string{"go.mod": text, "go.sum": read(t, "go.sum")} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
