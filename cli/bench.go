package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

const (
	maxBenchRuns = 10_000
	// benchPoll is the interval at which open runs are read. It does not affect the results, which come from events.
	benchPoll = 100 * time.Millisecond
)

func benchCommand() *command {
	return &command{
		name:  "bench",
		usage: "TASK [JSON|@FILE|-]",
		short: "Measure how long runs of a task take here",
		min:   1,
		max:   2,
		words: taskNames,
		long: "Makes runs with one payload and prints percentiles of the time to trigger, to start and in all. The " +
			"runs are real: workers of this lane execute them, and they stay listed until pruned. With --work this " +
			"process executes them, as a lane in memory needs.",
		examples: []string{
			"bench reports.nightly --runs 20",
			"bench emails.welcome @payload.json --runs 500 --yes --json",
		},
		act: func(flags *flag.FlagSet) action {
			b := bench{}
			flags.IntVar(&b.runs, "runs", 100, "NUMBER of runs, at most 10000; 100 unless given")
			flags.IntVar(
				&b.concurrency,
				"concurrency",
				8,
				"NUMBER of triggers, and with --work of attempts, at once; 8 unless given",
			)
			flags.BoolVar(&b.work, "work", false, "execute the runs here too")
			dryRun := flags.Bool("dry-run", false, "only say what would be done")
			foreign := flags.Bool("foreign", false, "take the task's name without looking it up")
			yes := flags.Bool("yes", false, "do not ask")
			return func(ctx context.Context, s *session, args []string) error {
				switch {
				case b.runs < 1 || b.runs > maxBenchRuns:
					return usagef("", "--runs is %d", b.runs)
				case b.concurrency < 1:
					return usagef("", "--concurrency is %d", b.concurrency)
				}
				payload, err := s.readJSON(ctx, append(args, "")[1], "the payload")
				if err != nil {
					return err
				}
				if b.rt, err = s.rt(ctx); err != nil {
					return err
				}
				b.s, b.options = s, runlane.TriggerOptions{
					Meta: map[string]string{"bench": "bench_" + strings.ToLower(rand.Text()[:16])},
				}
				task := runlane.TaskID(args[0])
				if b.call, err = s.taskBook(b.rt, *foreign, false).call(
					ctx,
					task,
					payload,
					&b.options,
					runlane.TaskKeys{Idempotency: true},
				); err != nil {
					return err
				}
				plan := fmt.Sprintf("%s of %s will be made and executed", plural(b.runs, "run", "runs"), task)
				if *dryRun {
					s.note("%s", plan)
					return nil
				}
				if err := s.confirm(ctx, *yes, plan+": go on?"); err != nil {
					return err
				}
				return b.measure(ctx)
			}
		},
	}
}

type bench struct {
	runs, concurrency int
	work              bool

	s       *session
	rt      *core.Runtime
	call    runlane.Call
	options runlane.TriggerOptions

	mu       sync.Mutex
	triggers []time.Duration
	waiting  []runlane.RunID
	ended    []*runlane.Run
}

// measure triggers runs, waits for their ends and shows the result.
func (b *bench) measure(ctx context.Context) (err error) {
	if b.work {
		working, stop := context.WithCancel(ctx)
		worked := make(chan error, 1)
		go func() { worked <- b.rt.Work(working, &core.WorkOptions{Concurrency: b.concurrency}) }() // ends with stop
		defer func() {
			stop()
			err = errors.Join(err, <-worked)
		}()
	}
	if err = b.each(b.runs, func(n int) error { return b.trigger(ctx, n) }); err == nil {
		err = b.follow(ctx)
	}
	if err != nil {
		if len(b.triggers) == 0 {
			return err
		}
		b.s.note(
			"%s made, %d of them ended; the others go on",
			plural(len(b.triggers), "run was", "runs were"),
			len(b.ended),
		)
		return err
	}
	return b.show()
}

// each calls do for 0 to count-1 with the chosen concurrency. After the first error it starts no more.
func (b *bench) each(count int, do func(n int) error) error {
	numbers, faults := make(chan int), make(chan error, b.concurrency)
	var doing sync.WaitGroup
	for range b.concurrency {
		doing.Go(func() {
			for n := range numbers {
				if err := do(n); err != nil {
					faults <- err
					return
				}
			}
		})
	}
	var fault error
	for n := 0; n < count && fault == nil; n++ {
		select {
		case numbers <- n:
		case fault = <-faults:
		}
	}
	close(numbers)
	doing.Wait()
	close(faults)
	for err := range faults {
		fault = cmp.Or(fault, err)
	}
	return fault
}

