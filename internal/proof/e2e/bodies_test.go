//go:build e2e

package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/awslane/s3bodies"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/dynamostore"
	"github.com/runlane/runlane-go/internal/proof/awstest"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/lanetest"
)

// bodiesBucket makes a bucket for the test.
func bodiesBucket(t testing.TB) (*s3.Client, string) {
	t.Helper()
	client := s3.NewFromConfig(awstest.Config(t), func(o *s3.Options) { o.UsePathStyle = true })
	name := strings.ToLower(strings.ReplaceAll(awstest.Name(t), "_", "-"))
	name = "b" + name[max(0, len(name)-60):]
	if _, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name}); err != nil {
		t.Fatal(err)
	}
	return client, name
}

func TestBodies_S3_Conformance(t *testing.T) {
	t.Parallel()
	lanetest.RunBodyStore(t, func(t testing.TB) lane.BodyStore {
		t.Helper()
		return s3bodies.New(bodiesBucket(t))
	})
}

// A payload, a step's result and an output of 100 MB together pass the whole lane on AWS, and cost the table what small
// ones cost.
func TestBodies_HundredMegabytes(t *testing.T) {
	t.Parallel()
	cfg := awstest.Config(t)
	client, name := bodiesBucket(t)
	queue := awstest.Queue(t, awstest.SQS(t), false).URL
	l, err := awslane.New(cfg, awslane.Options{
		Bodies: name, Table: awstest.Table(t, awstest.LocalStackDynamoDB(t)), Queues: map[runlane.QueueName]string{"default": queue},
	})
	if err != nil {
		t.Fatal(err)
	}
	task := runlane.NewTask[string]("large", nil)
	text := strings.Repeat("0123456789", 10<<20)
	wait := runlane.NewSignal[string]("wait")
	handler := task.Handle(func(ctx context.Context, a *runlane.Attempt, payload string) error {
		if _, err := runlane.Step(ctx, a, "half", func(context.Context) (string, error) { return payload[:len(payload)/2], nil }); err != nil {
			return err
		}
		if _, err := wait.Wait(ctx, a, nil); err != nil {
			return err
		}
		return a.SetOutput(payload)
	})
	rt, err := core.Open(t.Context(), l, &core.Options{
		Handlers: []runlane.Handler{handler}, MaxBodyBytes: runlane.MaxBodyBytes, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rt.Close(context.WithoutCancel(t.Context())) }()
	once := func(payload string) (*runlane.Run, dynamostore.Usage) {
		t.Helper()
		store, _ := lane.As[*dynamostore.Store](l.Storage)
		before := store.Stats()
		result, err := rt.Trigger(t.Context(), task.With(payload), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := rt.Signal(t.Context(), result.Run.ID, wait.With(payload[:len(payload)/2]), nil); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		working, stop := context.WithCancel(ctx)
		worked := make(chan error, 1)
		go func() { worked <- rt.Work(working, &core.WorkOptions{NoTick: true, Concurrency: 1}) }()
		run, err := rt.Wait(ctx, result.Run.ID)
		stop()
		if err != nil {
			t.Fatal(err)
		}
		if err := <-worked; err != nil {
			t.Fatal(err)
		}
		return run, store.Stats().Usage.Minus(before.Usage)
	}
	_, small := once("small")
	run, used := once(text)
	want, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	if run.Status != runlane.StatusSucceeded || sha256.Sum256(run.Output) != sha256.Sum256(want) || sha256.Sum256(run.Payload) != sha256.Sum256(want) {
		t.Errorf("%s, %d bytes of payload, %d of output: %+v", run.Status, len(run.Payload), len(run.Output), run.Failure)
	}
	t.Logf("a small run used %+v, this one %+v", small, used)
	if used.WriteUnits != small.WriteUnits {
		t.Errorf("it used %v write units, a small one %v", used.WriteUnits, small.WriteUnits)
	}
	if _, err := rt.Runs().Prune(t.Context(), &core.PruneOptions{OlderThan: 1}); err != nil {
		t.Fatal(err)
	}
	left, err := client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(name)})
	if err != nil || len(left.Contents) > 0 {
		t.Errorf("after the pruning the bucket has %v, %v", left, err)
	}
}
