package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// metric names a figure.
type metric string

// The metrics.
const (
	insertOne      metric = "insert_one"
	insertParallel metric = "insert_parallel"
	insertBatch    metric = "insert_batch"
	drain          metric = "drain"
	throughput     metric = "end_to_end"
	startDelay     metric = "idle_start"
)

// metrics in the order of the report.
var metrics = []struct {
	metric metric
	unit   string
	// less says that less is better.
	less bool
	// meaning takes the number of goroutines that insert and of jobs in a batch, as the metric needs them.
	meaning string
}{
	{insertOne, "jobs/s", false, "one goroutine inserts one by one, no worker runs"},
	{insertParallel, "jobs/s", false, fmt.Sprintf("%d goroutines insert one by one, no worker runs", inserters)},
	{insertBatch, "jobs/s", false, fmt.Sprintf("one goroutine inserts batches of %d, no worker runs", batchSize)},
	{drain, "jobs/s", false, "workers complete what waits: from the first start to the last completion"},
	{
		throughput,
		"jobs/s",
		false,
		fmt.Sprintf("%d goroutines insert one by one while workers work: until all have completed", inserters),
	},
	{startDelay, "µs", true, "from the call that inserts one job to its start on idle workers"},
}

const (
	inserters = 16
	batchSize = 100
	// mostInserted bounds a phase of inserting, mostWorked one of working.
	mostInserted = 250_000
	mostWorked   = 200_000
	// phaseTime is when a phase has failed.
	phaseTime = time.Minute
	// differentJobs are made beforehand and inserted again and again.
	differentJobs = 4096
)

// bench measures one subject, round after round.
type bench struct {
	subject *subject
	workers int
	window  time.Duration // how long a phase should take
	jobs    []job
	random  *rand.Rand

	drained    int // jobs that the next round drains
	handled    atomic.Int64
	firstStart atomic.Int64 // nanoseconds since began
	began      time.Time
	started    chan struct{} // told of each start while listening
	listening  atomic.Bool
}

func newBench(s *subject, o *options) *bench {
	random := rand.New(rand.NewPCG(o.seed, 1)) // nothing secret
	return &bench{
		subject: s, workers: o.workers, window: o.window, jobs: newJobs(random, differentJobs), random: random,
		drained: s.fewest, began: time.Now(), started: make(chan struct{}, 1),
	}
}

// handle is the job: nothing, but for noting that it began.
func (b *bench) handle(job) {
	if b.handled.Add(1) == 1 {
		b.firstStart.Store(int64(time.Since(b.began)))
	}
	if b.listening.Load() {
		b.started <- struct{}{}
	}
}

// round measures everything once, with so many samples of the start delay.
func (b *bench) round(ctx context.Context, samples int) (map[metric]float64, error) {
	figures := map[metric]float64{}
	if err := b.inSession(ctx, func(ctx context.Context, s session) error {
		return b.insertions(ctx, s, figures)
	}); err != nil {
		return nil, err
	}
	if err := b.inSession(ctx, func(ctx context.Context, s session) error {
		return b.executions(ctx, s, figures, samples)
	}); err != nil {
		return nil, err
	}
	return figures, nil
}

func (b *bench) inSession(ctx context.Context, use func(context.Context, session) error) (err error) {
	limited, cancel := context.WithTimeoutCause(
		ctx,
		phaseTime,
		fmt.Errorf("%s took longer than %s", b.subject.name, phaseTime),
	)
	defer cancel()
	s, err := b.subject.open(limited, b.handle)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(context.WithoutCancel(ctx))) }()
	return use(limited, s)
}

func (b *bench) insertions(ctx context.Context, s session, figures map[metric]float64) error {
	one := func(ctx context.Context, i int) error { return s.insert(ctx, b.jobs[i%len(b.jobs)]) }
	for _, phase := range []struct {
		metric     metric
		goroutines int
	}{{insertOne, 1}, {insertParallel, inserters}} {
		if err := b.insertFor(ctx, figures, phase.metric, phase.goroutines, 1, one); err != nil {
			return err
		}
	}
	batches, ok := s.(batchInserter)
	if !ok {
		return nil
	}
	return b.insertFor(ctx, figures, insertBatch, 1, batchSize, func(ctx context.Context, i int) error {
		begin := i * batchSize % (len(b.jobs) - batchSize)
		return batches.insertBatch(ctx, b.jobs[begin:begin+batchSize])
	})
}

