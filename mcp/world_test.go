package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/mcp"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	welcome  = runlane.NewTask[json.RawMessage]("mail.welcome", nil)
	broken   = runlane.NewTask[json.RawMessage]("mail.broken", nil)
	asking   = runlane.NewTask[json.RawMessage]("mail.asking", nil)
	approved = runlane.NewSignal[json.RawMessage]("approved")
)

// world is a runtime in memory with runs, and its MCP server.
type world struct {
	*core.Runtime

	mcp   *mcp.Server
	more  *server.Options
	token string // answers the run that asks
}

// newWorld has runs "ended", "failed", "asking" and "later", and the flow "release".
func newWorld(t testing.TB, options *mcp.Options, api *server.Options) *world {
	t.Helper()
	w := &world{more: api}
	rt, err := core.Open(context.Background(), memlane.New(), &core.Options{
		Logger:    slog.New(slog.DiscardHandler),
		TokenKeys: [][]byte{bytes.Repeat([]byte("k"), 32)},
		Handlers: []runlane.Handler{
			welcome.Handle(func(_ context.Context, a *runlane.Attempt, payload json.RawMessage) error {
				return a.SetOutput(payload)
			}),
			broken.Handle(func(context.Context, *runlane.Attempt, json.RawMessage) error {
				return runlane.Permanent(errors.New("it is broken"))
			}),
			asking.Handle(func(ctx context.Context, a *runlane.Attempt, _ json.RawMessage) (err error) {
				if w.token, err = approved.Token(ctx, a, nil); err != nil {
					return err
				}
				_, err = approved.Wait(ctx, a, nil)
				return err
			}),
		},
		Schedules: []runlane.Schedule{{ID: "nightly", When: runlane.Cron("0 2 * * *"), Call: welcome.With(json.RawMessage(`{}`))}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close(context.Background()) })
	w.Runtime = rt
	w.trigger(t, welcome, "ended", 0)
	w.trigger(t, broken, "failed", 0)
	w.trigger(t, asking, "asking", 0)
	for range 3 {
		if _, err := rt.ExecuteNext(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	w.trigger(t, welcome, "later", time.Hour)
	f := runlane.NewFlow("release")
	build := f.Add("build", welcome.With(json.RawMessage("1")), nil)
	f.Add("test", welcome.With(json.RawMessage("2")), &runlane.NodeOptions{After: []runlane.Node{build}})
	if _, err := rt.StartFlow(t.Context(), f, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := rt.Tick(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if w.mcp, err = mcp.New(options); err != nil {
		t.Fatal(err)
	}
	if w.more == nil {
		w.more = &server.Options{}
	}
	w.more.Logger = slog.New(slog.DiscardHandler)
	w.more.Mounts = map[string]func(http.Handler) http.Handler{"/mcp": w.mcp.Handler}
	return w
}

func (w *world) trigger(t testing.TB, task *runlane.Task[json.RawMessage], id runlane.RunID, delay time.Duration) {
	t.Helper()
	call := task.With(json.RawMessage(`{ "to":  "ada", "n": 12345678901234567890 }`))
	if _, err := w.Trigger(t.Context(), call, &runlane.TriggerOptions{RunID: id, Delay: delay}); err != nil {
		t.Fatal(err)
	}
}

func (w *world) api(t testing.TB) http.Handler {
	t.Helper()
	handler, err := server.New(w.Runtime, w.more)
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

// bearer adds a token to requests.
type bearer struct {
	token string
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.next.RoundTrip(r)
}

// dial connects the SDK's own client over HTTP.
func (w *world) dial(t testing.TB, token string) (*sdk.ClientSession, error) {
	t.Helper()
	s := httptest.NewServer(w.api(t))
	t.Cleanup(s.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint:   s.URL + "/mcp",
		HTTPClient: &http.Client{Transport: &bearer{token: token, next: transport}},
		MaxRetries: -1,
	}, nil)
	if err == nil {
		t.Cleanup(func() { _ = session.Close() })
	}
	return session, err
}

func (w *world) overHTTP(t testing.TB) *sdk.ClientSession {
	t.Helper()
	session, err := w.dial(t, "")
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// overPipes connects the SDK's own client as over standard input and output.
func (w *world) overPipes(t testing.TB) *sdk.ClientSession {
	t.Helper()
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	ended := make(chan error, 1)
	api := w.api(t)
	go func() { // ends with its input, and the clean-up waits for it
		ended <- w.mcp.Serve(context.Background(), api, toServer, fromServer)
		_ = fromServer.Close()
	}()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &sdk.IOTransport{Reader: toClient, Writer: fromClient}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = session.Close()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return session
}

// connected is a world and a client of its server, in a subtest.
type connected struct {
	t      *testing.T
	w      *world
	client *sdk.ClientSession
}

// each tests over both transports.
func each(t *testing.T, options *mcp.Options, test func(on *connected)) {
	t.Helper()
	for name, connect := range map[string]func(*world, testing.TB) *sdk.ClientSession{
		"streamable HTTP": (*world).overHTTP,
		"stdio":           (*world).overPipes,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options, nil)
			test(&connected{t: t, w: w, client: connect(w, t)})
		})
	}
}

// call calls a tool and returns its result as text.
func call(t testing.TB, client *sdk.ClientSession, name string, arguments any) (text string, result *sdk.CallToolResult) {
	t.Helper()
	result, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(result.Content) != 1 {
		t.Fatalf("%s: %d contents", name, len(result.Content))
	}
	content, ok := result.Content[0].(*sdk.TextContent)
	if !ok {
		t.Fatalf("%s: %T", name, result.Content[0])
	}
	return content.Text, result
}
