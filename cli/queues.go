package cli

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/internal/doctor"
	"github.com/runlane/runlane-go/internal/shown"
	"github.com/runlane/runlane-go/lane"
)

func queuesCommand() *command {
	return &command{
		name: "queues", short: "Look at queues, pause and resume them. Add one to a project",
		below: []*command{
			queuesListCommand(), queuesStatsCommand(), pauseCommand("queue"), resumeCommand("queue"), queuesAddCommand(),
		},
	}
}

func queuesListCommand() *command {
	return &command{
		name:  "list",
		short: "List the queues known here, and those that can be reached",
		long: "KNOWN is whether this program has the queue's limit, from its code or RUNLANE_LIMITS; another " +
			"program's LIMIT is the one that its ticks stored, or \"?\". BOUND is whether RUNLANE_QUEUES names the " +
			"queue; \"by default\" its wakeups travel with those of default. ORDERED queues execute the runs of a " +
			"concurrency key in turn. A note follows for each paused queue.",
		examples: []string{"queues list"},
		act: func(*flag.FlagSet) action {
			return func(ctx context.Context, s *session, _ []string) error {
				rt, err := s.rt(ctx)
				if err != nil {
					return err
				}
				states, late := doctor.QueuesInUse(ctx, rt)
				t := &table{header: []string{"QUEUE", "LIMIT", "KNOWN", "BOUND", "ORDERED"}}
				for _, state := range states {
					if s.json {
						if err := s.emit("queue", shown.QueueOf(&state)); err != nil {
							return err
						}
					}
					t.add(string(state.Queue.Name), limitText(&state), yesNo(state.Known), boundText(&state),
						yesNo(state.Ordered))
				}
				if !s.json {
					s.write(t)
					for i := range states {
						s.notePause(states[i].Pause)
					}
				}
				return late
			}
		},
	}
}

func limitText(state *core.QueueState) string {
	switch {
	case !state.Known && !state.Stored:
		return "?"
	default:
		return policyText(&state.Queue)
	}
}

// policyText is the limit of a queue: its concurrency, its rate, or both.
func policyText(q *runlane.Queue) string {
	var limits []string
	if q.Concurrency > 0 {
		limits = append(limits, fmt.Sprint(q.Concurrency))
	}
	if q.Rated() {
		limits = append(limits, q.Rate.String())
	}
	if limits == nil {
		return "none"
	}
	return strings.Join(limits, ", ")
}

func boundText(state *core.QueueState) string {
	if state.Carrier != "" {
		return "by " + string(state.Carrier)
	}
	return yesNo(state.Bound)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func queuesStatsCommand() *command {
	return &command{
		name:  "stats",
		usage: "[QUEUE...]",
		short: "Count what waits and what runs",
		max:   -1,
		long: "WAITING runs are due, since OLDEST; DELAYED ones are not. BACKLOG and TAKEN are the transport's own " +
			"messages. A plus marks a lower bound. For named queues the concurrency keys follow: RUNNING runs hold " +
			"slots, and so do RESERVED ones, which wait. A note follows for each paused queue.",
		examples: []string{"queues stats", "queues stats emails --json"},
		words:    queueNames,
		act: func(*flag.FlagSet) action {
			return func(ctx context.Context, s *session, args []string) error {
				rt, err := s.rt(ctx)
				if err != nil {
					return err
				}
				states, incomplete := doctor.QueuesInUse(ctx, rt)
				named := len(args) > 0
				if !named {
					for _, state := range states {
						args = append(args, string(state.Queue.Name))
					}
				}
				err = s.queueStats(ctx, rt, args, states, named)
				if incomplete != nil && errors.Is(err, runlane.ErrQueueNotFound) {
					return incomplete // so the names cannot be checked
				}
				return cmp.Or(err, incomplete)
			}
		},
	}
}

func (s *session) queueStats(
	ctx context.Context, rt *core.Runtime, names []string, states []core.QueueState, byKey bool,
) error {
	t := &table{
		header: []string{"QUEUE", "LIMIT", "WAITING", "OLDEST", "RUNNING", "DELAYED", "BACKLOG", "TAKEN"},
		spare:  []int{7, 6},
	}
	var pauses []*lane.Pause
	keys := &table{header: []string{"QUEUE", "KEY", "WAITING", "RESERVED", "RUNNING", "DELAYED"}}
	var missing error
	var late error // of a transport that does not answer: stats are shown without its counts
	for _, name := range names {
		stats, err := rt.Queues().Stats(ctx, runlane.QueueName(name))
		if stats == nil {
			return err
		}
		if err != nil && late == nil {
			late = err
		}
		if err := shown.KnownQueue(stats, states); err != nil {
			if missing == nil {
				next := didYouMean(name, queueNames(ctx, s)) + "\"runlane queues list\" shows those in use"
				missing = &withNext{cause: err, next: next}
			}
			continue
		}
		if s.json {
			if err := s.emit("queue.stats", shown.StatsOf(stats)); err != nil {
				return err
			}
		}
		plus := ""
		if stats.AtLeast {
			plus = "+"
		}
		t.add(
			string(stats.Queue.Name),
			limitText(&stats.QueueState),
			fmt.Sprint(stats.Waiting)+plus,
			s.when(stats.OldestWaiting),
			fmt.Sprint(stats.Running)+plus,
			fmt.Sprint(stats.Delayed)+plus,
			unknownBelowZero(stats.Backlog),
			unknownBelowZero(stats.InFlight),
		)
		if stats.KeysAtLeast {
			plus = "+"
		}
		addKeys(keys, stats, plus)
		pauses = append(pauses, stats.Pause)
	}
	if !s.json && len(t.rows) > 0 {
		s.write(t)
	}
	if !s.json && byKey && len(keys.rows) > 0 {
		s.line("")
		s.write(keys)
	}
	for _, pause := range pauses {
		if !s.json {
			s.notePause(pause)
		}
	}
	return cmp.Or(missing, late)
}

func addKeys(t *table, stats *core.QueueStats, plus string) {
	for i := range stats.Keys {
		k := &stats.Keys[i]
		key := quoted(k.Key)
		if k.Key == "" {
			key = "none"
		}
		t.add(string(stats.Queue.Name), key, fmt.Sprint(k.Waiting)+plus, fmt.Sprint(k.Reserved)+plus,
			fmt.Sprint(k.Running)+plus, fmt.Sprint(k.Delayed)+plus)
	}
	if stats.MoreKeys > 0 {
		t.add(string(stats.Queue.Name), fmt.Sprintf("%d%s more", stats.MoreKeys, plus))
	}
}

func unknownBelowZero(n int) string {
	if n < 0 {
		return "?"
	}
	return fmt.Sprint(n)
}

func queueNames(ctx context.Context, s *session) []string {
	rt, err := s.rt(ctx)
	if err != nil {
		return nil // completion shows no errors
	}
	states, _ := doctor.QueuesInUse(ctx, rt)
	var names []string
	for _, state := range states {
		names = append(names, string(state.Queue.Name))
	}
	return names
}
