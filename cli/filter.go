package cli

import (
	"context"
	"flag"
	"slices"
	"strings"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
)

type filter struct {
	queue, schedule, source, task string
	statuses                      statuses
	waiting                       waitingKind
	failure                       string
	since, until                  moment
}

func (f *filter) define(set *flag.FlagSet) {
	set.Var(&f.statuses, "status", "STATUSES with commas between; active and finished stand for several")
	set.StringVar(&f.task, "task", "", "TASK of the runs")
	set.StringVar(&f.queue, "queue", "", "QUEUE of the runs")
	set.StringVar(&f.schedule, "schedule", "", "SCHEDULE that made the runs")
	set.Var(&f.waiting, "waiting", "KIND of what suspended runs wait for: "+strings.Join(waitingWords(), ", "))
	set.StringVar(&f.failure, "failure-code", "", "CODE of the last failure, like lease_expired")
	momentFlag(set, &f.since, "since", "TIME from which the runs were created, or an age like 2h")
	momentFlag(set, &f.until, "until", "TIME before which the runs were created, or an age like 30m")
	set.StringVar(&f.source, "source", "", "RUN that the runs repeat, or whose handler triggered or called them")
}

func (f *filter) empty() bool {
	return f.queue == "" && f.schedule == "" && f.source == "" && f.task == "" && len(f.statuses) == 0 &&
		f.waiting == "" && f.failure == "" && f.since == moment{} && f.until == moment{}
}

// build expands a run ID that was given by its prefix.
func (f *filter) build(ctx context.Context, s *session) (core.RunFilter, error) {
	made := core.RunFilter{
		Queue:      runlane.QueueName(f.queue),
		ScheduleID: runlane.ScheduleID(f.schedule),
		Statuses:   f.statuses,
		TaskID:     runlane.TaskID(f.task),
		Waiting:    runlane.WaitingFor(f.waiting),

		FailureCode: runlane.ErrorCode(f.failure),
		Since:       f.since.time(s.now()),
		Until:       f.until.time(s.now()),
	}
	if f.source != "" {
		source, err := s.findRun(ctx, f.source, false)
		if err != nil {
			return made, err
		}
		made.SourceRunID = source.ID
	}
	return made, nil
}

// doubt suggests corrections for a filter that matches nothing: unknown names that resemble known ones.
func (f *filter) doubt(ctx context.Context, s *session) {
	for _, named := range []struct {
		what, name string
		known      func(context.Context, *session) []string
	}{{"task", f.task, taskNames}, {"queue", f.queue, queueNames}, {"schedule", f.schedule, scheduleNames}} {
		if named.name == "" {
			continue
		}
		known := named.known(ctx, s)
		if name, ok := nearest(named.name, known); ok && !slices.Contains(known, named.name) {
			s.note("no %s %s is known here: did you mean %s?", named.what, quoted(named.name), quoted(name))
		}
	}
}
