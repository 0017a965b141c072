package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"go.uber.org/goleak"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/examples/webhooks"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/lane"
)

// Idle connections belong to the SDK's HTTP client, which lives as long as the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

// patience is how long a test waits: the lease of a killed worker and its wakeup's visibility end within a minute.
const patience = 4 * time.Minute

// site is local AWS with a receiver of webhooks, a runtime that triggers, and the image's program.
type site struct {
	*core.Runtime

	t        *testing.T
	image    image
	program  string
	values   map[string]string // of the environment
	receiver *receiver
}

// receiver answers when it is told to.
type receiver struct {
	arrived chan string   // payloads
	answer  chan struct{} // one for each answer, or closed
	served  atomic.Int64
}

func (r *receiver) ServeHTTP(_ http.ResponseWriter, request *http.Request) {
	payload, _ := io.ReadAll(request.Body)
	r.arrived <- string(payload)
	select {
	case <-r.answer:
		r.served.Add(1)
	case <-request.Context().Done(): // the client has gone
	}
}

func newSite(t *testing.T) *site {
	t.Helper()
	cfg, db, queues := awstest.Config(t), awstest.LocalStackDynamoDB(t), awstest.SQS(t)
	s := &site{t: t, image: readImage(t), receiver: &receiver{arrived: make(chan string, 100), answer: make(chan struct{})}}
	table, queue := awstest.StreamedTable(t, db), awstest.Queue(t, queues, false)
	server := httptest.NewServer(s.receiver)
	t.Cleanup(server.Close)
	s.values = map[string]string{
		"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
		"AWS_ENDPOINT_URL": aws.ToString(queues.Options().BaseEndpoint), "AWS_ENDPOINT_URL_DYNAMODB": aws.ToString(db.Options().BaseEndpoint),
		"RUNLANE_ENV": "prod", "RUNLANE_TABLE": table, "RUNLANE_QUEUES": "webhooks=" + queue.URL,
		webhooks.EndpointsVariable: "shop=" + server.URL, webhooks.SecretVariable: "secret",
	}
	s.program = s.image.program(t)
	l, err := awslane.New(cfg, awslane.Options{
		Environment: "prod", Table: table, Queues: map[runlane.QueueName]string{"webhooks": queue.URL},
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.Runtime, err = core.Open(t.Context(), l, &core.Options{Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// container is a running one.
type container struct {
	*exec.Cmd

	output *output
	ended  chan error
}

type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start runs the program as the image would: its arguments, its user, no separate folder, and exactly the compose file's variables.
func (s *site) start(arguments ...string) *container {
	s.t.Helper()
	if arguments == nil {
		arguments = s.image.arguments
	}
	c := &container{Cmd: exec.Command(s.program, arguments...), output: &output{}, ended: make(chan error, 1)}
	c.Dir, c.Stdout, c.Stderr = "/", c.output, c.output
	c.Env = []string{}
	for name, value := range readService(s.t).Environment {
		if value == "" {
			value = s.values[name]
		}
		if value != "" {
			c.Env = append(c.Env, name+"="+value)
		}
	}
	for name := range s.values {
		if !slices.Contains(c.Env, name+"="+s.values[name]) {
			s.t.Errorf("the service does not pass on %s", name)
		}
	}
	if os.Geteuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	}
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() { c.ended <- c.Wait() }() // ends with the process
	s.t.Cleanup(func() {
		_ = c.Process.Kill()
		if s.t.Failed() {
			s.t.Log(c.output.String())
		}
	})
	return c
}

// stopped waits for the end of a container and wants it orderly.
func (s *site) stopped(c *container) {
	s.t.Helper()
	select {
	case err := <-c.ended:
		if err != nil || !strings.Contains(c.output.String(), `"stopped"`) {
			s.t.Errorf("it ended with %v", err)
		}
	case <-time.After(patience):
		s.t.Fatal("it does not stop")
	}
}

func (s *site) trigger(id string) runlane.RunID {
	s.t.Helper()
	result, err := s.Trigger(s.t.Context(), webhooks.Deliver.With(webhooks.Delivery{
		ID: id, Event: "order", Endpoint: "shop", Payload: webhooks.Payload(`"` + id + `"`),
	}), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return result.Run.ID
}

// arrives waits for a webhook at the receiver.
func (s *site) arrives() string {
	s.t.Helper()
	select {
	case payload := <-s.receiver.arrived:
		return payload
	case <-time.After(patience):
		s.t.Fatal("no webhook arrives")
		return ""
	}
}

func (s *site) succeeded(id runlane.RunID) *runlane.Run {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	run, err := s.Wait(ctx, id)
	if err != nil || run.Status != runlane.StatusSucceeded {
		s.t.Fatalf("run is %+v, %v", run, err)
	}
	return run
}

// sound wants every invariant of the storage held.
func (s *site) sound() {
	s.t.Helper()
	page, err := s.Lane().Storage.Check(s.t.Context(), &lane.PageQuery{Environment: "prod", Limit: runlane.MaxPageLimit})
	if err != nil || len(page.Items) > 0 {
		s.t.Errorf("violations: %+v, %v", page, err)
	}
}

func TestWorker_SIGTERM_LetsAnAttemptFinish(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.start()
	var ids []runlane.RunID
	for _, id := range []string{"a", "b", "c", "d"} {
		ids = append(ids, s.trigger(id))
	}
	for range 3 {
		s.arrives()
		s.receiver.answer <- struct{}{}
	}
	s.arrives() // in the middle of the fourth
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.receiver.answer <- struct{}{}
	s.stopped(c)
	for _, id := range ids {
		if run := s.succeeded(id); run.Counters.Attempts != 1 {
			t.Errorf("%d attempts", run.Counters.Attempts)
		}
	}
	s.sound()
}

func TestWorker_AttemptOutlivesTheGrace_IsReleasedToAnotherWorker(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.start("-grace", "1s", "-no-tick")
	id := s.trigger("a")
	s.arrives()
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.stopped(first)
	close(s.receiver.answer)
	s.start()
	run := s.succeeded(id)
	if run.Counters.Failures != 0 || run.Counters.Attempts != 2 {
		t.Errorf("counters are %+v", run.Counters)
	}
	s.sound()
}

func TestWorker_Killed_AnotherFinishesItsRuns(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.start()
	id := s.trigger("a")
	s.arrives()
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-first.ended; err == nil {
		t.Error("it ended orderly")
	}
	close(s.receiver.answer)
	s.start()
	s.succeeded(id)
	attempts, err := s.Runs().Attempts(t.Context(), id)
	if err != nil || len(attempts) != 2 || attempts[0].Status != runlane.AttemptAbandoned {
		t.Errorf("attempts are %+v, %v", attempts, err)
	}
	s.sound()
}

func TestRun_WhatMakesNoSense_EndsAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		lane      string
		arguments []string
		status    int
		says      string
	}{
		"unknown flag": {"", []string{"-other"}, 2, "-other"},
		"a word":       {"", []string{"webhooks"}, 2, ""},
		"help":         {"", []string{"-help"}, 2, "-grace"},
		"no table":     {"", nil, 1, `"code":"configuration_invalid"`},
		"other lane":   {"redis:runs", nil, 1, "this program knows aws:"},
		"the flag":     {"aws:", []string{"-lane", "sqlite:"}, 1, "has no path"},
	} {
		t.Run(name, func(t *testing.T) { // one after the other: slog's default is the process's
			t.Setenv(lane.Variable, tc.lane)
			t.Setenv(awslane.TableVariable, "")
			t.Setenv(webhooks.SecretVariable, "secret")
			var stderr bytes.Buffer
			if status := run(t.Context(), tc.arguments, &stderr); status != tc.status || !strings.Contains(stderr.String(), tc.says) {
				t.Errorf("status %d: %s", status, &stderr)
			}
		})
	}
}
