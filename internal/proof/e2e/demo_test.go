package main

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go/examples/webhooks/data"
	"github.com/runlane/runlane-go/internal/proof/awstest"
)

// The demo is killed in the middle, by the signal that no program can handle, and started again: nothing is lost, and the receiver
// sees no payload that it cannot match.
func TestDemo_KilledAndResumed_LosesNothing(t *testing.T) {
	t.Parallel()
	dynamodb, sqs := awstest.LocalStackDynamoDB(t), awstest.SQS(t)
	environment := append(os.Environ(),
		"RUNLANE_LANE=aws:",
		"RUNLANE_TABLE="+awstest.StreamedTable(t, dynamodb),
		"RUNLANE_QUEUES=default="+awstest.Queue(t, sqs, false).URL+",webhooks="+awstest.Queue(t, sqs, false).URL,
	)
	folder := t.TempDir()
	program := filepath.Join(folder, "demo")
	if out, err := exec.CommandContext(t.Context(), "go", "-C", "../../../examples/webhooks/cmd/demo", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const webhooks = 40
	input := filepath.Join(folder, "input.ndjson")
	if err := os.WriteFile(input, firstLines(t, webhooks), 0o600); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(folder, "state")
	demo := func(ctx context.Context, more ...string) (*exec.Cmd, *bytes.Buffer) {
		cmd := exec.CommandContext(ctx, program, append([]string{"-noop", "3", "-input", input, "-state", state}, more...)...)
		cmd.Env = environment
		out := &bytes.Buffer{}
		cmd.Stdout, cmd.Stderr = out, out
		return cmd, out
	}

	killed, kill := context.WithCancel(t.Context())
	first, firstOut := demo(killed)
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends when the ledger has enough, or the test's time is over
		defer kill()
		for ticker := time.NewTicker(50 * time.Millisecond); t.Context().Err() == nil; <-ticker.C {
			if delivered(state) >= webhooks/4 {
				return
			}
		}
	}()
	if err := first.Wait(); err == nil {
		t.Fatalf("the demo ended before it was killed: %s", firstOut)
	}
	before := delivered(state)
	if before == 0 || before >= webhooks {
		t.Fatalf("killed with %d requests in the ledger: %s", before, firstOut)
	}

	second, out := demo(t.Context(), "-resume")
	if err := second.Run(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if last := lines[len(lines)-1]; last != "demo: 40 runs, 40 succeeded, 0 failed, 0 lost" {
		t.Errorf("last line %q: %s", last, out)
	}
	if !strings.Contains(out.String(), "0 mismatched, 0 bad signatures") {
		t.Errorf("the receiver saw something that it cannot match: %s", out)
	}
}

func firstLines(t *testing.T, n int) []byte {
	t.Helper()
	reader, err := data.GitHubWebhooks()
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(reader)
	var out []byte
	for range n {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, line...)
	}
	return out
}

// delivered counts the lines of the receiver's ledger.
func delivered(state string) int {
	b, err := os.ReadFile(filepath.Join(state, "aws", "ledger.ndjson"))
	if err != nil {
		return 0
	}
	return bytes.Count(b, []byte("\n"))
}
