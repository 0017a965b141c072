package cli

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

func backupCommand() *command {
	return &command{
		name:  "backup",
		usage: "FILE",
		short: "Copy a lane in a file while it works",
		long: "The copy has all environments, as they were at one moment, and is a lane like any other: " +
			"--lane sqlite:FILE. It is written under another name beside FILE, synced, opened and checked, and " +
			"then named FILE: what is there is whole, and never overwritten. Programs go on meanwhile.\n\n" +
			"Only a lane in a file has this. On AWS the table's own recovery and backups are the means: " +
			"docs/operating.md. \"export\" moves an environment between lanes.",
		examples: []string{"backup state-2026-03-01.db --lane sqlite:state.db"},
		min:      1, max: 1,
		local: true,
		act: func(*flag.FlagSet) action {
			return func(ctx context.Context, s *session, args []string) error { return s.backup(ctx, args[0]) }
		},
	}
}

func (s *session) backup(ctx context.Context, path string) error {
	if s.finds && s.choice == "" { // any process may copy the file, beside a session of dev too
		if err := s.findDevState(); err != nil {
			return err
		}
	}
	rt, err := s.rt(ctx)
	if err != nil {
		return err
	}
	copier, ok := lane.As[lane.Copier](rt.Lane().Storage)
	if !ok {
		return &runlane.Error{
			Code:    runlane.ErrCapabilityUnsupported,
			Message: "lane " + rt.Lane().Name + " is no file",
			Hint:    "give --lane sqlite:PATH; a table has its own backups: docs/operating.md",
		}
	}
	name := path
	if s.folder != "" && !filepath.IsAbs(path) {
		name = filepath.Join(s.folder, path)
	}
	size, err := copier.CopyTo(ctx, name)
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
