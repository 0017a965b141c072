package main

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/infra"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
	"github.com/runlane/runlane-go/internal/proof/fault/front"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqstransport"
)

const (
	environment = "prod"
	// functionTimeout leaves an attempt its two seconds on a bridge whose clock is 2.5 s ahead; visibility lets a message come again when
	// the lease of a dead process is over, 5 s after its deadline. (Deployed queues wait for six timeouts.)
	functionTimeout = 8 * time.Second
	visibility      = 14 * time.Second
	// realTime is the duration from which on everything is waited for as it is deployed: messages come as often as in a deployment
	// before they are dead, ticks are farther apart, and clocks are not put forward in the end.
	realTime = 10 * time.Minute
	// forward is by how much clocks are put forward else: more than a lost wakeup is waited for at first.
	forward = 15 * time.Minute
	// Ticks are this far apart: in a short form, after its faults, and in real time.
	shortTick, lastTick, longTick = 2 * time.Second, time.Second, 15 * time.Second
	// fewReceipts is how often a message comes in a short form before it is dead: the fifth receipt comes after minutes.
	fewReceipts = 2
)

// memory is where Linux has a file system in memory.
const memory = "/dev/shm"

var quiet = slog.New(slog.DiscardHandler)

// world is one installation: a separate DynamoDB Local, queues on local AWS, and two ways to the table, with and without faults.
type world struct {
	t        *testing.T
	plan     *Plan
	faults   *Faults
	emulator *Emulator
	faulty   *front.Front
	clean    *front.Front
	sqs      *sqs.Client
	queues   map[runlane.QueueName]infra.Queue
	table    string
	ledger   string

	bootstrap string // the functions' program

	fleet       fleet
	suffering   atomic.Bool // faults happen
	tickStopped atomic.Bool
	killing     sync.Mutex // one start of DynamoDB Local at a time

	mu       sync.Mutex
	runs     map[runlane.RunID]trait // that were triggered
	messages map[string]bool         // poison messages, true once they are dead letters
}

// trait is what accounting has to know of a run.
type trait struct{ poison, far bool }

func newWorld(t *testing.T, plan *Plan) *world {
	t.Helper()
	w := &world{
		t: t, plan: plan, faults: NewFaults(plan.Seed), sqs: awstest.SQS(t), ledger: filepath.Join(t.TempDir(), "ledger"),
		queues: map[runlane.QueueName]infra.Queue{}, runs: map[runlane.RunID]trait{}, messages: map[string]bool{},
		emulator: findEmulator(t), bootstrap: buildFunctions(t),
	}
	w.fleet.world, w.fleet.mappings.Failed = w, func(err error) { t.Error(err) }
	if err := w.emulator.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.emulator.Kill()
		if t.Failed() {
			t.Logf("DynamoDB Local wrote:\n%s", w.emulator.Log())
		}
	})
	w.clean = w.front(&front.Options{Lost: -1})
	w.faulty = w.front(&front.Options{Seed: plan.Seed, Lost: LostRate, Refused: RefusedRate})
	w.faulty.Switch(false)
	w.table = awstest.Name(t)
	if err := infra.CreateTable(t.Context(), w.database(w.clean), w.table); err != nil { // it goes with its data
		t.Fatal(err)
	}
	for _, name := range []runlane.QueueName{runlane.DefaultQueue.Name, Narrow.Name} {
		w.queues[name] = awstest.Queue(t, w.sqs, false)
		w.configure(w.queues[name])
	}
	return w
}

// buildFunctions builds this program, which is the functions'.
func buildFunctions(t *testing.T) (bootstrap string) {
	t.Helper()
	bootstrap = filepath.Join(t.TempDir(), "bootstrap")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", "lambda.norpc", "-o", bootstrap, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return bootstrap
}

// findEmulator finds the DynamoDB Local that is killed.
func findEmulator(t *testing.T) *Emulator {
	t.Helper()
	find := exec.CommandContext(t.Context(), "../../../scripts/chaos.sh", "--emulator")
	find.Stderr = t.Output()
	out, err := find.Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(lines) != 2 {
		t.Fatalf("there is no DynamoDB Local to kill: %v: %q", err, out)
	}
	return &Emulator{Java: lines[0], Folder: lines[1], Data: dataFolder(t)}
}

