package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/scenarios/patience"
)

const targetsFile = `
secrets: {key: {env: HOOK_KEY}}
tasks:
  hook:
    http: {url: "URL/${payload.id}", private: true, headers: {Authorization: "Bearer ${secret.key}"}}
    receipt: {body: true}
    maxAttempts: 2
    backoff: 1ms
    schedules:
      nightly: {cron: "0 3 * * *", zone: Europe/Berlin, payload: {id: nightly}}
  say:
    command: {run: [cat]}
`

// targets writes a file whose task hook leads to a receiver that fails each first request.
func targets(t *testing.T, p *program) (file string, taken *atomic.Int64) {
	t.Helper()
	taken = &atomic.Int64{}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer very-secret" || taken.Add(1)%2 == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("thanks for " + r.URL.Path + "\x1b[31m"))
	}))
	t.Cleanup(receiver.Close)
	p.environment = append(p.environment, "HOOK_KEY=very-secret")
	file = filepath.Join(t.TempDir(), "runlane.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(targetsFile, "URL", receiver.URL)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, taken
}

// deliver triggers both tasks of a file beside its worker, and looks at their receipts.
func deliver(t *testing.T, p *program) {
	t.Helper()
	file, taken := targets(t, p)
	worker := exec.CommandContext(t.Context(), binary(), "worker", "--file", file)
	worker.Env = append(os.Environ(), p.environment...)
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = worker.Process.Signal(os.Interrupt)
		if err := worker.Wait(); err != nil {
			t.Error(err)
		}
	}()
	until(t, func() bool { // its first tick
		command := exec.CommandContext(t.Context(), binary(), "schedules", "list")
		command.Env = worker.Env
		out, err := command.Output()
		return err == nil && strings.Contains(string(out), "nightly")
	})
	p.run(t, cli.ExitOK, "trigger", "hook", `{"id":"order-7"}`, "--id", "run-hook", "--wait")
	p.run(t, cli.ExitOK, "trigger", "say", `{"say":"hello"}`, "--id", "run-say", "--wait")
	out, news := p.run(t, cli.ExitOK, "runs", "receipts", "run-hook")
	if taken.Load() != 2 || !strings.Contains(out, "503, 0 bytes") || !strings.Contains(out, "2 body| thanks for /order-7\uFFFD[31m") {
		t.Errorf("%d requests, and the receipts are\n%s%s", taken.Load(), out, news)
	}
	out, _ = p.run(t, cli.ExitOK, "runs", "receipts", "run-say", "--json")
	if !strings.Contains(out, `"command":"cat","exitCode":0,"stdout":"{\"say\":\"hello\"}"`) {
		t.Errorf("the command's receipt is\n%s", out)
	}
	if strings.Contains(out, "very-secret") {
		t.Error("a receipt has the secret")
	}
}

// A file with tasks needs no program: the binary executes them on a lane in a file.
func TestWorker_TasksOfAFile_OnAFile(t *testing.T) {
	t.Parallel()
	p := &program{environment: []string{"RUNLANE_LANE=sqlite:" + filepath.Join(t.TempDir(), "state.db")}}
	deliver(t, p)
	if _, news := p.run(t, cli.ExitUsage, "worker", "--file", "none.yaml"); !strings.Contains(news, "docs/targets.md") {
		t.Errorf("without the file: %s", news)
	}
}

// The same on AWS: the worker receives from SQS, and receipts are in the table.
func TestWorker_TasksOfAFile_OnAWS(t *testing.T) {
	t.Parallel()
	table, queue := awstest.Table(t, awstest.LocalStackDynamoDB(t)), awstest.Queue(t, awstest.SQS(t), false)
	deliver(t, &program{environment: []string{
		"RUNLANE_TABLE=" + table, "RUNLANE_QUEUES=default=" + queue.URL, "RUNLANE_ENV=test",
	}})
}

// until waits for a condition.
func until(t *testing.T, holds func() bool) {
	t.Helper()
	ctx, cancel := patience.Context(t)
	defer cancel()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatal("it does not come to that")
		case <-look.C:
		}
	}
}
