package awslane_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go/middleware"
	"golang.org/x/sync/semaphore"

	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/internal/proof/awstest"
)

func (c *requestCounter) middleware(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("count", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		c.add("request", 1)
		return next.HandleInitialize(ctx, in)
	}), middleware.Before)
}

// recording keeps the inputs of one run.
type recording struct {
	mu     sync.Mutex
	active bool
	inputs []any
}

func (r *recording) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active = true
}

func (r *recording) middleware(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("record", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		r.mu.Lock()
		if r.active {
			r.inputs = append(r.inputs, in.Parameters)
		}
		r.mu.Unlock()
		return next.HandleInitialize(ctx, in)
	}), middleware.After)
}

// runRequests are those of one simple run.
type runRequests struct {
	id                    string
	create, claim, finish *dynamodb.TransactWriteItemsInput
	send                  *sqs.SendMessageBatchInput
	acknowledge           *dynamodb.UpdateItemInput
	read                  *dynamodb.QueryInput
}

// end stops the recording and sorts what was recorded.
func (r *recording) end(b *testing.B) (requests runRequests) {
	b.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active = false
	var commits []*dynamodb.TransactWriteItemsInput
	for _, in := range r.inputs {
		switch in := in.(type) {
		case *dynamodb.TransactWriteItemsInput:
			commits = append(commits, in)
		case *dynamodb.UpdateItemInput:
			requests.acknowledge = in
		case *dynamodb.QueryInput:
			requests.read = in
		case *sqs.SendMessageBatchInput:
			requests.send = in
		case *sqs.ReceiveMessageInput, *sqs.DeleteMessageBatchInput:
		default:
			b.Fatalf("a run sends a %T", in)
		}
	}
	if len(commits) != 3 || requests.acknowledge == nil || requests.read == nil || requests.send == nil {
		b.Fatalf("a run was recorded with %d commits: %d requests", len(commits), len(r.inputs))
	}
	requests.create, requests.claim, requests.finish = commits[0], commits[1], commits[2]
	body := aws.ToString(requests.send.Entries[0].MessageBody)
	at := strings.Index(body, "run_")
	requests.id = body[at : at+len("run_")+26]
	return requests
}

// bareSide sends a run's requests with other ids.
type bareSide struct {
	db       *dynamodb.Client
	queues   *sqs.Client
	table    string
	queue    string
	template runRequests
	runs     []runRequests
	finished []chan struct{}
	byID     map[string]int

	permits *semaphore.Weighted
	bursts  *semaphore.Weighted
	deletes chan *string
	work    sync.WaitGroup
	failed  func(error)
}

func newBareSide(b *testing.B, template runRequests, concurrency int) *efficiencySide {
	b.Helper()
	sent := &requestCounter{count: map[string]int{}}
	cfg := awslane.Tune(awstest.Config(b))
	s := &bareSide{
		template: template, permits: semaphore.NewWeighted(int64(concurrency)), bursts: semaphore.NewWeighted(3), deletes: make(chan *string, 10),
		db: dynamodb.New(awstest.DynamoDB(b).Options(), func(o *dynamodb.Options) {
			o.HTTPClient, o.APIOptions = cfg.HTTPClient, append(o.APIOptions, sent.middleware)
		}),
		queues: sqs.New(awstest.SQS(b).Options(), func(o *sqs.Options) {
			o.HTTPClient, o.APIOptions = cfg.HTTPClient, append(o.APIOptions, sent.middleware)
		}),
	}
	s.table, s.queue = awstest.Table(b, s.db), awstest.Queue(b, s.queues, false).URL
	ctx, stop := context.WithCancelCause(context.WithoutCancel(b.Context()))
	s.failed = func(err error) { stop(err) }
	var loops sync.WaitGroup
	loops.Go(func() { s.poll(ctx) })
	deleted := make(chan struct{})
	go func() { defer close(deleted); s.remove(context.WithoutCancel(ctx)) }()
	b.Cleanup(func() {
		stop(nil)
		loops.Wait()
		s.work.Wait()
		close(s.deletes)
		<-deleted
		if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
			b.Error(err)
		}
	})
	return &efficiencySide{concurrency: concurrency, sent: sent, prepare: s.prepare, run: func(_ context.Context, index int) error {
		return s.run(ctx, index)
	}}
}

// prepare makes the requests of so many runs.
func (s *bareSide) prepare(runs int) {
	s.runs, s.finished, s.byID = make([]runRequests, runs), make([]chan struct{}, runs), map[string]int{}
	recorded := *s.template.create.TransactItems[0].Put.TableName
	url := *s.template.send.QueueUrl
	for i := range runs {
		id := "run_" + rand.Text() // 26 characters
		other := strings.NewReplacer(s.template.id, id, recorded, s.table, url, s.queue)
		t := &s.template
		r := runRequests{
			id: id, create: substituted(t.create, other), claim: substituted(t.claim, other), finish: substituted(t.finish, other),
			send: substituted(t.send, other), acknowledge: substituted(t.acknowledge, other), read: substituted(t.read, other),
		}
		for _, commit := range []*dynamodb.TransactWriteItemsInput{r.create, r.claim, r.finish} {
			commit.ClientRequestToken = aws.String(rand.Text())
		}
		s.runs[i], s.finished[i], s.byID[id] = r, make(chan struct{}), i
	}
}

