package lambdatest_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/infra"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/internal/proof/crash"
	"github.com/runlane/runlane-go/internal/proof/e2e/lambdatest"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/sqstransport"
)

// patience is how long a test waits for what it expects. The longest wait of the product is a minute and a half: for a wakeup that
// its publisher took along when it died.
const patience = 4 * time.Minute

// installation is a table and a queue, with a runtime that triggers and looks.
type installation struct {
	*core.Runtime

	t      *testing.T
	sqs    *sqs.Client
	table  string
	queue  infra.Queue
	name   runlane.QueueName // what the queue is bound to
	ledger string
	db     string // the endpoint of DynamoDB

	mappings lambdatest.Mappings
}

type installOptions struct {
	name       runlane.QueueName // "": default
	streamed   bool
	visibility time.Duration // of the queue; 0: as deployed
}

// install needs no stream and no minutes, unless told so: then DynamoDB Local itself is fast.
func install(t *testing.T, o installOptions) *installation {
	t.Helper()
	i := &installation{
		t: t, sqs: awstest.SQS(t), ledger: filepath.Join(t.TempDir(), "ledger"), name: o.name, db: os.Getenv("RUNLANE_LOCAL_DYNAMODB"),
	}
	i.mappings.Failed = func(err error) { t.Error(err) }
	if i.name == "" {
		i.name = "default"
	}
	client := awstest.LocalStackDynamoDB(t)
	if i.db != "" && !o.streamed {
		client = dynamodb.NewFromConfig(awstest.Config(t), func(d *dynamodb.Options) {
			d.BaseEndpoint, d.DisableValidateResponseChecksum = aws.String(i.db), true
		})
		i.table = awstest.Table(t, client)
	} else {
		i.db = aws.ToString(client.Options().BaseEndpoint)
		i.table = awstest.StreamedTable(t, client)
	}
	i.queue = awstest.Queue(t, i.sqs, false)
	if o.visibility > 0 {
		_, err := i.sqs.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{
			QueueUrl: &i.queue.URL, Attributes: map[string]string{"VisibilityTimeout": strconv.Itoa(int(o.visibility / time.Second))},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	transport, err := sqstransport.New(i.sqs, map[runlane.QueueName]string{i.name: i.queue.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := lane.New(dynamostore.New(client, i.table, nil), transport, &lane.Options{Environment: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	if i.Runtime, err = core.Open(t.Context(), l, &core.Options{Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return i
}

// variables is the environment that the template gives a function, with changes; "" leaves a variable out.
func (i *installation) variables(role string, changes map[string]string) []string {
	d := &lambdatest.Deployment{
		Role: role, Environment: "prod", Table: i.table, DynamoDB: i.db, Queues: map[runlane.QueueName]string{i.name: i.queue.URL},
	}
	all := map[string]string{lambdatest.LedgerVariable: i.ledger}
	maps.Copy(all, changes)
	return d.Variables(all)
}

// deploy makes a function of one of the programs.
func (i *installation) deploy(program, role string, options lambdatest.Options, changes map[string]string) *lambdatest.Function {
	i.t.Helper()
	options.Program, options.Name = filepath.Join(bin, program, "bootstrap"), role
	options.Environment = i.variables(role, changes)
	f := lambdatest.New(options)
	i.t.Cleanup(func() {
		f.Close()
		if i.t.Failed() {
			i.t.Logf("%s of %s wrote:\n%s", role, program, f.Log())
		}
	})
	return f
}

// invoke runs a function with one event.
func invoke(t *testing.T, f *lambdatest.Function, event any) *lambdatest.Answer {
	t.Helper()
	answer, err := f.InvokeJSON(t.Context(), event)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// act triggers a run.
func (i *installation) act(task *runlane.Task[lambdatest.Act], act lambdatest.Act, options *runlane.TriggerOptions) runlane.RunID {
	i.t.Helper()
	result, err := i.Trigger(i.t.Context(), task.With(act), options)
	if err != nil {
		i.t.Fatal(err)
	}
	return result.Run.ID
}

// end waits for a run's end and returns it.
func (i *installation) end(id runlane.RunID) *runlane.Run {
	i.t.Helper()
	ctx, cancel := context.WithTimeout(i.t.Context(), patience)
	defer cancel()
	run, err := i.Wait(ctx, id)
	if err != nil {
		explained, _ := i.Runs().Explain(i.t.Context(), id)
		i.t.Fatalf("%s has not ended: %v: %+v", id, err, explained)
	}
	return run
}

// succeeds waits for the end of runs and wants them well.
func (i *installation) succeeds(ids ...runlane.RunID) {
	i.t.Helper()
	for _, id := range ids {
		if run := i.end(id); run.Status != runlane.StatusSucceeded {
			i.t.Errorf("%s is %s: %+v", id, run.Status, run.Failure)
		}
	}
}

// attempts are the names in the ledger, in order, with their attempts where they are not the first.
func (i *installation) attempts() []string {
	i.t.Helper()
	entries, err := lambdatest.ReadLedger(i.ledger)
	if err != nil {
		i.t.Fatal(err)
	}
	list := []string{}
	for _, e := range entries {
		name := e.Name
		if e.Attempt > 1 {
			name = fmt.Sprint(name, " ", e.Attempt)
		}
		list = append(list, name)
	}
	return list
}

// sound wants every invariant of the storage held.
func (i *installation) sound() {
	i.t.Helper()
	found, err := crash.Violations(i.t.Context(), i.Lane().Storage, "prod")
	if err != nil || len(found) > 0 {
		i.t.Errorf("violations: %+v, %v", found, err)
	}
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(patience); !holds(); <-ticker.C {
		if time.Now().After(deadline) || t.Context().Err() != nil {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