// dataFolder is in memory where that is possible: what outlives a process is all that counts, and a disk takes 15 times as long.
func dataFolder(t *testing.T) string {
	t.Helper()
	if folder, err := os.MkdirTemp(memory, "chaos"); err == nil { // t.TempDir is on a disk
		t.Cleanup(func() { _ = os.RemoveAll(folder) })
		return folder
	}
	return t.TempDir()
}

// front stands before DynamoDB Local, which is somewhere else after each start.
func (w *world) front(options *front.Options) *front.Front {
	w.t.Helper()
	options.Prompt, options.Where = true, w.emulator.Where
	p, err := front.Start("", options)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := p.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return p
}

// configure makes messages come again sooner than in a deployment.
func (w *world) configure(queue infra.Queue) {
	w.t.Helper()
	receipts := infra.MaxReceiveCount
	if w.plan.Duration < realTime {
		receipts = fewReceipts
	}
	_, err := w.sqs.SetQueueAttributes(w.t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &queue.URL, Attributes: map[string]string{
		string(types.QueueAttributeNameVisibilityTimeout): strconv.Itoa(int(visibility / time.Second)),
		string(types.QueueAttributeNameRedrivePolicy): `{"deadLetterTargetArn":"` + queue.DeadLetterARN + `","maxReceiveCount":` +
			strconv.Itoa(receipts) + `}`,
	}})
	if err != nil {
		w.t.Fatal(err)
	}
}

// config is that of the functions.
func (w *world) config() aws.Config { return awslane.Tune(awstest.Config(w.t)) }

func (w *world) database(through *front.Front) *dynamodb.Client {
	return dynamodb.NewFromConfig(w.config(), func(o *dynamodb.Options) {
		o.BaseEndpoint, o.DisableValidateResponseChecksum = aws.String(through.URL()), true
	})
}

// open opens a runtime that triggers and looks, whose clock is ahead.
func (w *world) open(through *front.Front, ahead time.Duration) *core.Runtime {
	w.t.Helper()
	transport, err := sqstransport.New(w.sqs, w.urls(), &sqstransport.Options{Logger: quiet})
	if err != nil {
		w.t.Fatal(err)
	}
	l, err := lane.New(dynamostore.New(w.database(through), w.table, nil), transport, &lane.Options{Environment: environment})
	if err != nil {
		w.t.Fatal(err)
	}
	rt, err := core.Open(w.t.Context(), l, &core.Options{
		Logger: quiet, Queues: []runlane.Queue{Narrow},
		World: &core.World{Now: func() time.Time { return time.Now().Add(ahead) }},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := rt.Close(context.Background()); err != nil {
			w.t.Error(err)
		}
	})
	return rt
}

// variables is the environment that the template gives a function, with changes.
func (w *world) variables(role string, changes map[string]string) []string {
	d := &lambdatest.Deployment{
		Role: role, Environment: environment, Table: w.table, DynamoDB: w.faulty.URL(), Queues: w.urls(),
	}
	all := map[string]string{lambdatest.LedgerVariable: w.ledger}
	maps.Copy(all, changes)
	return d.Variables(all)
}

// urls are those of the queues.
func (w *world) urls() map[runlane.QueueName]string {
	urls := map[runlane.QueueName]string{}
	for name, queue := range w.queues {
		urls[name] = queue.URL
	}
	return urls
}

// tickEvery is the distance of ticks now.
func (w *world) tickEvery() time.Duration {
	switch {
	case !w.suffering.Load() && w.plan.Duration < realTime:
		return lastTick
	case w.plan.Duration < realTime:
		return shortTick
	default:
		return longTick
	}
}

// triggered remembers a run.
func (w *world) triggered(id runlane.RunID, of trait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs[id] = of
}

// poll asks until something holds, or ctx ends.
func poll(ctx context.Context, every time.Duration, holds func() bool) bool {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
