package cli

import (
	"context"
	"flag"
	"fmt"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

func backupCommand() *command {
	return &command{
		name:  "backup",
		usage: "FILE",
		short: "Copy a lane in a file while it works",
		long: "The copy has all environments, as they were at one moment, and is a lane like any other. FILE is " +
			"always whole, and an existing one is never overwritten.\n\nThis needs a lane in a file. On AWS use " +
			"the table's own recovery: docs/runbook.md. \"export\" moves an environment between lanes.",
		examples: []string{"backup state-2026-03-01.db --lane sqlite:state.db"},
		min:      1, max: 1,
		local: true,
		act: func(*flag.FlagSet) action {
			return func(ctx context.Context, s *session, args []string) error { return s.backup(ctx, args[0]) }
		},
	}
}

func (s *session) backup(ctx context.Context, path string) error {
	if s.finds && !s.elsewhere {
		if err := s.findDevState(); err != nil {
			return err
		}
	}
	rt, err := s.rt(ctx)
	if err != nil {
		return err
	}
	copier, ok := lane.As[fileCopier](rt.Lane().Storage)
	if !ok {
		return notInFile("lane " + rt.Lane().Name)
	}
	size, err := copier.CopyTo(ctx, s.path(path))
	if err != nil {
		return err
	}
	if s.json {
		return s.emit("backup", &struct {
			File  string `json:"file"`
			Bytes int64  `json:"bytes"`
		}{path, size})
	}
	s.line("%s has a copy of lane %s: %s", path, rt.Lane().Name, fmt.Sprintf("%.1f MB", float64(size)/1e6))
	return nil
}

func restoreCommand() *command {
	return &command{
		name:  "restore",
		usage: "COPY",
		short: "Put a copy that \"backup\" made in the place of a lane's file",
		long: "First stop all programs that use the file. The file and its log are replaced in one step; their old " +
			"contents are lost, and COPY stays. Never use \"cp\" for this: the old log would stay, and the file " +
			"would be refused.",
		examples: []string{"restore state-2026-03-01.db --lane sqlite:state.db"},
		min:      1, max: 1,
		local: true,
		act: func(flags *flag.FlagSet) action {
			yes := flags.Bool("yes", false, "do not ask")
			return func(ctx context.Context, s *session, args []string) error { return s.restore(ctx, args[0], *yes) }
		},
	}
}

func (s *session) restore(ctx context.Context, copied string, yes bool) error {
	if s.finds && !s.elsewhere {
		if err := s.findDevState(); err != nil {
			return err
		}
	}
	path, ok := inFile(s.getenv(lane.Variable))
	if !ok {
		return notInFile("the lane")
	}
	if err := s.setLane(fileLane + s.path(copied)); err != nil {
		return err
	}
	rt, err := s.rt(ctx) // opens the copy
	if err != nil {
		return err
	}
	restorer, ok := lane.As[fileRestorer](rt.Lane().Storage)
	if !ok {
		return notInFile("lane " + rt.Lane().Name)
	}
	if err := s.confirm(ctx, yes, "Everything in "+path+" is replaced by "+copied+". Go on?"); err != nil {
		return err
	}
	size, err := restorer.RestoreTo(ctx, path)
	if err != nil {
		return err
	}
	if s.json {
		return s.emit("restore", &struct {
			File  string `json:"file"`
			From  string `json:"from"`
			Bytes int64  `json:"bytes"`
		}{path, copied, size})
	}
	s.line("%s is what %s is: %.1f MB", path, copied, float64(size)/1e6)
	return nil
}

func notInFile(what string) error {
	return &runlane.Error{
		Code:    runlane.ErrCapabilityUnsupported,
		Message: what + " is not a file",
		Hint:    "give --lane sqlite:PATH; a table has its own recovery: docs/runbook.md",
	}
}
