package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/lane"
)

// maxBinary is the budget of the program's size, in bytes: 25 MB, 7 for SQLite, 4 for the server with its console, 4 for tools of models and
// 3 for bodies in S3 and tasks of files, with their symbols.
const maxBinary = 43_000_000

// folder has the binary while the tests run.
var folder string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	var err error
	if folder, err = os.MkdirTemp("", "runlane"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	return m.Run()
}

// binary is the path of the program, which the first test that asks for it builds: a fuzz worker never does.
var binary = sync.OnceValue(func() string {
	path := filepath.Join(folder, "runlane")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		panic(string(out))
	}
	return path
})

// program calls the binary with a separate environment.
type program struct{ environment []string }

func (p *program) run(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, news strings.Builder
	command := exec.CommandContext(t.Context(), binary(), args...)
	command.Env, command.Stdout, command.Stderr = append(os.Environ(), p.environment...), &out, &news
	err := command.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	} else if got := command.ProcessState.ExitCode(); got != code {
		t.Fatalf("%v exits with %d, not %d (%v)\n%s%s", args, got, code, exit, out.String(), news.String())
	}
	return out.String(), news.String()
}

// How long a process takes is BenchmarkBinary_Version's.
func TestBinary_IsSmall(t *testing.T) {
	t.Parallel()
	info, err := os.Stat(binary())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MB", float64(info.Size())/1e6)
	if info.Size() > maxBinary {
		t.Errorf("the binary has %d bytes", info.Size())
	}
}

// BenchmarkBinary_Version tells the two figures: the time of a whole process, and the size of the program.
func BenchmarkBinary_Version(b *testing.B) {
	info, err := os.Stat(binary())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := exec.CommandContext(b.Context(), binary(), "version").Run(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(info.Size())/1e6, "MB")
}

func TestBinary_OnLocalAWS(t *testing.T) {
	t.Parallel()
	table := awstest.Table(t, awstest.LocalStackDynamoDB(t))
	queue, slow := awstest.Queue(t, awstest.SQS(t), false), awstest.Queue(t, awstest.SQS(t), false)
	p := &program{environment: []string{
		"RUNLANE_TABLE=" + table, "RUNLANE_QUEUES=default=" + queue.URL + ",slow=" + slow.URL, "RUNLANE_ENV=test", "RUNLANE_LIMITS=slow=1", "USER=ada",
	}}
	out, _ := p.run(t, 0, "doctor", "--publish", "--all")
	if strings.Contains(out, "failed") || !strings.Contains(out, "ok       clock: ") {
		t.Errorf("doctor:\n%s", out)
	}
	out, _ = p.run(t, 0, "trigger", "emails.welcome", `{"to":"u_1"}`, "--json")
	var made struct {
		Run runlane.RunID `json:"runId"`
	}
	if err := json.Unmarshal([]byte(out), &made); err != nil || made.Run == "" {
		t.Fatalf("trigger: %v\n%s", err, out)
	}
	prefix := string(made.Run[:20])
	if out, _ = p.run(t, 0, "runs", "list", "--status", "queued"); !strings.Contains(out, string(made.Run)) {
		t.Errorf("list:\n%s", out)
	}
	if out, _ = p.run(t, 0, "runs", "explain", prefix); !strings.Contains(out, "waits for  wakeup") {
		t.Errorf("explain:\n%s", out)
	}
	if out, _ = p.run(t, 0, "queues", "stats", "default", "--json"); !strings.Contains(out, `"waiting":1`) {
		t.Errorf("stats:\n%s", out)
	}
	if out, _ = p.run(t, 0, "queues", "list"); !strings.Contains(out, "slow     1      ") {
		t.Errorf("queues:\n%s", out)
	}
	p.run(t, 0, "runs", "cancel", prefix)
	p.run(t, 4, "runs", "cancel", prefix)
	p.run(t, 3, "runs", "get", "absent")
	p.run(t, 0, "tick")
	p.run(t, 2, "worker")

	// Without queues it reads, and refuses what would wake a worker.
	reader := &program{environment: append(slices.Clone(p.environment), "RUNLANE_QUEUES=")}
	if out, _ = reader.run(t, 0, "runs", "list", "--json"); !strings.Contains(out, string(made.Run)) {
		t.Errorf("list without queues:\n%s", out)
	}
	if out, _ = reader.run(t, 0, "doctor"); !strings.Contains(out, "warning  queues: no queue is bound") {
		t.Errorf("doctor without queues:\n%s", out)
	}
	reader.run(t, 2, "trigger", "emails.welcome")
	reader.run(t, 2, "tick")

	// What is wrong with the surroundings has separate codes, and no secret is shown.
	p.run(t, 2, "runs", "list", "--table", "absent")
	away := &program{environment: append(slices.Clone(p.environment), "AWS_SECRET_ACCESS_KEY=very-secret", "AWS_MAX_ATTEMPTS=1",
		"AWS_ENDPOINT_URL_DYNAMODB=", "AWS_ENDPOINT_URL_SQS=")}
	out, news := away.run(t, 5, "runs", "list", "--endpoint-url", "http://127.0.0.1:1")
	if out != "" || !strings.Contains(news, "next: ") || strings.Contains(news, "very-secret") {
		t.Errorf("unreachable: %s%s", out, news)
	}
	out, _ = away.run(t, 5, "doctor", "--json", "--endpoint-url", "http://127.0.0.1:1")
	if !strings.Contains(out, `"check":"clock","status":"failed"`) {
		t.Errorf("doctor, unreachable:\n%s", out)
	}
}

func TestBinary_WithoutDeployment_SaysHowToChooseOne(t *testing.T) {
	t.Parallel()
	p := &program{environment: []string{"RUNLANE_TABLE=", "RUNLANE_QUEUES=", "AWS_EC2_METADATA_DISABLED=true"}}
	if _, news := p.run(t, 2, "runs", "list"); !strings.Contains(news, "--table NAME") {
		t.Errorf("%s", news)
	}
	p.environment = append(p.environment, "RUNLANE_TABLE=t", "AWS_REGION=", "AWS_DEFAULT_REGION=", "AWS_CONFIG_FILE="+os.DevNull)
	if _, news := p.run(t, 2, "runs", "list"); !strings.Contains(news, "--region") {
		t.Errorf("%s", news)
	}
	p.environment = append(p.environment, "AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "AWS_SHARED_CREDENTIALS_FILE="+os.DevNull)
	if _, news := p.run(t, 5, "runs", "list"); !strings.Contains(news, "no usable AWS credentials") || !strings.Contains(news, "--profile") {
		t.Errorf("%s", news)
	}
	if _, news := p.run(t, 2, "runs", "list", "--env", "a:b"); !strings.Contains(news, "--env") {
		t.Errorf("%s", news)
	}
	p.environment = append(p.environment, "RUNLANE_LIMITS=slow")
	if _, news := p.run(t, 2, "runs", "list"); !strings.Contains(news, "name=number") {
		t.Errorf("%s", news)
	}
}

func TestUnbound_AcceptsNoWakeup_AndBlamesNone(t *testing.T) {
	t.Parallel()
	outcomes, err := unbound{}.PublishWakeups(context.Background(), &lane.PublishCommand{Attempts: make([]lane.PublishAttempt, 2)})
	if err != nil || len(outcomes) != 2 {
		t.Fatalf("%v %v", outcomes, err)
	}
	for _, outcome := range outcomes {
		if outcome.Type != lane.PublishFailed || outcome.Permanent || outcome.Failure.Code != runlane.ErrTransportUnavailable {
			t.Errorf("%+v", outcome)
		}
	}
}
