package core_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/runlane/runlane-go"
	"github.com/runlane/runlane-go/core"
	"github.com/runlane/runlane-go/lane"
	"github.com/runlane/runlane-go/memlane"
)

// turning calls a function after each page of a list of runs.
type turning struct {
	lane.Storage

	after func()
}

func (p *turning) Unwrap() lane.Storage { return p.Storage }

func (p *turning) ListRuns(ctx context.Context, q *lane.RunQuery) (*runlane.Page[runlane.RunSummary], error) {
	page, err := p.Storage.ListRuns(ctx, q)
	p.after()
	return page, err
}

// Active runs are listed by when they need attention. An attempt that fails between two pages makes its run due before those of the first
// page: the run is on none of them.
func TestExport_Wait_HasARunThatMovesInTheList(t *testing.T) {
	t.Parallel()
	l := memlane.New()
	pages := &turning{Storage: l.Storage, after: func() {}}
	l.Storage = pages
	began, end := make(chan bool, 1), make(chan bool)
	task := runlane.NewTask("move.retried", &runlane.TaskOptions[string]{
		Retry: runlane.Retry{MaxAttempts: 2, Backoff: runlane.Fixed(time.Second), NoJitter: true},
	})
	rt := openStranger(t, l, task.Handle(func(context.Context, *runlane.Attempt, string) error {
		began <- true
		<-end
		return errors.New("again")
	}))
	for range runlane.MaxPageLimit + 1 { // they wait until the lease of the attempt is nearly over
		rt.trigger(task.With("waits"), &runlane.TriggerOptions{Delay: 30 * time.Second})
	}
	id := rt.trigger(task.With("executes"), nil)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- rt.Work(ctx, &core.WorkOptions{NoTick: true}) }()
	<-began
	stop()
	pages.after = func() {
		pages.after = func() {}
		close(end)
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	var file bytes.Buffer
	moved, err := rt.Export(t.Context(), &file, &core.ExportOptions{Wait: true})
	if err != nil {
		t.Fatal(err)
	}
	if moved.Runs != runlane.MaxPageLimit+2 || !strings.Contains(file.String(), string(id)) {
		t.Errorf("an export of %d runs, whole by its last line, lacks run %s", moved.Runs, id)
	}
}
