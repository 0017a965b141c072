package cli_test

import (
	"context"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// shared is a transport that outlives the calls of the command line, as a queue does.
type shared struct{ *memlane.Transport }

func (shared) Close(context.Context) error { return nil }

// TestTrigger_Wait_EndsAsTheRunDid has a worker beside the command line.
func TestTrigger_Wait_EndsAsTheRunDid(t *testing.T) {
	t.Parallel()
	w, transport := newWorld(), shared{memlane.NewTransport(nil)}
	open := func(ctx context.Context) (*core.Runtime, error) {
		l, err := lane.New(w.storage, transport, nil)
		if err != nil {
			return nil, err
		}
		return core.Open(ctx, l, w.options())
	}
	worker, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Work(ctx, &core.WorkOptions{NoTick: true}) }() // until stop
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := worker.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := transport.Transport.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for _, c := range []struct {
		args   []string
		code   int
		status string
	}{
		{[]string{"trigger", "emails.welcome", `{"to":"u_1"}`, "--wait", "--json"}, cli.ExitOK, "succeeded"},
		{[]string{"trigger", "emails.welcome", `"no letter"`, "--wait", "--json"}, cli.ExitFailed, "failed"},
		{[]string{"schedules", "trigger", "nightly", "--wait", "--json"}, cli.ExitOK, "succeeded"},
	} {
		var out strings.Builder
		code := cli.Run(t.Context(), open, &cli.Options{Args: c.args, Stdout: &out, Stderr: t.Output(), Getenv: func(string) string { return "" }})
		if code != c.code || strings.Count(out.String(), "\n") != 1 || !strings.Contains(out.String(), `"status":"`+c.status+`"`) {
			t.Errorf("%v: %d %s", c.args, code, out.String())
		}
	}
}
