package main

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/proof/awstest"
)

type parcel struct {
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
}

// The binary has no tasks. It triggers those of a program that ticks as that program would.
func TestBinary_KnowsTheTasksOfAProgramThatTicks(t *testing.T) {
	t.Parallel()
	table := awstest.Table(t, awstest.LocalStackDynamoDB(t))
	plain, parcels := awstest.Queue(t, awstest.SQS(t), false), awstest.Queue(t, awstest.SQS(t), false)
	p := &program{environment: []string{
		"RUNLANE_TABLE=" + table, "RUNLANE_QUEUES=default=" + plain.URL + ",parcels=" + parcels.URL, "RUNLANE_ENV=test", "USER=ada",
	}}
	if _, news := p.run(t, 0, "trigger", "parcels.shp", "--id", "mistyped"); !strings.Contains(news, "no tick has stored this environment's tasks") {
		t.Errorf("before the first tick: %s", news)
	}

	ship := runlane.NewTask("parcels.ship", &runlane.TaskOptions[parcel]{
		IdempotencyKey: func(p parcel) string { return p.ID }, ConcurrencyKey: func(p parcel) string { return p.Tenant },
		IdempotencyTTL: time.Hour, Queue: runlane.Queue{Name: "parcels", Concurrency: 1}, Retry: runlane.Retry{MaxAttempts: 3},
	})
	l, err := awslane.New(awstest.Config(t), awslane.Options{
		Environment: "test", Table: table, Queues: map[runlane.QueueName]string{"default": plain.URL, "parcels": parcels.URL},
	})
	if err != nil {
		t.Fatal(err)
	}
	rt, err := core.Open(t.Context(), l, &core.Options{Logger: slog.New(slog.DiscardHandler), Handlers: []runlane.Handler{
		ship.Handle(func(context.Context, *runlane.Attempt, parcel) error { return nil }),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rt.Close(context.Background()) }()
	if _, err := rt.Tick(t.Context(), nil); err != nil {
		t.Fatal(err)
	}

	if out, _ := p.run(t, 0, "tasks", "list"); !strings.Contains(out, "parcels.ship  parcels  1      3                  concurrency,idempotency  no") {
		t.Errorf("tasks:\n%s", out)
	}
	if _, news := p.run(t, 3, "trigger", "parcels.shp"); !strings.Contains(news, `did you mean "parcels.ship"?`) {
		t.Errorf("mistyped: %s", news)
	}
	if _, news := p.run(t, 2, "trigger", "parcels.ship", `{"id":"p_1","tenant":"acme"}`); !strings.Contains(news, "--concurrency-key and --idempotency-key") {
		t.Errorf("without keys: %s", news)
	}
	args := []string{"trigger", "parcels.ship", `{"id":"p_1","tenant":"acme"}`, "--idempotency-key", "p_1", "--concurrency-key", "acme"}
	p.run(t, 0, append(args, "--id", "of-the-binary")...)
	again, err := rt.Trigger(t.Context(), ship.With(parcel{ID: "p_1", Tenant: "acme"}), nil)
	if err != nil || again.Run.ID != "of-the-binary" || again.PayloadDiffers {
		t.Fatalf("the program's own trigger: %+v, %v", again, err)
	}
	run := again.Run
	if run.Queue != "parcels" || run.DispatchExpiresAt.IsZero() || run.Retention.TTL != time.Hour || run.ConcurrencyKey != "acme" {
		t.Errorf("the binary's run is %+v", run)
	}
	if _, news := p.run(t, 2, append(args, "--limits", "parcels=2")...); !strings.Contains(news, "limit 2 here and 1 in the program") {
		t.Errorf("another limit: %s", news)
	}
}
