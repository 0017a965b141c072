package lambdatest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/runlane/runlane-go/functions/eventsource"
)

// Read returns the response in an answer, or the failure as an error.
func Read[Response any](answer *Answer) (response Response, err error) {
	if answer.Failure != "" {
		return response, fmt.Errorf("%s: %s", answer.Failure, answer.Payload)
	}
	return response, json.Unmarshal(answer.Payload, &response)
}

// Handler is a function as what invokes it sees it. An invocation outlives its context: Lambda's own deadline ends it.
func Handler[Event, Response any](f *Function) func(context.Context, Event) (Response, error) {
	return func(ctx context.Context, event Event) (response Response, err error) {
		answer, err := f.InvokeJSON(context.WithoutCancel(ctx), event)
		if err != nil {
			return response, err
		}
		return Read[Response](answer)
	}
}

// Mappings are what invokes functions: event source mappings, and the rule that ticks. They run until they are stopped.
type Mappings struct {
	// Failed is told why one ended that nothing stopped. Required.
	Failed func(error)

	mu    sync.Mutex
	stops []func()
}

// Go runs one, until stop is called or all are stopped. stop waits for the invocations under way.
func (m *Mappings) Go(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := run(ctx); err != nil {
			m.Failed(err)
		}
	})
	stop = func() {
		cancel()
		running.Wait()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stops = append(m.stops, stop)
	return stop
}

// Queue invokes a function with what is in a queue.
func (m *Mappings) Queue(
	client eventsource.QueueAPI, url string, options *eventsource.QueueOptions, handler eventsource.QueueHandler,
) (stop func()) {
	return m.Go(func(ctx context.Context) error { return eventsource.Queue(ctx, client, url, options, handler) })
}

// Stream invokes a function with what is in the stream of a table.
func (m *Mappings) Stream(
	tables dynamodb.DescribeTableAPIClient, streams eventsource.StreamAPI, table string,
	options *eventsource.StreamOptions, handler eventsource.StreamHandler,
) (stop func()) {
	return m.Go(func(ctx context.Context) error {
		in := &dynamodb.DescribeTableInput{TableName: &table}
		described, err := tables.DescribeTable(context.WithoutCancel(ctx), in)
		if err != nil {
			return err
		}
		return eventsource.Stream(ctx, streams, aws.ToString(described.Table.LatestStreamArn), options, handler)
	})
}

// Stop stops all at once and waits for them. It may be called again.
func (m *Mappings) Stop() {
	m.mu.Lock()
	stops := m.stops
	m.stops = nil
	m.mu.Unlock()
	var ending sync.WaitGroup
	for _, stop := range stops {
		ending.Go(stop)
	}
	ending.Wait()
}
