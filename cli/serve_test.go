package cli_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/server"
)

// serving runs a command until the test ends, and returns where it listens.
func serving(t *testing.T, w *world, folder string, args ...string) (url string, stop func() result) {
	t.Helper()
	ctx, interrupt := context.WithCancel(context.Background())
	out, done := newStream(), make(chan result, 1)
	go func() { // ends with the interrupt
		done <- runWith(ctx, w, &cli.Options{Args: args, Folder: folder, MCP: echo, Stdout: out, Stderr: out})
	}()
	stopped := false
	stop = func() (r result) {
		if stopped {
			return r
		}
		stopped = true
		interrupt()
		r = <-done
		r.stdout = out.String()
		return r
	}
	t.Cleanup(func() { stop() })
	out.await(t, "://127.0.0.1:")
	return regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(out.String()), stop
}

func fetch(t *testing.T, url, token string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestServe_AnswersUntilInterrupted(t *testing.T) {
	t.Parallel()
	w := newWorld()
	mustRun(t, w, "trigger", "emails.welcome", `{"to":"u"}`, "--id", "r1")
	url, stop := serving(t, w, t.TempDir(), "serve")
	status, item := fetch(t, url+"/v1/runs", "")
	line := w.run(t.Context(), "runs", "list", "--json").stdout
	if status != http.StatusOK || !strings.Contains(item, strings.TrimSpace(line)) {
		t.Errorf("the server's list does not have the command's line:\n%s\n%s", item, line)
	}
	if _, run := fetch(t, url+"/v1/runs/r1", ""); run+"\n" != w.run(t.Context(), "runs", "get", "r1", "--json").stdout {
		t.Errorf("the server's run is not the command's: %s", run)
	}
	if r := stop(); r.code != cli.ExitOK || !strings.HasPrefix(r.stdout, "listening on "+url+"\n") {
		t.Errorf("%+v", r)
	}
	_, stop = serving(t, w, t.TempDir(), "serve", "--json")
	if r := stop(); !strings.HasPrefix(r.stdout, `{"v":1,"kind":"serve","url":"http://127.0.0.1:`) {
		t.Errorf("%+v", r)
	}
}

// A server says each change on stderr, by API and console: without tokens it names the address.
func TestServe_EachChangeIsALine(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for _, id := range []string{"r1", "r2"} {
		mustRun(t, w, "trigger", "emails.welcome", `{"to":"u"}`, "--id", id, "--delay", "1h")
	}
	url, stop := serving(t, w, t.TempDir(), "serve")
	for _, path := range []string{"/v1/runs/r1/cancel", "/runs/r2/cancel"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", url)
		answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
		if err != nil || answer.StatusCode >= http.StatusBadRequest {
			t.Fatalf("%s: %+v, %v", path, answer, err)
		}
		_ = answer.Body.Close()
	}
	said := stop().stdout
	for _, line := range []string{
		`msg="runlane: a change by HTTP" actor=127.0.0.1 operation=cancelRun run_id=r1 code=done`,
		`msg="runlane: a change by the console" actor=127.0.0.1 operation=cancel run_id=r2 code=done`,
	} {
		if strings.Count(said, line+"\n") != 1 || strings.Count(said, "a change by") != 2 {
			t.Errorf("not once %s:\n%s", line, said)
		}
	}
}

func TestServe_DevAnswersToo(t *testing.T) {
	t.Parallel()
	url, stop := serving(t, newWorld(), t.TempDir(), "dev")
	if status, tasks := fetch(t, url+"/v1/tasks", ""); status != http.StatusOK || !strings.Contains(tasks, `"taskId":"emails.welcome"`) {
		t.Errorf("%d %s", status, tasks)
	}
	if status, text := fetch(t, url+"/metrics", ""); status != http.StatusOK || !strings.Contains(text, "runlane_storage_up 1") {
		t.Errorf("%d %s", status, text)
	}
	if status, page := fetch(t, url+"/", ""); status != http.StatusOK || !strings.Contains(page, "<html") {
		t.Errorf("%d %s", status, page)
	}
	if status, tools := fetch(t, url+"/mcp", ""); status != http.StatusOK || !strings.HasPrefix(tools, `[] {"v":1`) {
		t.Errorf("%d %s", status, tools)
	}
	if r := stop(); r.code != cli.ExitOK {
		t.Errorf("%+v", r)
	}
}

func TestServe_DevWithoutAddress_ListensNowhere(t *testing.T) {
	t.Parallel()
	s := startDev(t, newWorld(), t.TempDir(), "--json", "--listen", "")
	if code := s.stop(t); code != cli.ExitOK || strings.Contains(s.out.String(), `"url"`) {
		t.Errorf("%d\n%s", code, s.out)
	}
}

func TestToken_IsShownOnceAndStoredAsAHash(t *testing.T) {
	t.Parallel()
	w, folder := newWorld(), t.TempDir()
	call := func(args ...string) result {
		return runWith(t.Context(), w, &cli.Options{Args: args, Folder: folder})
	}
	made := call("token", "ci", "--scopes", "read,trigger", "--file", "tokens.ndjson")
	other := call("token", "ops", "--scopes", "operate", "--environments", "production", "--json")
	token := strings.TrimSpace(made.stdout)
	if made.code != cli.ExitOK || !strings.HasPrefix(token, "runlane_") || !strings.Contains(other.stdout, `"name":"ops"`) {
		t.Fatalf("%+v %+v", made, other)
	}
	file, err := os.ReadFile(filepath.Join(folder, "tokens.ndjson"))
	if err != nil || strings.Contains(string(file), token) || !strings.Contains(string(file), server.HashToken(token)) {
		t.Errorf("%v: %s", err, file)
	}
	url, stop := serving(t, w, folder, "serve", "--tokens", "tokens.ndjson", "--proxy", "192.0.2.1,10.0.0.0/8", "--proxy-header", "X-User")
	for given, want := range map[string]int{token: 200, "": 401, "runlane_wrong": 401} {
		if status, body := fetch(t, url+"/v1/runs", given); status != want {
			t.Errorf("%q: %d %s", given, status, body)
		}
	}
	if r := stop(); strings.Contains(r.stdout, token) {
		t.Error("the server shows a token")
	}
}

func TestServe_WrongUsage_SaysWhatToDo(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write(t, `{"name":"ci"}`, folder, "scopeless.ndjson")
	write(t, "{\n", folder, "broken.ndjson")
	write(t, `{"name":"ci"}}`, folder, "more.ndjson")
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"serve", "--listen", "0.0.0.0:0"}, "nothing tells callers apart"},
		{[]string{"serve", "--listen", "nowhere"}, "cannot be listened on"},
		{[]string{"serve", "--tokens", "absent"}, "absent cannot be read"},
		{[]string{"serve", "--tokens", "broken.ndjson"}, "line 1 is not a token"},
		{[]string{"serve", "--tokens", "more.ndjson"}, "line 1 is more than a token"},
		{[]string{"serve", "--tokens", "scopeless.ndjson"}, "is not a SHA-256 in hex"},
		{[]string{"serve", "--proxy", "everywhere", "--proxy-header", "X"}, "is not an address"},
		{[]string{"serve", "--proxy-header", "X"}, "--proxy and --proxy-header need each other"},
		{[]string{"serve", "--proxy", "10.0.0.1", "--proxy-header", "X", "--proxy-scopes", "all"}, "there is no scope"},
		{[]string{"serve", "--webhook", "https://example.com/"}, "has no secret"},
		{[]string{"serve", "--webhook", "https://example.com/", "--webhook-secret-env", "ABSENT"}, "has no secret"},
		{[]string{"serve", "--webhook-status", "failed"}, "need --webhook"},
		{[]string{"serve", "--certificate", "absent", "--key", "absent"}, "cannot be used"},
		{[]string{"token"}, "1 argument is missing"},
		{[]string{"token", "a:b"}, "cannot name a token"},
		{[]string{"token", "a", "--scopes", "all"}, "there is no scope"},
		{[]string{"token", "a", "--file", "no/such/folder"}, "cannot be written"},
		{[]string{"dev", "--listen", "0.0.0.0:0"}, "nothing tells callers apart"},
	} {
		r := runWith(t.Context(), newWorld(), &cli.Options{Args: c.args, Folder: folder})
		if r.code != cli.ExitUsage || !strings.Contains(r.stderr, c.says) || !strings.Contains(r.stderr, "next: ") {
			t.Errorf("%v: %+v", c.args, r)
		}
	}
}
