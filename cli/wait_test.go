package cli_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/runlane/runlane-go/cli"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

// TestTrigger_Wait_EndsAsTheRunDid has a worker beside the command line.
func TestTrigger_Wait_EndsAsTheRunDid(t *testing.T) {
	t.Parallel()
	w, transport := newWorld(), lasting{memlane.NewTransport(nil)}
	w.shared = transport
	worker, err := w.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Work(ctx, &core.WorkOptions{NoTick: true}) }() // until stop
	t.Cleanup(func() {
		stop()
		err := errors.Join(<-ended, worker.Close(context.Background()), transport.Transport.Close(context.Background()))
		if err != nil {
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
		r := w.run(t.Context(), c.args...)
		if r.code != c.code || strings.Count(r.stdout, "\n") != 1 || !strings.Contains(r.stdout, `"status":"`+c.status+`"`) {
			t.Errorf("%v: %+v", c.args, r)
		}
	}
}
