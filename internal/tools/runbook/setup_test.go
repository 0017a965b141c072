package runbook_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/infra"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/lane"
)

// patience is how long a test waits for what it expects.
const patience = time.Minute

const root = "../../.."

// binary is the command line, built once for all tests.
var binary string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	folder, err := os.MkdirTemp("", "runbook")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	binary = filepath.Join(folder, "runlane")
	build := exec.CommandContext(context.Background(), "go", "build", "-o", binary, ".")
	build.Dir = root + "/cmd/runlane" // a separate module
	if out, err := build.CombinedOutput(); err != nil {
		panic(string(out))
	}
	return m.Run()
}

// runlaneCommand calls the binary with separate variables.
func runlaneCommand(t *testing.T, variables []string, args ...string) (output string, code int) {
	t.Helper()
	var out strings.Builder
	command := exec.CommandContext(t.Context(), binary, args...)
	command.Env, command.Stdout, command.Stderr = append(os.Environ(), variables...), &out, &out
	err := command.Run()
	if _, exit := errors.AsType[*exec.ExitError](err); err != nil && !exit {
		t.Fatal(err)
	}
	return out.String(), command.ProcessState.ExitCode()
}

const (
	environment = runlane.Environment("prod")
	workQueue   = runlane.QueueName("work")
	failsTask   = runlane.TaskID("fails")
)

var (
	greet = runlane.NewTask("greet", &runlane.TaskOptions[string]{Queue: runlane.Queue{Name: workQueue}})
	fails = runlane.NewTask(failsTask, &runlane.TaskOptions[string]{Queue: runlane.Queue{Name: workQueue}})
)

// installation is a table and a queue, and a program whose clock can be put forward.
type installation struct {
	*core.Runtime

	t      *testing.T
	sqs    *sqs.Client
	table  string
	queue  infra.Queue
	refuse *atomic.Bool // the transport can never accept a wakeup
	ahead  *atomic.Int64
}

func install(t *testing.T) *installation {
	t.Helper()
	i := &installation{t: t, sqs: awstest.SQS(t), refuse: &atomic.Bool{}, ahead: &atomic.Int64{}}
	i.table = awstest.Table(t, awstest.LocalStackDynamoDB(t))
	i.queue = awstest.Queue(t, i.sqs, false)
	i.Runtime = i.open(i.table)
	return i
}

// open opens the program on a table: the installation's, or one that was restored.
func (i *installation) open(table string) *core.Runtime {
	i.t.Helper()
	aws, err := awslane.New(awstest.Config(i.t), awslane.Options{
		Table: table, Queues: map[runlane.QueueName]string{workQueue: i.queue.URL}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		i.t.Fatal(err)
	}
	l, err := lane.New(aws.Storage, &moody{aws.Transport, i.refuse}, &lane.Options{Environment: environment})
	if err != nil {
		i.t.Fatal(err)
	}
	rt, err := core.Open(i.t.Context(), l, &core.Options{
		Handlers: []runlane.Handler{
			greet.Handle(func(context.Context, *runlane.Attempt, string) error { return nil }),
			fails.Handle(func(context.Context, *runlane.Attempt, string) error { return errors.New("mailbox is full") }),
		},
		Schedules: []runlane.Schedule{{ID: "hourly", When: runlane.Every(time.Hour), Call: greet.With("everybody")}},
		Logger:    slog.New(slog.DiscardHandler),
		World:     &core.World{Now: i.now},
	})
	if err != nil {
		i.t.Fatal(err)
	}
	i.t.Cleanup(func() {
		if err := rt.Close(context.Background()); err != nil {
			i.t.Error(err)
		}
	})
	return rt
}

func (i *installation) now() time.Time { return time.Now().Add(time.Duration(i.ahead.Load())) }

// pass lets time pass.
func (i *installation) pass(d time.Duration) { i.ahead.Add(int64(d)) }

// variables are what a deployment's output tells the command line.
func (i *installation) variables() []string {
	return []string{
		"RUNLANE_TABLE=" + i.table, "RUNLANE_QUEUES=" + string(workQueue) + "=" + i.queue.URL, "RUNLANE_ENV=" + string(environment),
		"RUNLANE_LIMITS=" + string(workQueue) + "=0", "USER=ada",
	}
}

func (i *installation) trigger(call runlane.Call, options *runlane.TriggerOptions) runlane.RunID {
	i.t.Helper()
	result, err := i.Trigger(i.t.Context(), call, options)
	if err != nil {
		i.t.Fatal(err)
	}
	return result.Run.ID
}

func (i *installation) tick() *core.TickResult {
	i.t.Helper()
	result, err := i.Tick(i.t.Context(), nil)
	if err != nil {
		i.t.Fatal(err)
	}
	return result
}

// wantWait says what a run waits for.
func (i *installation) wantWait(wait core.Wait, ids ...runlane.RunID) {
	i.t.Helper()
	for _, id := range ids {
		explanation, err := i.Runs().Explain(i.t.Context(), id)
		if err != nil {
			i.t.Fatal(err)
		}
		if explanation.Wait != wait {
			i.t.Errorf("%s waits for %s, not %s", id, explanation.Wait, wait)
		}
	}
}

// work executes what wakeups ask for, and nothing else, until the runs have ended with the status.
func work(t *testing.T, rt *core.Runtime, status runlane.Status, ids ...runlane.RunID) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- rt.Work(ctx, &core.WorkOptions{NoTick: true}) }()
	limit, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, id := range ids {
		run, err := rt.Wait(limit, id)
		if err != nil {
			t.Errorf("%s: %v", id, err)
		} else if run.Status != status {
			t.Errorf("%s is %s, not %s", id, run.Status, status)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// moody is a transport that may refuse everything, for ever.
type moody struct {
	lane.Transport

	refuse *atomic.Bool
}

// Unwrap keeps the abilities of the transport visible.
func (m *moody) Unwrap() lane.Transport { return m.Transport }

// PublishWakeups passes wakeups on unless it refuses.
func (m *moody) PublishWakeups(ctx context.Context, c *lane.PublishCommand) ([]lane.PublishOutcome, error) {
	if !m.refuse.Load() {
		return m.Transport.PublishWakeups(ctx, c)
	}
	outcomes := make([]lane.PublishOutcome, len(c.Attempts))
	for i := range outcomes {
		outcomes[i] = lane.PublishOutcome{
			Type: lane.PublishFailed, Failure: runlane.NewFailure(runlane.ErrTransportPublishFailed, "access denied", nil), Permanent: true,
		}
	}
	return outcomes, nil
}
