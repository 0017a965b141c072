package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// memlaneName and awsName are Runlane's own subjects.
const (
	memlaneName = "runlane memlane"
	awsName     = "runlane aws"
)

// memlaneSubjects is Runlane's embedded lane.
func memlaneSubjects(context.Context, *place) ([]*subject, func() error, error) {
	s := &subject{
		name: memlaneName, group: memory, fewest: 2_000,
		setup: "memlane.New, core.Options and core.WorkOptions as they come; every run, its history included, is kept",
		open: func(ctx context.Context, handle func(job)) (session, error) {
			return openRunlane(ctx, memlane.New(), "", "", handle, nil)
		},
	}
	return []*subject{s}, nil, nil
}

// runlaneSession is Runlane on any lane.
type runlaneSession struct {
	*tally
	rt     *core.Runtime
	task   *runlane.Task[job]
	stop   context.CancelFunc
	worked chan error
	after  func(context.Context) error // nil: nothing to clean up
}

// openRunlane executes on a lane. The queue and the environment may be "": the default ones.
func openRunlane(
	ctx context.Context, l *lane.Lane, environment runlane.Environment, queue runlane.QueueName, handle func(job),
	after func(context.Context) error,
) (session, error) {
	s := &runlaneSession{tally: newTally(), after: after}
	s.task = runlane.NewTask("peers.noop", &runlane.TaskOptions[job]{Queue: runlane.Queue{Name: queue}})
	rt, err := core.Open(ctx, l, &core.Options{
		Environment: environment, Logger: slog.New(slog.DiscardHandler), Metrics: s,
		Handlers: []runlane.Handler{s.task.Handle(func(_ context.Context, _ *runlane.Attempt, j job) error {
			handle(j)
			return nil
		})},
	})
	if err != nil {
		return nil, err
	}
	s.rt = rt
	return s, nil
}

// Count implements core.Metrics: a run is counted once its success is committed.
func (s *runlaneSession) Count(name core.Metric, n int64, _ core.Labels) {
	if name == core.MetricRunsSucceeded {
		s.add(n)
	}
}

// Observe implements core.Metrics.
func (s *runlaneSession) Observe(core.Metric, time.Duration, core.Labels) {}

func (s *runlaneSession) insert(ctx context.Context, j job) error {
	_, err := s.rt.Trigger(ctx, s.task.With(j), nil)
	return err
}

func (s *runlaneSession) insertBatch(ctx context.Context, jobs []job) error {
	items := make([]core.BatchItem, len(jobs))
	for i, j := range jobs {
		items[i].Call = s.task.With(j)
	}
	results, err := s.rt.TriggerBatch(ctx, items)
	if err != nil {
		return err
	}
	for _, result := range results {
		if result.Err != nil {
			return result.Err
		}
	}
	return nil
}

// work starts a goroutine that close ends.
func (s *runlaneSession) work(ctx context.Context, workers int) error {
	ctx, s.stop = context.WithCancel(ctx)
	s.worked = make(chan error, 1)
	go func() { s.worked <- s.rt.Work(ctx, &core.WorkOptions{Concurrency: workers}) }()
	return nil
}

func (s *runlaneSession) close(ctx context.Context) error {
	var faults []error
	if s.stop != nil {
		s.stop()
		faults = append(faults, <-s.worked)
	}
	faults = append(faults, s.rt.Close(ctx))
	if s.after != nil {
		faults = append(faults, s.after(ctx))
	}
	return errors.Join(faults...)
}
