package cli_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/cli"
)

// echoing stands for package mcp, whose tests have the protocol: it calls the API, and says what was allowed.
type echoing struct{ allow []string }

func echo(allow []string) (cli.MCP, error) {
	if len(allow) > 0 && allow[0] == "delete" {
		return nil, &runlane.Error{Code: runlane.ErrConfigurationInvalid, Message: "there is no tool \"delete\"", Hint: "tools are cancel"}
	}
	return &echoing{allow}, nil
}

func (e *echoing) Handler(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = "/v1/tasks"
		fmt.Fprintf(w, "%v ", e.allow)
		api.ServeHTTP(w, r)
	})
}

func (e *echoing) Serve(ctx context.Context, api http.Handler, in io.Reader, out io.Writer) error {
	asked, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	path, body, _ := strings.Cut(string(asked), " ")
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:0"
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	_, err = fmt.Fprintf(out, "%v %s", e.allow, w.Body)
	return err
}

func TestMCP_ToolsActInTheNameOfTheUser(t *testing.T) {
	t.Parallel()
	w := newWorld()
	mustRun(t, w, "trigger", "emails.welcome", `{"to":"u"}`, "--id", "r1", "--delay", "1h")
	call := func(in string, args ...string) result {
		var out strings.Builder
		r := runWith(t.Context(), w, &cli.Options{Args: args, Folder: t.TempDir(), MCP: echo, Stdin: strings.NewReader(in), Stdout: &out})
		r.stdout = out.String()
		return r
	}
	if r := call("/v1/runs/r1", "mcp", "--hide-payloads"); r.code != cli.ExitOK || !strings.HasPrefix(r.stdout, `[] {"v":1,"kind":"run"`) ||
		strings.Contains(r.stdout, `"payload"`) {
		t.Errorf("%+v", r)
	}
	if r := call("/v1/runs/r1/cancel {}", "mcp", "--allow", "cancel,retry", "--actor", "carol"); !strings.HasPrefix(r.stdout, "[cancel retry] ") ||
		strings.Count(r.stderr, "actor=carol operation=cancelRun run_id=r1 code=done") != 1 {
		t.Errorf("%+v", r)
	}
	if r := w.run(t.Context(), "runs", "events", "r1", "--json"); !strings.Contains(r.stdout, `"actor":{"type":"operator","id":"carol"}`) {
		t.Errorf("%+v", r)
	}
	for _, wrong := range [][]string{{"mcp", "--allow", "delete"}, {"serve", "--allow", "delete"}} {
		if r := call("", wrong...); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "--allow: there is no tool") ||
			!strings.Contains(r.stderr, "next: tools are cancel") {
			t.Errorf("%+v", r)
		}
	}
	for _, missing := range [][]string{{"mcp"}, {"serve", "--allow", "cancel"}} {
		if r := w.run(t.Context(), missing...); r.code == cli.ExitOK || !strings.Contains(r.stderr, "has no tools for language models") {
			t.Errorf("%+v", r)
		}
	}
}

func TestServe_ToolsOfModelsAreBesideTheAPI(t *testing.T) {
	t.Parallel()
	url, stop := serving(t, newWorld(), t.TempDir(), "serve", "--allow", "cancel")
	if status, text := fetch(t, url+"/mcp", ""); status != http.StatusOK || !strings.HasPrefix(text, `[cancel] {"v":1,"kind":"page"`) {
		t.Errorf("%d %s", status, text)
	}
	if r := stop(); r.code != cli.ExitOK {
		t.Errorf("%+v", r)
	}
}
