// Command limits shows what steers a queue, as bars over time: a rate, fair turns between keys, a pause, and priorities.
// It needs about 15 seconds and no network. It fails if one of them does not hold.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/memlane"
)

const (
	length  = 14 * time.Second
	column  = 500 * time.Millisecond
	work    = 100 * time.Millisecond // of a run in a queue with few slots
	perSec  = 10
	burst   = 5
	pauseAt = 4 * time.Second
	pauseTo = 9 * time.Second
)

var (
	rated   = runlane.Queue{Name: "rated", Rate: runlane.PerSecond(perSec), Burst: burst}
	shared  = runlane.Queue{Name: "shared", Concurrency: 2} // for each customer
	imports = runlane.Queue{Name: "imports"}
	ranked  = runlane.Queue{Name: "ranked", Concurrency: 1}
)

// start is when a run of a series began.
type start struct {
	series string
	at     time.Duration
}

type demo struct {
	rt     *core.Runtime
	began  time.Time
	mu     sync.Mutex
	starts []start
}

var (
	rateTask   = runlane.NewTask("rated", &runlane.TaskOptions[string]{Queue: rated})
	sharedTask = runlane.NewTask("shared", &runlane.TaskOptions[string]{Queue: shared})
	importTask = runlane.NewTask("imports", &runlane.TaskOptions[string]{Queue: imports})
	rankedTask = runlane.NewTask("ranked", &runlane.TaskOptions[string]{Queue: ranked})
)

