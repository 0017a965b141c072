package lanetest_test

import (
	"context"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/lane"
)

// Storages that are wrong about the catalog of tasks.

// mergesDefinitions keeps the text of a definition that was put before.
type mergesDefinitions struct {
	sound
	backoff string
}

func (s *mergesDefinitions) PutTask(ctx context.Context, c *lane.PutTaskCommand) error {
	merged := *c
	if merged.Record.Backoff == "" {
		merged.Record.Backoff = s.backoff
	}
	s.backoff = merged.Record.Backoff
	return s.sound.PutTask(ctx, &merged)
}

// onlyTheLastProgram shows the tasks of the program that stored some last.
type onlyTheLastProgram struct{ sound }

func (s *onlyTheLastProgram) ListTasks(ctx context.Context, q *lane.PageQuery) (*runlane.Page[lane.TaskRecord], error) {
	page, err := s.sound.ListTasks(ctx, q)
	if err == nil && len(page.Items) > 1 {
		page.Items = page.Items[len(page.Items)-1:]
	}
	return page, err
}