// substituted is a copy of a request with other texts.
func substituted[T any](request T, r *strings.Replacer) T {
	return substitutedValue(reflect.ValueOf(request), r).Interface().(T)
}

func substitutedValue(v reflect.Value, r *strings.Replacer) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.String:
		out.SetString(r.Replace(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(substitutedValue(v.Elem(), r))
		}
	case reflect.Interface:
		if !v.IsNil() {
			out.Set(substitutedValue(v.Elem(), r))
		}
	case reflect.Struct:
		out.Set(v)
		for i := range v.NumField() {
			if field := out.Field(i); field.CanSet() {
				field.Set(substitutedValue(v.Field(i), r))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 || v.IsNil() {
			out.Set(v)
			break
		}
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(substitutedValue(v.Index(i), r))
		}
	case reflect.Map:
		if v.IsNil() {
			break
		}
		out.Set(reflect.MakeMap(v.Type()))
		for _, key := range v.MapKeys() {
			out.SetMapIndex(key, substitutedValue(v.MapIndex(key), r))
		}
	default:
		out.Set(v)
	}
	return out
}

func (s *bareSide) run(ctx context.Context, index int) error {
	r := &s.runs[index]
	if _, err := s.db.TransactWriteItems(ctx, r.create); err != nil {
		return err
	}
	if _, err := s.queues.SendMessageBatch(ctx, r.send); err != nil {
		return err
	}
	if _, err := s.db.UpdateItem(ctx, r.acknowledge); err != nil {
		return err
	}
	select {
	case <-s.finished[index]:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Minute):
		return fmt.Errorf("bare run %s does not end", r.id)
	}
}

// poll receives as the transport does: one long poll, and up to three more while they come back full.
func (s *bareSide) poll(ctx context.Context) {
	for s.permits.Acquire(ctx, 1) == nil {
		n := 1
		for n < 10 && s.permits.TryAcquire(1) {
			n++
		}
		if s.receive(ctx, n, 20) == 10 && s.bursts.TryAcquire(1) {
			s.work.Go(func() {
				defer s.bursts.Release(1)
				for ctx.Err() == nil && s.permits.TryAcquire(10) && s.receive(ctx, 10, 0) == 10 {
				}
			})
		}
	}
}

func (s *bareSide) receive(ctx context.Context, n int, wait int32) int {
	out, err := s.queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &s.queue, MaxNumberOfMessages: int32(n), WaitTimeSeconds: wait, VisibilityTimeout: 30, // at most 10
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{
			types.MessageSystemAttributeNameApproximateReceiveCount, types.MessageSystemAttributeNameMessageGroupId,
		},
	})
	if err != nil {
		s.permits.Release(int64(n))
		if ctx.Err() == nil {
			s.failed(err)
		}
		return 0
	}
	s.permits.Release(int64(n - len(out.Messages)))
	for _, m := range out.Messages {
		s.work.Go(func() {
			defer s.permits.Release(1)
			if err := s.deliver(ctx, &m); err != nil && ctx.Err() == nil {
				s.failed(err)
			}
		})
	}
	return len(out.Messages)
}

func (s *bareSide) deliver(ctx context.Context, m *types.Message) error {
	body := aws.ToString(m.Body)
	at := strings.Index(body, "run_")
	index := s.byID[body[at:at+len("run_")+26]]
	r := &s.runs[index]
	if _, err := s.db.Query(ctx, r.read); err != nil {
		return err
	}
	if _, err := s.db.TransactWriteItems(ctx, r.claim); err != nil {
		return err
	}
	if _, err := s.db.TransactWriteItems(ctx, r.finish); err != nil {
		return err
	}
	close(s.finished[index])
	s.deletes <- m.ReceiptHandle
	return nil
}

// remove deletes what was handled, ten at once or what comes within a tenth of a second.
func (s *bareSide) remove(ctx context.Context) {
	var batch []types.DeleteMessageBatchRequestEntry
	var linger <-chan time.Time
	var requests sync.WaitGroup
	defer requests.Wait()
	flush := func() {
		if entries := batch; len(entries) > 0 {
			requests.Go(func() {
				if _, err := s.queues.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &s.queue, Entries: entries}); err != nil {
					s.failed(err)
				}
			})
		}
		batch, linger = nil, nil
	}
	for {
		select {
		case handle, open := <-s.deletes:
			if !open {
				flush()
				return
			}
			batch = append(batch, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(len(batch))), ReceiptHandle: handle})
			if len(batch) == 10 {
				flush()
			} else if linger == nil {
				linger = time.After(100 * time.Millisecond)
			}
		case <-linger:
			flush()
		}
	}
}