// handle notes the start of each run.
func (d *demo) handle(task *runlane.Task[string], lasts time.Duration) runlane.Handler {
	return task.Handle(
		func(ctx context.Context, _ *runlane.Attempt, series string) error {
			d.mu.Lock()
			d.starts = append(d.starts, start{series, time.Since(d.began)})
			d.mu.Unlock()
			select {
			case <-time.After(lasts):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
}

func (d *demo) trigger(
	ctx context.Context, task *runlane.Task[string], series string, options *runlane.TriggerOptions,
) error {
	_, err := d.rt.Trigger(ctx, task.With(series), options)
	return err
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "demo-limits:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	d := &demo{began: time.Now()}
	rt, err := core.Open(ctx, memlane.New(), &core.Options{
		Logger: slog.New(slog.DiscardHandler),
		Handlers: []runlane.Handler{
			d.handle(rateTask, 0), d.handle(sharedTask, work), d.handle(importTask, 0), d.handle(rankedTask, work),
		},
	})
	if err != nil {
		return err
	}
	d.rt = rt
	ctx, stop := context.WithTimeout(ctx, length)
	defer stop()
	var group errgroup.Group
	group.Go(func() error { return rt.Work(ctx, &core.WorkOptions{Concurrency: 50}) })
	group.Go(func() error { return d.fill(ctx) })
	err = group.Wait()
	if closed := rt.Close(context.WithoutCancel(ctx)); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	d.draw(out)
	return d.judge(out)
}

// fill makes the runs, and pauses and resumes a queue.
func (d *demo) fill(ctx context.Context) error {
	for range 200 {
		if err := d.trigger(ctx, rateTask, "rate", nil); err != nil {
			return err
		}
		if err := d.trigger(ctx, sharedTask, "large", &runlane.TriggerOptions{ConcurrencyKey: "large"}); err != nil {
			return err
		}
	}
	for range 40 {
		if err := d.trigger(ctx, rankedTask, "low", nil); err != nil {
			return err
		}
	}
	every := time.NewTicker(column / 2)
	defer every.Stop()
	paused, resumed, late := false, false, false
	for {
		select {
		case <-every.C:
		case <-ctx.Done():
			return nil
		}
		now := time.Since(d.began)
		if err := d.trigger(ctx, importTask, "import", nil); err != nil && ctx.Err() == nil {
			return err
		}
		var err error
		switch {
		case !paused && now >= pauseAt:
			paused = true
			_, err = d.rt.Queues().Pause(ctx, imports.Name, &core.PauseOptions{ChangeOptions: core.ChangeOptions{Reason: "demo"}})
		case !resumed && now >= pauseTo:
			resumed = true
			_, err = d.rt.Queues().Resume(ctx, imports.Name, nil)
		case !late && now >= 2*time.Second:
			late = true
			for range 3 {
				err = d.trigger(ctx, sharedTask, "small", &runlane.TriggerOptions{ConcurrencyKey: "small"})
			}
			for range 20 {
				err = d.trigger(ctx, rankedTask, "high", &runlane.TriggerOptions{Priority: 8})
			}
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
}

func (d *demo) of(series string) (at []time.Duration) {
	for _, s := range d.starts {
		if s.series == series {
			at = append(at, s.at)
		}
	}
	slices.Sort(at)
	return at
}

var shown = []struct{ series, about string }{
	{"rate", fmt.Sprintf("a rate of %d a second, burst %d; 200 runs wait", perSec, burst)},
	{"large", "2 slots each key: 200 runs of one key"},
	{"small", "3 runs of another key, after 2 s"},
	{"import", fmt.Sprintf("4 a second, paused from %s to %s", pauseAt, pauseTo)},
	{"low", "1 slot: 40 runs of priority 0"},
	{"high", "20 runs of priority 8, after 2 s"},
}

// draw prints the starts of each series: a column for half a second, its height the number of starts.
func (d *demo) draw(out io.Writer) {
	levels := []rune(" ▁▂▃▄▅▆▇█")
	for _, s := range shown {
		counts, most := make([]int, length/column+1), 1
		for _, at := range d.of(s.series) {
			i := min(int(at/column), len(counts)-1)
			counts[i]++
			most = max(most, counts[i])
		}
		var bars strings.Builder
		for _, n := range counts {
			level := n * (len(levels) - 1) / most
			if n > 0 {
				level = max(level, 1)
			}
			bars.WriteRune(levels[level])
		}
		fmt.Fprintf(out, "%-7s %s  at most %2d in %s: %s\n", s.series, bars.String(), most, column, s.about)
	}
	fmt.Fprintf(out, "%-7s 0%*s\n\n", "", int(length/column), length)
}

// judge says whether each held.
func (d *demo) judge(out io.Writer) error {
	broken := 0
	say := func(held bool, format string, args ...any) {
		word := "held  "
		if !held {
			word = "BROKEN"
			broken++
		}
		fmt.Fprintf(out, "%s %s\n", word, fmt.Sprintf(format, args...))
	}
	rate := d.of("rate")
	most := 0
	for i, from := range rate {
		n := 0
		for _, at := range rate[i:] {
			if at <= from+time.Second {
				n++
			}
		}
		most = max(most, n)
	}
	// A start is noted a little after it was counted.
	say(most <= perSec+burst+2 && len(rate) >= perSec*int(length/time.Second)*9/10,
		"rate: %d starts, at most %d in any second", len(rate), most)
	small, large := d.of("small"), d.of("large")
	say(len(small) == 3 && small[2] < 4*time.Second && large[len(large)-1] > 6*time.Second,
		"keys: the 3 runs of the small key started within %s of their trigger", (small[len(small)-1] - 2*time.Second).Round(column/5))
	during := 0
	imports := d.of("import")
	for _, at := range imports {
		if at > pauseAt+column && at < pauseTo-column/2 {
			during++
		}
	}
	say(during == 0 && len(imports) >= int(4*(length-time.Second)/time.Second),
		"pause: %d starts during the pause, %d in all", during, len(imports))
	high, low := d.of("high"), d.of("low")
	between := 0
	for _, at := range low {
		if at > high[0] && at < high[len(high)-1] {
			between++
		}
	}
	say(len(high) == 20 && between <= 1, "priority: %d runs of priority 0 started among the 20 of priority 8", between)
	if broken > 0 {
		return fmt.Errorf("%d of 4 did not hold", broken)
	}
	return nil
}
