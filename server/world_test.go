package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
	"github.com/runlane/runlane-go/server"
)

var discard = slog.New(slog.DiscardHandler)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type mail struct {
	To string `json:"to"`
}

var (
	welcome = runlane.NewTask[json.RawMessage]("mail.welcome", nil)
	broken  = runlane.NewTask[json.RawMessage]("mail.broken", &runlane.TaskOptions[json.RawMessage]{Queue: runlane.Queue{Name: "slow"}})
	asking  = runlane.NewTask("mail.asking", &runlane.TaskOptions[json.RawMessage]{KeepLogs: true})
	alone   = runlane.NewTask("mail.alone", &runlane.TaskOptions[mail]{SingletonKey: func(m mail) string { return m.To }})

	resize   = runlane.NewTask[json.RawMessage]("work.resize", nil)
	approved = runlane.NewSignal[json.RawMessage]("approved")
)

// world is a runtime in memory and its server.
type world struct {
	*core.Runtime

	handler http.Handler
	log     *lockedBuffer
	claim   string // the token of a claim, once a run is claimed
	token   string // for the answer to the run that asks, once it has
}

// lockedBuffer is a log that requests write at once.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func newWorld(t testing.TB, options *server.Options) *world {
	t.Helper()
	w := &world{log: &lockedBuffer{}}
	logger := slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var later atomic.Int64 // each look at the clock is a millisecond after the one before
	now := func() time.Time { return time.Now().Add(time.Duration(later.Add(1)) * time.Millisecond) }
	rt, err := core.Open(context.Background(), memlane.New(), &core.Options{
		Logger: slog.New(slog.DiscardHandler),
		World:  &core.World{Now: now},

		TokenKeys: [][]byte{bytes.Repeat([]byte("k"), 32)},
		Handlers: []runlane.Handler{
			welcome.Handle(func(_ context.Context, a *runlane.Attempt, payload json.RawMessage) error {
				if err := a.Progress(context.Background(), "half way"); err != nil {
					return err
				}
				a.SetReceipt(runlane.Receipt{Target: runlane.ReceiptHTTP, Request: "POST https://example.com", Status: 202, Body: string(payload)})
				return a.SetOutput(payload)
			}),
			broken.Handle(func(context.Context, *runlane.Attempt, json.RawMessage) error {
				return runlane.Permanent(errors.New("it is broken"))
			}),
			asking.Handle(func(ctx context.Context, a *runlane.Attempt, _ json.RawMessage) error {
				a.Logger().Info("looks up", "order", 7)
				_, err := runlane.Step(ctx, a, "looked up", func(context.Context) (int, error) { return 7, nil })
				if err != nil {
					return err
				}
				if w.token, err = approved.Token(ctx, a, nil); err != nil {
					return err
				}
				_, err = approved.Wait(ctx, a, nil)
				return err
			}),
			alone.Handle(func(context.Context, *runlane.Attempt, mail) error { return nil }),
		},
		Tasks: []core.ClientTask{{Definition: resize.Definition()}},
		Schedules: []runlane.Schedule{{
			ID:   "nightly",
			When: runlane.Cron("0 2 * * *"),
			Call: welcome.With(json.RawMessage(`{"to":"all"}`)),
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close(context.Background()) })
	w.Runtime = rt
	if options == nil {
		options = &server.Options{}
	}
	options.Logger = logger
	if w.handler, err = server.New(rt, options); err != nil {
		t.Fatal(err)
	}
	return w
}

// trigger makes a run, and executes it if that is asked for.
func (w *world) trigger(t testing.TB, task *runlane.Task[json.RawMessage], id runlane.RunID, executed bool) runlane.RunID {
	t.Helper()
	options := &runlane.TriggerOptions{RunID: id}
	if !executed {
		options.Delay = time.Hour
	}
	result, err := w.Trigger(t.Context(), task.With(json.RawMessage(`{ "to":  "ada", "n": 12345678901234567890 }`)), options)
	if err != nil {
		t.Fatal(err)
	}
	for executed {
		done, err := w.ExecuteNext(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if done.Run == nil || done.Run.ID == result.Run.ID {
			break
		}
	}
	return result.Run.ID
}

// answer is what a request got.
type answer struct {
	status int
	header http.Header
	text   string
}

// field is a field of the answer's object.
func (a *answer) field(t testing.TB, name string) any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(a.text), &object); err != nil {
		t.Fatalf("%v: %s", err, a.text)
	}
	return object[name]
}

// ask sends a request from this machine, with "Name: value" headers.
func (w *world) ask(t testing.TB, method, path, body string, headers ...string) *answer {
	t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequestWithContext(t.Context(), method, path, reader)
	r.Host, r.RemoteAddr = "localhost:8080", "127.0.0.1:40000"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		switch name {
		case "Host":
			r.Host = value
		case "Type":
			r.Header.Set("Content-Type", value)
		case "Peer":
			r.RemoteAddr = value
		default:
			r.Header.Add(name, value)
		}
	}
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, r)
	return &answer{status: recorder.Code, header: recorder.Header(), text: recorder.Body.String()}
}

func (a *answer) want(t testing.TB, status int, parts ...string) {
	t.Helper()
	if a.status != status {
		t.Errorf("status %d, want %d: %s", a.status, status, a.text)
	}
	for _, part := range parts {
		if !strings.Contains(a.text, part) {
			t.Errorf("the answer has no %s:\n%s", part, a.text)
		}
	}
	if status >= 400 && a.text != "" {
		if kind := a.header.Get("Content-Type"); kind != "application/problem+json" {
			t.Errorf("an error is %q", kind)
		}
		if a.field(t, "code") == "" || a.field(t, "detail") == "" || a.field(t, "status") != float64(status) {
			t.Errorf("no problem: %s", a.text)
		}
	}
}