func (b *bench) trigger(ctx context.Context, n int) error {
	options := b.options
	if b.call.Task.Keys.Idempotency {
		options.IdempotencyKey = fmt.Sprintf("%s:%d", options.Meta["bench"], n)
	}
	began := b.s.now()
	result, err := b.rt.Trigger(ctx, b.call, &options)
	if err != nil {
		return err
	}
	took := b.s.now().Sub(began)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.triggers, b.waiting = append(b.triggers, took), append(b.waiting, result.Run.ID)
	return nil
}

func (b *bench) follow(ctx context.Context) error {
	ticker := time.NewTicker(benchPoll)
	defer ticker.Stop()
	for {
		if err := b.look(ctx); err != nil || len(b.waiting) == 0 {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// look moves runs that have ended from waiting to ended.
func (b *bench) look(ctx context.Context) error {
	waiting := b.waiting
	b.waiting = nil
	return b.each(len(waiting), func(n int) error {
		run, err := b.rt.Runs().Get(ctx, waiting[n])
		b.mu.Lock()
		defer b.mu.Unlock()
		if err == nil && run.Status.Terminal() {
			b.ended = append(b.ended, run)
		} else {
			b.waiting = append(b.waiting, waiting[n])
		}
		return err
	})
}

type span struct {
	Median float64 `json:"p50Ms"`
	P90    float64 `json:"p90Ms"`
	P99    float64 `json:"p99Ms"`
}

func spanOf(times []time.Duration) span {
	slices.Sort(times)
	at := func(part float64) float64 {
		return float64(times[min(int(part*float64(len(times))), len(times)-1)].Microseconds()) / 1000
	}
	return span{at(0.5), at(0.9), at(0.99)}
}

// show shows the result. If a run did not succeed, the exit code is ExitFailed.
func (b *bench) show() error {
	var starts, wholes []time.Duration
	first, last, ends := b.ended[0].CreatedAt, b.ended[0].FinishedAt, map[runlane.Status]int{}
	for _, run := range b.ended {
		if !run.StartedAt.IsZero() {
			starts = append(starts, max(run.StartedAt.Sub(run.CreatedAt), 0))
		}
		wholes = append(wholes, run.FinishedAt.Sub(run.CreatedAt))
		ends[run.Status]++
		if run.CreatedAt.Before(first) {
			first = run.CreatedAt
		}
		if run.FinishedAt.After(last) {
			last = run.FinishedAt
		}
	}
	shown := struct {
		Task      runlane.TaskID `json:"taskId"`
		Runs      int            `json:"runs"`
		Succeeded int            `json:"succeeded"`
		Failed    int            `json:"failed"`
		Cancelled int            `json:"cancelled"`
		Rate      float64        `json:"runsPerSecond"` // 0: all within one millisecond
		Trigger   span           `json:"trigger"`
		Start     *span          `json:"start,omitempty"`
		Whole     span           `json:"whole"`
	}{
		Task:      b.call.Task.ID,
		Runs:      len(b.ended),
		Succeeded: ends[runlane.StatusSucceeded],
		Failed:    ends[runlane.StatusFailed],
		Cancelled: ends[runlane.StatusCancelled],
		Trigger:   spanOf(b.triggers),
		Whole:     spanOf(wholes),
	}
	if took := last.Sub(first); took > 0 {
		shown.Rate = float64(len(b.ended)) / took.Seconds()
	}
	t := &table{header: []string{"MEASURE", "MEDIAN", "90 %", "99 %"}}
	row := func(name string, m span) {
		t.add(name, fmt.Sprintf("%.1f ms", m.Median), fmt.Sprintf("%.1f ms", m.P90), fmt.Sprintf("%.1f ms", m.P99))
	}
	row("trigger", shown.Trigger)
	if len(starts) > 0 {
		start := spanOf(starts)
		shown.Start = &start
		row("until the start", start)
	}
	row("until the end", shown.Whole)
	if s := b.s; s.json {
		if err := s.emit("bench", &shown); err != nil {
			return err
		}
	} else {
		s.write(t)
		s.line(
			"%s of %s: %d succeeded, %d failed, %d cancelled; %.1f a second",
			plural(shown.Runs, "run", "runs"),
			shown.Task,
			shown.Succeeded,
			shown.Failed,
			shown.Cancelled,
			shown.Rate,
		)
	}
	if shown.Succeeded < shown.Runs {
		return &exitError{code: ExitFailed}
	}
	return nil
}
