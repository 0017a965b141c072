package main

import (
	"context"
	"sync"
)

// channelCapacity is more than any phase inserts before there are workers.
const channelCapacity = 1 << 20

// channelSubjects is the ceiling: no queue that runs in a process can be faster than handing a value to a goroutine.
func channelSubjects(context.Context, *place) ([]*subject, func() error, error) {
	jobs := make(chan job, channelCapacity) // made once: clearing it anew for each session would be what is measured
	s := &subject{
		name: "channel", group: memory, fewest: 20_000,
		setup: "a buffered Go channel and goroutines: no record, no retry, no way to look inside",
		open: func(_ context.Context, handle func(job)) (session, error) {
			for {
				select {
				case <-jobs:
				default:
					return &channelSession{
						jobs:   jobs,
						handle: handle,
						tally:  newTally(),
						stop:   make(chan struct{}),
					}, nil
				}
			}
		},
	}
	return []*subject{s}, nil, nil
}

type channelSession struct {
	*tally
	jobs    chan job
	handle  func(job)
	stop    chan struct{}
	workers sync.WaitGroup
}

func (s *channelSession) insert(ctx context.Context, j job) error {
	select {
	case s.jobs <- j:
		return nil
	default:
	}
	select { // full: wait
	case s.jobs <- j:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *channelSession) insertBatch(ctx context.Context, jobs []job) error {
	for _, j := range jobs {
		if err := s.insert(ctx, j); err != nil {
			return err
		}
	}
	return nil
}

// work starts goroutines that close ends.
func (s *channelSession) work(_ context.Context, workers int) error {
	for range workers {
		s.workers.Go(func() {
			for {
				select {
				case j := <-s.jobs:
					s.handle(j)
					s.add(1)
				case <-s.stop:
					return
				}
			}
		})
	}
	return nil
}

func (s *channelSession) close(context.Context) error {
	close(s.stop)
	s.workers.Wait()
	return nil
}