// insertFor inserts for a window, so many jobs with each call. It looks at the clock about every hundredth of the
// window, so that the clock is not what is measured.
func (b *bench) insertFor(
	ctx context.Context,
	figures map[metric]float64,
	m metric,
	goroutines, each int,
	insert func(ctx context.Context, i int) error,
) error {
	var inserting sync.WaitGroup
	totals, faults := make([]int, goroutines), make([]error, goroutines)
	most := mostInserted / goroutines / each
	runtime.GC() // what an earlier phase left is not this one's
	began := time.Now()
	for g := range goroutines {
		inserting.Go(func() {
			calls := 0
			for again := 1; again > 0; again = min(most-calls, callsLeft(calls, time.Since(began), b.window)) {
				for range again {
					if err := insert(ctx, g+calls*goroutines); err != nil {
						faults[g] = err
						return
					}
					calls++
				}
			}
			totals[g] = calls * each
		})
	}
	inserting.Wait()
	took := time.Since(began)
	n := 0
	for _, total := range totals {
		n += total
	}
	figures[m] = rate(n, took)
	return errors.Join(faults...)
}

// callsLeft is how many calls to make before the next look at the clock: a hundredth of the window's, 0 once the window
// is over.
func callsLeft(calls int, passed, window time.Duration) int {
	if passed >= window {
		return 0
	}
	return max(1, int(float64(calls)*float64(window/100)/float64(max(passed, 1))))
}

func (b *bench) executions(ctx context.Context, s session, figures map[metric]float64, samples int) error {
	drained := min(max(b.drained, b.subject.fewest), mostWorked)
	if err := b.fill(ctx, s, drained); err != nil {
		return err
	}
	runtime.GC()
	b.handled.Store(0)
	if err := s.work(ctx, b.workers); err != nil {
		return err
	}
	if err := s.await(ctx, drained); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	took := time.Since(b.began) - time.Duration(b.firstStart.Load())
	figures[drain] = rate(drained, took)
	b.drained = int(figures[drain] * b.window.Seconds())

	// What fills a window can be neither inserted nor completed faster than each by itself.
	finished := int(min(figures[insertParallel], figures[drain]) * b.window.Seconds())
	finished = min(max(finished, b.subject.fewest), mostWorked)
	runtime.GC()
	began := time.Now()
	if err := b.insertExactly(ctx, s, finished); err != nil {
		return err
	}
	if err := s.await(ctx, drained+finished); err != nil {
		return fmt.Errorf("end to end: %w", err)
	}
	figures[throughput] = rate(finished, time.Since(began))
	if err := b.starts(ctx, s, figures, samples); err != nil {
		return err
	}
	if handled := b.handled.Load(); handled != int64(drained+finished+samples) {
		return fmt.Errorf("%d executions of %d jobs", handled, drained+finished+samples)
	}
	return nil
}

// fill inserts what is drained, in the fastest way there is.
func (b *bench) fill(ctx context.Context, s session, n int) error {
	batches, ok := s.(batchInserter)
	if !ok {
		return b.insertExactly(ctx, s, n)
	}
	for n > 0 {
		size := min(n, batchSize)
		if err := batches.insertBatch(ctx, b.jobs[:size]); err != nil {
			return err
		}
		n -= size
	}
	return nil
}

// insertExactly inserts n jobs one by one from many goroutines.
func (b *bench) insertExactly(ctx context.Context, s session, n int) error {
	var inserting sync.WaitGroup
	faults := make([]error, inserters)
	for g := range inserters {
		inserting.Go(func() {
			for i := g; i < n && faults[g] == nil; i += inserters {
				faults[g] = s.insert(ctx, b.jobs[i%len(b.jobs)])
			}
		})
	}
	inserting.Wait()
	return errors.Join(faults...)
}

// starts samples how long a job takes to start on idle workers. It arrives at any time of what an idle worker sleeps.
func (b *bench) starts(ctx context.Context, s session, figures map[metric]float64, samples int) error {
	const settled = 10 * time.Millisecond // enough for all but those that say so
	var delays []float64
	for range samples {
		pause := settled + b.subject.settles
		if b.subject.away > 0 {
			pause += time.Duration(b.random.Int64N(int64(b.subject.away)))
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
		b.listening.Store(true)
		began := time.Now()
		if err := s.insert(ctx, b.jobs[0]); err != nil {
			return err
		}
		select {
		case <-b.started:
		case <-ctx.Done():
			return fmt.Errorf("start: %w", context.Cause(ctx))
		}
		delays = append(delays, float64(time.Since(began))/float64(time.Microsecond))
		b.listening.Store(false)
	}
	if len(delays) > 0 {
		slices.Sort(delays)
		figures[startDelay] = median(delays)
	}
	return nil
}

func rate(n int, took time.Duration) float64 { return float64(n) / max(took.Seconds(), 1e-9) }
