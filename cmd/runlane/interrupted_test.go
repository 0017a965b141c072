package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/internal/proof/awstest"
)

// between is local AWS behind an endpoint that can begin to refuse an action.
type between struct {
	action, code string
	after        int64 // how many are let through
	seen         atomic.Int64
}

// front is its address.
func (b *between) front(t *testing.T) string {
	t.Helper()
	behind, err := url.Parse(*awstest.LocalStackDynamoDB(t).Options().BaseEndpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), b.action) && b.seen.Add(1) > b.after {
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(w, `{"__type":"com.amazon.coral.service#%s","message":"no more %s"}`, b.code, b.action)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// deployment is a table and a queue, and the program that is told of them.
func deployment(t *testing.T) *program {
	t.Helper()
	table, queue := awstest.Table(t, awstest.LocalStackDynamoDB(t)), awstest.Queue(t, awstest.SQS(t), false)
	return &program{environment: []string{
		"RUNLANE_TABLE=" + table, "RUNLANE_QUEUES=default=" + queue.URL, "RUNLANE_ENV=test", "USER=ada", "AWS_SESSION_TOKEN=" + secretToken,
	}}
}

// linesFile is a batch whose payloads hold a secret.
func linesFile(t *testing.T, n int) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "lines.ndjson")
	if err := os.WriteFile(file, []byte(strings.Repeat(`{"payload":`+secretPayload+"}\n", n)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func (p *program) count(t *testing.T) int {
	t.Helper()
	out, _ := p.run(t, cli.ExitOK, "runs", "list", "--all", "--json")
	return strings.Count(out, `"kind":"run.summary"`)
}

// TestBinary_CredentialsEndDuringABatch_ItResumesAndMakesNothingTwice goes on with the batch when they are renewed.
func TestBinary_CredentialsEndDuringABatch_ItResumesAndMakesNothingTwice(t *testing.T) {
	t.Parallel()
	const all = 120
	p, lines := deployment(t), linesFile(t, all)
	expiring := &between{action: ".TransactWriteItems", code: "ExpiredTokenException", after: 105}
	args := []string{"trigger", "emails.welcome", "--foreign", "--batch", lines, "--batch-id", "b1"}
	failing := &program{environment: append(slices.Clone(p.environment), "AWS_ENDPOINT_URL_DYNAMODB="+expiring.front(t))}
	out, news := failing.run(t, cli.ExitUnavailable, append(args, "--verbose")...)
	if !strings.Contains(news, "the credentials for AWS have expired\n") || !strings.Contains(news, "The rest: repeat the command with --batch-id b1") {
		t.Errorf("%s%s", out, news)
	}
	if strings.Contains(out+news, "very-secret") {
		t.Errorf("a secret is shown: %s%s", out, news)
	}
	made := p.count(t)
	if made < 100 || made >= all || !strings.Contains(news, fmt.Sprintf("%d runs were made, 0 were there", made)) {
		t.Errorf("%d runs were made, and the command says:\n%s", made, news)
	}
	out, _ = p.run(t, cli.ExitOK, args...)
	if want := fmt.Sprintf("created: %d, there already: %d, failed: 0\n", all-made, made); out != want {
		t.Errorf("resumed: %q, not %q", out, want)
	}
	if n := p.count(t); n != all {
		t.Errorf("%d runs", n)
	}
}

// TestBinary_ClosedPipe_IsNoFailure has a reader who has seen enough.
func TestBinary_ClosedPipe_IsNoFailure(t *testing.T) {
	t.Parallel()
	p := deployment(t)
	p.run(t, cli.ExitOK, "trigger", "emails.welcome", "--foreign", "--batch", linesFile(t, 30))
	for _, args := range []string{"runs list --all", "runs list --all --json", "runs list --help", "version", "completion bash", "doctor"} {
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
		var news strings.Builder
		command := exec.CommandContext(t.Context(), binary(), strings.Fields(args)...)
		command.Env, command.Stdout, command.Stderr = append(os.Environ(), p.environment...), writer, &news
		err = command.Run()
		if closeErr := writer.Close(); closeErr != nil {
			t.Fatal(closeErr)
		}
		exit, _ := errors.AsType[*exec.ExitError](err)
		if err != nil && (exit == nil || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGPIPE) { // of this system
			t.Errorf("%s ends with %v", args, err)
		}
		if news.Len() > 0 {
			t.Errorf("%s makes noise: %s", args, news.String())
		}
	}
	// As a person types it: one line is wanted of a list that goes on.
	shell := exec.CommandContext(t.Context(), "sh", "-c", `"$0" runs list --all --json | head -n 1`, binary())
	var news strings.Builder
	shell.Env, shell.Stderr = append(os.Environ(), p.environment...), &news
	out, err := shell.Output()
	if err != nil || strings.Count(string(out), "\n") != 1 || !strings.HasPrefix(string(out), `{"v":1,"kind":"run.summary"`) || news.Len() > 0 {
		t.Errorf("%v: %q, %q", err, out, news.String())
	}
}
