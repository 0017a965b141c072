//go:build e2e

package main

import (
	"context"
	"path/filepath"
	"testing"
)

// TestTryout does what a new user does, from an empty folder: makes a project with runlane init, gives it a task in a queue of the
// task's name, bounds the queue, turns an alarm on, deploys to local AWS, triggers, changes the handler and deploys again; then adds SQS
// queues, standard and FIFO, and functions by command, and moves a queue from one function to another. The log has the seconds of each
// step, and the files that had to be edited by hand: no more than it may take.
func TestTryout(t *testing.T) {
	source, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	place := t.TempDir()
	u := &user{root: source, place: place, project: filepath.Join(place, "shop")}
	t.Cleanup(func() {
		if err := u.leave(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	for _, s := range steps {
		if !t.Run(s.name, func(t *testing.T) { u.take(t, s) }) {
			break
		}
	}
}

func (u *user) take(t *testing.T, s step) {
	t.Helper()
	before, err := u.sources()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.do(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	after, err := u.sources()
	if err != nil {
		t.Fatal(err)
	}
	edited := differences(before, after)
	t.Logf("%d files: %v", len(edited), edited)
	if s.by == byHand && len(edited) > s.most {
		t.Errorf("%d files are edited, and at most %d should be", len(edited), s.most)
	}
}

// step is what a user does next.
type step struct {
	name string
	by   hands
	most int // files that it may take to edit by hand
	do   func(context.Context, *user) error
}

// hands are whose edits a step makes.
type hands int

const (
	byHand hands = iota
	command
)

const topic = "arn:aws:sns:us-east-1:000000000000:alarms"

var steps = []step{
	{"build runlane, in place of go install", command, 0, install},
	{"runlane init shop", command, 0, initialize},
	{"a task of one's own, with a test", byHand, 3, addTask},
	{"a queue of the task's name", byHand, 1, addQueue},
	{"the queue is bounded", byHand, 1, boundQueue},
	{"go test ./...", byHand, 0, runTests},
	{"an alarm notifies a topic", byHand, 1, addAlarm},
	{"make deploy", byHand, 0, deployShop},
	{"triggered and finished", byHand, 0, firstRun},
	{"the handler changes", byHand, 2, changeHandler},
	{"make deploy, again", byHand, 0, deployShop},
	{"triggered and finished, as changed", byHand, 0, secondRun},
	{"runlane queues add reports --own", command, 0, addOwnQueue},
	{"runlane queues add ledger --own --fifo", command, 0, addFIFOQueue},
	{"runlane functions add slow --queues reports,ledger", command, 0, addFunction},
	{"a task in each of them", byHand, 2, addReport},
	{"make deploy, for the third time", byHand, 0, deployShop},
	{"triggered and finished, by the function slow", byHand, 0, thirdRun},
	{"runlane functions add books --queues ledger", command, 0, moveQueue},
	{"make deploy, for the fourth time", byHand, 0, deployShop},
	{"triggered and finished, by slow and by books", byHand, 0, fourthRun},
}

func install(ctx context.Context, u *user) error {
	// A separate module, with a go.work, which a user's `go install` of a version does not need.
	module := filepath.Join(u.root, "cmd", "runlane")
	_, err := u.call(ctx, "env", "GOWORK=", "GOFLAGS=-mod=readonly", "go", "build", "-C", module,
		"-o", filepath.Join(u.place, "runlane"), ".")
	return err
}

func initialize(ctx context.Context, u *user) error {
	_, err := u.runlane(ctx, "init", "shop")
	return err
}

const ordersSource = `package tasks

import (
	"context"
	"errors"
	"time"

	"github.com/runlane/runlane-go"
)

// Order is the payload of Confirm.
type Order struct {
	ID string ` + "`json:\"id\"`" + `
}

// Confirm writes to the customer.
var Confirm = runlane.NewTask("orders.confirm", &runlane.TaskOptions[Order]{
	Timeout: 10 * time.Second,
})

func confirm(_ context.Context, a *runlane.Attempt, o Order) error {
	if o.ID == "" {
		return runlane.Permanent(errors.New("the order has no id"))
	}
	return a.SetOutput(map[string]string{"confirmed": o.ID})
}
`

const ordersTest = `package tasks

import (
	"testing"

	"github.com/runlane/runlane-go/runlanetest"
)

func TestConfirm_SaysWhatItConfirmed(t *testing.T) {
	t.Parallel()
	run := runlanetest.Run(t, Confirm.Handle(confirm), Confirm.With(Order{ID: "o-1"}))
	runlanetest.RequireTransitions(t, run, "triggered", "attempt 1 started", "attempt 1 succeeded")
}
`

func addTask(_ context.Context, u *user) error {
	if err := u.write("tasks/orders.go", ordersSource); err != nil {
		return err
	}
	if err := u.write("tasks/orders_test.go", ordersTest); err != nil {
		return err
	}
	return u.edit("tasks/tasks.go", "Greet.Handle(greet),", "Greet.Handle(greet), Confirm.Handle(confirm),")
}

func addQueue(_ context.Context, u *user) error {
	const timeout, queue = "	Timeout: 10 * time.Second,\n", "	Queue:   runlane.Queue{Name: \"orders\"},\n"
	return u.edit("tasks/orders.go", timeout, timeout+queue)
}

func boundQueue(_ context.Context, u *user) error {
	return u.edit("tasks/orders.go", `runlane.Queue{Name: "orders"}`, `runlane.Queue{Name: "orders", Concurrency: 2}`)
}

func runTests(ctx context.Context, u *user) error {
	_, err := u.call(ctx, "go", "test", "./...")
	return err
}

func addAlarm(_ context.Context, u *user) error {
	return u.edit(
		"samconfig.toml",
		"# parameter_overrides = \"BridgeMemory=512 BridgeSecrets=arn:aws:ssm:eu-west-1:123456789012:parameter/shop/RUNLANE_TOKEN_KEYS\"",
		"parameter_overrides = \"AlarmTopic="+topic+"\"",
	)
}

func deployShop(ctx context.Context, u *user) error {
	if err := u.deploy(ctx); err != nil {
		return err
	}
	return u.alarmed(ctx, topic)
}

func firstRun(ctx context.Context, u *user) error {
	return u.finished(ctx, "orders.confirm", `{"id":"o-1"}`, `{"confirmed":"o-1"}`)
}

func changeHandler(_ context.Context, u *user) error {
	return u.edit("tasks/orders.go", `"confirmed": o.ID`, `"confirmed": "order " + o.ID`)
}

func secondRun(ctx context.Context, u *user) error {
	return u.finished(ctx, "orders.confirm", `{"id":"o-2"}`, `{"confirmed":"order o-2"}`)
}

func addOwnQueue(ctx context.Context, u *user) error {
	_, err := u.runlane(ctx, "queues", "add", "reports", "--own", "--yes")
	return err
}

func addFIFOQueue(ctx context.Context, u *user) error {
	_, err := u.runlane(ctx, "queues", "add", "ledger", "--own", "--fifo", "--yes")
	return err
}

func addFunction(ctx context.Context, u *user) error {
	_, err := u.runlane(
		ctx, "functions", "add", "slow", "--queues", "reports,ledger", "--timeout", "300", "--memory", "512", "--yes",
	)
	return err
}

func moveQueue(ctx context.Context, u *user) error {
	_, err := u.runlane(
		ctx, "functions", "add", "books", "--queues", "ledger", "--timeout", "300", "--memory", "1024", "--yes",
	)
	return err
}

// The bridge has a minute, so only the functions that were added can execute them. Their memory says which did.
const reports = `package tasks

import (
	"context"
	"os"
	"time"

	"github.com/runlane/runlane-go"
)

// Month is the payload of Report.
type Month struct {
	Of string ` + "`json:\"of\"`" + `
}

// Report takes minutes.
var Report = runlane.NewTask("reports.monthly", &runlane.TaskOptions[Month]{
	Timeout: 4 * time.Minute,
	Queue:   Reports,
})

// Close closes a month of the ledger.
var Close = runlane.NewTask("ledger.close", &runlane.TaskOptions[Month]{
	Timeout: 4 * time.Minute,
	Queue:   Ledger,
})

func report(_ context.Context, a *runlane.Attempt, _ Month) error {
	return a.SetOutput(map[string]string{"memory": os.Getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE")})
}
`

func addReport(_ context.Context, u *user) error {
	if err := u.write("tasks/reports.go", reports); err != nil {
		return err
	}
	const confirm, both = "Confirm.Handle(confirm)", ", Report.Handle(report), Close.Handle(report)"
	return u.edit("tasks/tasks.go", confirm+",", confirm+both+",")
}

func thirdRun(ctx context.Context, u *user) error {
	return u.executed(ctx, "512", "512")
}

func fourthRun(ctx context.Context, u *user) error {
	return u.executed(ctx, "512", "1024")
}

// executed wants a run of each added queue to have succeeded in a function with so much memory.
func (u *user) executed(ctx context.Context, report, ledger string) error {
	if err := u.finished(ctx, "reports.monthly", `{"of":"2026-11"}`, `{"memory":"`+report+`"}`); err != nil {
		return err
	}
	return u.finished(ctx, "ledger.close", `{"of":"2026-11"}`, `{"memory":"`+ledger+`"}`)
}
