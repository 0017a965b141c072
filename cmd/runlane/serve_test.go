package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The log of the server says who changed what, without being asked: docs/server.md, Who may call.
func TestBinary_Serve_SaysEachChange(t *testing.T) {
	t.Parallel()
	p, path := onFile(t)
	writer(t, path, 1)
	p.run(t, 0, "trigger", "greet", `"ada"`, "--id", "later", "--delay", "1h")
	tokens := filepath.Join(t.TempDir(), "tokens.ndjson")
	token, _ := p.run(t, 0, "token", "ada", "--scopes", "read,operate", "--file", tokens)
	var log bytes.Buffer
	command := exec.CommandContext(t.Context(), binary(), "serve", "--tokens", tokens)
	command.Env, command.Stderr = append(os.Environ(), p.environment...), &log
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	url := strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	if err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	for _, path := range []string{"/v1/runs/later/cancel", "/v1/tick", "/runs/later/cancel"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close()
	}
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("%v", err)
	}
	for _, part := range []string{
		`level=INFO msg="runlane: a change by HTTP" actor=ada operation=cancelRun run_id=later code=done`,
		`operation=tick code=done`,
		`msg="runlane: a change by the console"`,
	} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log has no %s:\n%s", part, log.String())
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 3 {
		t.Errorf("the log has %d lines:\n%s", n, log.String())
	}
}
