package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/taskbook"
)

// workLeft describes what dev or worker left behind. Lost means that waiting runs end with the process.
type workLeft struct {
	Finished   int  `json:"finished"`
	HandedBack int  `json:"handedBack"`
	Waiting    int  `json:"waiting"`
	AtLeast    bool `json:"atLeast,omitempty"`
	Leased     int  `json:"leased,omitempty"` // of the waiting runs
	Lost       bool `json:"lost"`

	unread bool // the waiting runs could not be counted
}

// attempts maps the runs of attempts in this process to the end of their lease. An attempt without a lease ends without
// a commit.
type attempts map[runlane.RunID]time.Time

func (a attempts) count(now time.Time) (n int) {
	for _, lease := range a {
		if now.Before(lease) {
			n++
		}
	}
	return n
}

// work executes runs until the context ends, the drain is done, or show fails; show may be nil. After an interrupt it
// reports at once what it waits for.
func (s *session) work(
	ctx context.Context,
	rt *core.Runtime,
	seen *commits,
	options *core.WorkOptions,
	show func(*runlane.EventRecord, runlane.TaskID) error,
) (*workLeft, error) {
	working, stop := context.WithCancel(ctx)
	defer stop()
	worked := make(chan error, 1)
	go func() { worked <- rt.Work(working, options) }() // ends at most a few seconds after the grace
	left, running := &workLeft{}, attempts{}
	interrupted := working.Done()
	var fault error
	see := func(c commit) {
		for i := range c.events {
			left.see(&c, &c.events[i], running, interrupted == nil)
			if fault != nil || show == nil {
				continue
			}
			if fault = show(&c.events[i], c.task); fault != nil {
				stop()
			}
		}
	}
	for {
		select {
		case c := <-seen.all:
			see(c)
		case <-interrupted:
			interrupted = nil
			for range len(seen.all) { // commits before the interrupt
				see(<-seen.all)
			}
			if n := running.count(s.now()); n > 0 {
				s.note(
					"stopping: %s in progress may take %s; a second interrupt ends them",
					plural(n, "attempt", "attempts"),
					graceOf(options),
				)
			}
		case err := <-worked:
			for len(seen.all) > 0 {
				see(<-seen.all)
			}
			if n := seen.dropped.Load(); n > 0 && show != nil {
				s.note(
					"%s not shown: there were too many at once",
					plural(int(n), "transition was", "transitions were"),
				)
			}
			if fault == nil {
				fault = err
			}
			return left, fault
		}
	}
}

func graceOf(options *core.WorkOptions) time.Duration {
	if options.Grace == 0 {
		return runlane.DefaultGrace
	}
	return max(options.Grace, 0)
}

// see records the attempts in progress and, while the process stops, how they end.
func (left *workLeft) see(c *commit, record *runlane.EventRecord, running attempts, stopping bool) {
	switch record.Body.(type) {
	case *runlane.RunStarted:
		running[record.RunID] = c.lease
		return
	case *runlane.RunSucceeded, *runlane.RunFailed, *runlane.RunCancelled, *runlane.RunRetryScheduled:
		if _, here := running[record.RunID]; stopping && here {
			left.Finished++
		}
	case *runlane.RunReleased:
		if _, here := running[record.RunID]; stopping && here {
			left.HandedBack++
		}
	default:
		if _, here := running[record.RunID]; here && !c.lease.IsZero() {
			running[record.RunID] = c.lease // the lease was extended
		}
		return
	}
	delete(running, record.RunID)
}

// count counts the runs left in these queues (nil: all), up to a limit.
func (left *workLeft) count(ctx context.Context, rt *core.Runtime, queues []runlane.QueueName) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	left.Lost = rt.Lane().Storage.Capabilities().ProcessLocalState
	var active statuses
	_ = active.Set("active") // "active" is valid
	options := &core.ListOptions{RunFilter: core.RunFilter{Statuses: active}, Limit: runlane.MaxPageLimit}
	for range taskbook.PrefixRuns / runlane.MaxPageLimit {
		page, err := rt.Runs().List(ctx, options)
		if err != nil {
			left.unread = true
			break
		}
		for i := range page.Items {
			if queues == nil || slices.Contains(queues, page.Items[i].Queue) {
				left.Waiting++
				if page.Items[i].Status.Owned() {
					left.Leased++
				}
			}
		}
		if options.After = page.Next; options.After == "" {
			break
		}
	}
	left.AtLeast = options.After != ""
}

func (s *session) sayLeft(left *workLeft) {
	if left.Finished+left.HandedBack > 0 {
		s.note(
			"while it stopped: %s finished, %d handed back",
			plural(left.Finished, "attempt", "attempts"),
			left.HandedBack,
		)
	}
	waiting := plural(left.Waiting, "run", "runs")
	if left.AtLeast {
		waiting = "at least " + waiting
	}
	switch {
	case left.unread:
		s.note("stopped; the runs that wait could not be counted")
	case left.Waiting == 0 && !left.AtLeast:
		s.note("stopped; no run was waiting")
	case left.Lost:
		s.note("stopped; what waited in memory is gone: %s", waiting)
	default:
		leased := ""
		if left.Leased > 0 {
			leased = fmt.Sprintf(" (%d with the lease of a worker that executes or died)", left.Leased)
		}
		s.note("stopped; %s left for the next worker%s", waiting, leased)
	}
}
