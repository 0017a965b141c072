package cli

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/runlane/runlane-go"
)

func runsStepsCommand() *command {
	return &command{
		name:     "steps",
		usage:    "RUN",
		short:    "List what a run remembers: its steps, checkpoints and snapshots",
		min:      1,
		max:      1,
		long:     "In the order of recording, each with the attempt that recorded it. Steps: docs/workflows.md.",
		examples: []string{"runs steps run_01J8ZQ4T", "runs steps run_01J8ZQ4T --snapshots --json"},
		act: func(flags *flag.FlagSet) action {
			snapshots := flags.Bool("snapshots", false, "only snapshots, the latest first")
			return func(ctx context.Context, s *session, args []string) error {
				run, err := s.findRun(ctx, args[0], false)
				if err != nil {
					return err
				}
				list := s.runtime.Runs().Steps
				if *snapshots {
					list = s.runtime.Runs().Snapshots
				}
				records, err := list(ctx, run.ID)
				if err != nil {
					return err
				}
				return s.showSteps(run, records)
			}
		},
	}
}

func (s *session) showSteps(run *runlane.Run, records []runlane.StepRecord) error {
	t := &table{
		header: []string{"NAME", "KIND", "ATTEMPT", "RECORDED", "TOOK", "RESULT"},
		shrink: 5,
		spare:  []int{4, 1},
	}
	for i := range records {
		r := &records[i]
		if s.json {
			if err := s.emit("step", r); err != nil {
				return err
			}
			continue
		}
		took := ""
		if !r.StartedAt.IsZero() {
			took = r.At.Sub(r.StartedAt).Round(time.Millisecond).String()
		}
		result := r.Fault
		if result == "" {
			result = shortened(string(r.Result), shownBody)
		}
		t.add(r.Name, string(r.Kind), fmt.Sprint(r.Attempt), s.when(r.At), took, result)
	}
	if s.json {
		return nil
	}
	if len(records) == 0 {
		s.note("run %s remembers nothing", run.ID)
	}
	s.write(t)
	return nil
}
