package awslane_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/awslane"
	"github.com/runlane/runlane-go/core"
)

// idleAWS is the HTTP client below both SDK clients: it counts what is sent and answers like an empty table and empty queues. A long
// poll lasts as long as it asks for, in the time of the bubble.
type idleAWS struct {
	mu    sync.Mutex
	count map[string]int // by "service.Operation", and the queue where there is one
	begun []time.Time    // of the first request of each tick
}

// Do implements aws.HTTPClient.
func (c *idleAWS) Do(r *http.Request) (*http.Response, error) {
	var in struct {
		QueueURL        string `json:"QueueUrl"`
		WaitTimeSeconds int
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	target := r.Header.Get("X-Amz-Target")
	c.note(target, in.QueueURL)
	answer := `{}`
	switch target {
	case "DynamoDB_20120810.DescribeTable":
		answer = `{"Table":{"KeySchema":[` + keys("pk", "sk") + `],"GlobalSecondaryIndexes":[` +
			`{"IndexName":"due","KeySchema":[` + keys("dp", "da") + `]},{"IndexName":"done","KeySchema":[` + keys("fp", "fa") + `]}]}}`
	case "DynamoDB_20120810.Query":
		answer = `{"Count":0,"ScannedCount":0,"Items":[]}`
	case "DynamoDB_20120810.GetItem": // nothing there
	case "DynamoDB_20120810.UpdateItem": // the definition of a task
	case "AmazonSQS.GetQueueAttributes": // when it opens
		answer = `{"Attributes":{"ApproximateNumberOfMessages":"0","ApproximateNumberOfMessagesNotVisible":"0"}}`
	case "AmazonSQS.ReceiveMessage":
		wait := time.NewTimer(time.Duration(in.WaitTimeSeconds) * time.Second)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	default:
		return nil, fmt.Errorf("an idle worker sent %s", target)
	}
	header := http.Header{"Content-Type": {"application/x-amz-json-1.0"}}
	header.Set("X-Amz-Crc32", fmt.Sprint(crc32.ChecksumIEEE([]byte(answer))))
	return &http.Response{
		StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(bytes.NewBufferString(answer)), ContentLength: int64(len(answer)),
	}, nil
}

func keys(hash, sort string) string {
	return fmt.Sprintf(`{"AttributeName":%q,"KeyType":"HASH"},{"AttributeName":%q,"KeyType":"RANGE"}`, hash, sort)
}

func (c *idleAWS) note(target, queue string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, operation, _ := strings.Cut(target, ".")
	name := "DynamoDB " + operation
	if strings.HasPrefix(target, "AmazonSQS") {
		name = "SQS " + operation + " " + queue[strings.LastIndex(queue, "/")+1:]
	} else if n := len(c.begun); n == 0 || time.Since(c.begun[n-1]) > time.Second {
		c.begun = append(c.begun, time.Now())
	}
	c.count[name]++
}

// taken are the counts since it was asked last.
func (c *idleAWS) taken() (count map[string]int, ticks int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	count, ticks = maps.Clone(c.count), len(c.begun)
	clear(c.count)
	c.begun = nil
	return count, ticks
}

// idleWorker opens a runtime with a handler for each queue on a lane over the client, and works for so long.
func idleWorker(t *testing.T, client *idleAWS, options *core.WorkOptions, minutes int, queues ...runlane.QueueName) (map[string]int, int) {
	t.Helper()
	bindings := map[runlane.QueueName]string{}
	var handlers []runlane.Handler
	for _, name := range queues {
		bindings[name] = url + string(name)
		task := runlane.NewTask(runlane.TaskID("idle-"+name), &runlane.TaskOptions[struct{}]{Queue: runlane.Queue{Name: name, Concurrency: 5}})
		handlers = append(handlers, task.Handle(func(context.Context, *runlane.Attempt, struct{}) error { return errors.New("there is no run") }))
	}
	l, err := awslane.New(aws.Config{
		Region: "eu-west-1", HTTPClient: client, Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}, awslane.Options{Table: "runs", Queues: bindings, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var failures bytes.Buffer
	rt, err := core.Open(t.Context(), l, &core.Options{
		Handlers: handlers, Logger: slog.New(slog.NewTextHandler(&failures, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		t.Fatal(err)
	}
	client.taken()
	ctx, stop := context.WithTimeout(t.Context(), time.Duration(minutes)*time.Minute)
	defer stop()
	if err := errors.Join(rt.Work(ctx, options), rt.Close(context.WithoutCancel(ctx))); err != nil {
		t.Fatal(err)
	}
	if failures.Len() > 0 {
		t.Errorf("something failed: %s", failures.String())
	}
	return client.taken()
}

// Every request that leaves the process is counted, of the SDK's own retries too, below the clients of SQS and DynamoDB. With fewer
// queues than handlers each queue is asked by long polls, with more by short ones: never more than 4 times a minute and queue.
func TestIdle_AWorkerAsksAQueueFourTimesAMinuteAtMost(t *testing.T) {
	t.Parallel()
	const minutes = 10
	for name, row := range map[string]struct {
		concurrency int
		queues      []runlane.QueueName
	}{
		"one queue":                  {0, []runlane.QueueName{"mail"}},
		"some queues":                {8, []runlane.QueueName{"mail", "audio", "orders.fifo"}},
		"more queues than handlers":  {2, []runlane.QueueName{"mail", "audio", "orders.fifo", "video"}},
		"one handler for each queue": {3, []runlane.QueueName{"mail", "audio", "video"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := &idleAWS{count: map[string]int{}}
				options := &core.WorkOptions{NoTick: true, Concurrency: row.concurrency}
				count, _ := idleWorker(t, client, options, minutes, row.queues...)
				for _, queue := range row.queues {
					receive := "SQS ReceiveMessage " + string(queue)
					if n := count[receive]; n > 4*minutes || n < minutes {
						t.Errorf("%s was asked %d times in %d minutes", queue, n, minutes)
					}
					delete(count, receive)
				}
				if n := count["DynamoDB Query"]; n != 1 {
					t.Errorf("the catalog was asked %d times for tasks without a handler, want once", n)
				}
				delete(count, "DynamoDB Query")
				if len(count) > 0 {
					t.Errorf("a worker that does not tick sent other requests: %v", count)
				}
			})
		})
	}
}

// The ticks of an idle worker are all it sends to DynamoDB, one a minute, and each the same number of reads: no write, and nothing
// to the queues. The first one also reads the catalog of tasks, and writes the one task that is not there.
func TestIdle_ATickReadsAFixedNumberOfTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const minutes = 10
		client := &idleAWS{count: map[string]int{}}
		count, ticks := idleWorker(t, client, nil, minutes, "mail")
		if n := count["SQS ReceiveMessage mail"]; n > 4*minutes {
			t.Errorf("the queue was asked %d times in %d minutes", n, minutes)
		}
		delete(count, "SQS ReceiveMessage mail")
		if n := count["DynamoDB UpdateItem"]; n != 1 {
			t.Errorf("one task was stored %d times", n)
		}
		delete(count, "DynamoDB UpdateItem")
		// Of the catalog, to store the task and for tasks without a handler; and of the eight shards, by the first tick, for flows.
		queries := count["DynamoDB Query"] - 2 - 8
		if ticks < minutes-1 || ticks > minutes+3 || queries%ticks != 0 || count["DynamoDB GetItem"] > 3*ticks {
			t.Errorf("%d ticks sent %v", ticks, count)
		}
		t.Logf("%d ticks sent %v: %d queries each", ticks, count, queries/max(ticks, 1))
		delete(count, "DynamoDB Query")
		delete(count, "DynamoDB GetItem")
		if len(count) > 0 {
			t.Errorf("an idle tick sent other requests: %v", count)
		}
	})
}
